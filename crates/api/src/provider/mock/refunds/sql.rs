//! What refunds say to the database.

use sqlx::{PgConnection, Result};

use crate::provider::mock::id;
use crate::provider::mock::wire::{Charge, Filter, Refund, RefundRequest};

/// The charge by its id or its provider key, held so that its refunds are summed one at a time.
pub(super) async fn lock_charge(
    connection: &mut PgConnection,
    charge: &str,
) -> Result<Option<Charge>> {
    sqlx::query("select from provider.charge where id = $1 or provider_key = $1 for update")
        .bind(charge)
        .execute(&mut *connection)
        .await?;
    sqlx::query_as("select * from provider.shown_charge where id = $1 or provider_key = $1")
        .bind(charge)
        .fetch_optional(connection)
        .await
}

/// What went back or is on its way back.
pub(super) async fn taken(connection: &mut PgConnection, charge_id: &str) -> Result<i64> {
    sqlx::query_scalar(
        "select coalesce(sum(amount), 0)::bigint from provider.refund
        where charge_id = $1 and status <> 'failed'",
    )
    .bind(charge_id)
    .fetch_one(connection)
    .await
}

/// False where the key is taken.
pub(super) async fn insert(
    connection: &mut PgConnection,
    request: &RefundRequest,
    charge_id: Option<&str>,
    failure_code: Option<&str>,
) -> Result<bool> {
    let inserted = sqlx::query(
        "insert into provider.refund
            (provider_key, id, charge, charge_id, reference, amount, currency, status, failure_code)
        values ($1, $2, $3, $4, $5, $6, $7,
            case when $8::text is null then 'pending' else 'failed' end, $8)
        on conflict (provider_key) do nothing",
    )
    .bind(&request.provider_key)
    .bind(id("re"))
    .bind(&request.charge)
    .bind(charge_id)
    .bind(&request.reference)
    .bind(request.amount.amount)
    .bind(&request.amount.currency)
    .bind(failure_code)
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

pub(super) async fn insert_cancelled(
    connection: &mut PgConnection,
    provider_key: &str,
) -> Result<bool> {
    let inserted = sqlx::query(
        "insert into provider.refund (provider_key, id, status, failure_code)
        values ($1, $2, 'failed', 'cancelled')
        on conflict (provider_key) do nothing",
    )
    .bind(provider_key)
    .bind(id("re"))
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

pub(super) async fn get(connection: &mut PgConnection, provider_key: &str) -> Result<Refund> {
    sqlx::query_as("select * from provider.shown_refund where provider_key = $1")
        .bind(provider_key)
        .fetch_one(connection)
        .await
}

/// False where it was complete already.
pub(super) async fn complete(connection: &mut PgConnection, provider_key: &str) -> Result<bool> {
    let completed = sqlx::query(
        "update provider.refund set status = 'succeeded'
        where provider_key = $1 and status = 'pending'",
    )
    .bind(provider_key)
    .execute(connection)
    .await?;
    Ok(completed.rows_affected() == 1)
}

pub(super) async fn pending(
    connection: &mut PgConnection,
    older_than_seconds: f64,
) -> Result<Vec<String>> {
    sqlx::query_scalar(
        "select provider_key from provider.refund
        where status = 'pending' and created_at <= statement_timestamp() - make_interval(secs => $1)
        order by created_at
        limit 1000",
    )
    .bind(older_than_seconds)
    .fetch_all(connection)
    .await
}

pub(super) async fn list(connection: &mut PgConnection, filter: &Filter) -> Result<Vec<Refund>> {
    sqlx::query_as(
        "select * from provider.shown_refund
        where ($1::text is null or provider_key = $1)
            and ($2::text is null or reference = $2)
            and ($3::text is null or id > $3)
        order by id
        limit $4",
    )
    .bind(&filter.provider_key)
    .bind(&filter.reference)
    .bind(&filter.after)
    .bind(i64::from(filter.limit()))
    .fetch_all(connection)
    .await
}
