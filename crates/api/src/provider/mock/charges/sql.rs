//! What charges say to the database.

use sqlx::{PgConnection, Result};

use crate::provider::mock::id;
use crate::provider::mock::wire::{Charge, ChargeRequest, Filter};

/// False where the key is taken; then another transaction's charge is committed and visible.
pub(super) async fn insert(connection: &mut PgConnection, request: &ChargeRequest) -> Result<bool> {
    let inserted = sqlx::query(
        "insert into provider.charge
            (provider_key, id, reference, amount, currency, payment_method, status)
        values ($1, $2, $3, $4, $5, $6, 'pending')
        on conflict (provider_key) do nothing",
    )
    .bind(&request.provider_key)
    .bind(id("ch"))
    .bind(&request.reference)
    .bind(request.amount.amount)
    .bind(&request.amount.currency)
    .bind(&request.payment_method)
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

pub(super) async fn insert_cancelled(
    connection: &mut PgConnection,
    provider_key: &str,
) -> Result<bool> {
    let inserted = sqlx::query(
        "insert into provider.charge (provider_key, id, status)
        values ($1, $2, 'cancelled')
        on conflict (provider_key) do nothing",
    )
    .bind(provider_key)
    .bind(id("ch"))
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

pub(super) async fn get(connection: &mut PgConnection, provider_key: &str) -> Result<Charge> {
    sqlx::query_as("select * from provider.shown_charge where provider_key = $1")
        .bind(provider_key)
        .fetch_one(connection)
        .await
}

/// False where it was complete already.
pub(super) async fn complete(
    connection: &mut PgConnection,
    provider_key: &str,
    decline_code: Option<&str>,
) -> Result<bool> {
    let completed = sqlx::query(
        "update provider.charge
        set status = case when $2::text is null then 'succeeded' else 'declined' end,
            decline_code = $2
        where provider_key = $1 and status = 'pending'",
    )
    .bind(provider_key)
    .bind(decline_code)
    .execute(connection)
    .await?;
    Ok(completed.rows_affected() == 1)
}

pub(super) async fn pending(
    connection: &mut PgConnection,
    older_than_seconds: f64,
) -> Result<Vec<String>> {
    sqlx::query_scalar(
        "select provider_key from provider.charge
        where status = 'pending' and created_at <= statement_timestamp() - make_interval(secs => $1)
        order by created_at
        limit 1000",
    )
    .bind(older_than_seconds)
    .fetch_all(connection)
    .await
}

/// Ids grow with time, so they are the order and the place to go on from.
pub(super) async fn list(connection: &mut PgConnection, filter: &Filter) -> Result<Vec<Charge>> {
    sqlx::query_as(
        "select * from provider.shown_charge
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
