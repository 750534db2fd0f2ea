//! What events say to the database.

use sqlx::{FromRow, PgConnection, Result};
use time::OffsetDateTime;

/// An event to be delivered now, leased to the caller.
#[derive(Debug, FromRow)]
pub(super) struct Due {
    pub(super) id: String,
    pub(super) body: Vec<u8>,
    pub(super) attempts: i32,
    /// Unix seconds on the database's clock.
    pub(super) now: i64,
}

pub(super) async fn now(connection: &mut PgConnection) -> Result<OffsetDateTime> {
    sqlx::query_scalar("select clock_timestamp()").fetch_one(connection).await
}

pub(super) async fn insert(
    connection: &mut PgConnection,
    id: &str,
    body: &[u8],
    copies: i32,
    delay_seconds: f64,
) -> Result<()> {
    sqlx::query(
        "insert into provider.event (id, body, copies, due_at)
        values ($1, $2, $3, clock_timestamp() + make_interval(secs => $4))",
    )
    .bind(id)
    .bind(body)
    .bind(copies)
    .bind(delay_seconds)
    .execute(connection)
    .await?;
    Ok(())
}

/// Each event has a lease of its own, longer than one attempt can take.
pub(super) async fn claim(connection: &mut PgConnection) -> Result<Option<Due>> {
    sqlx::query_as(
        "update provider.event
        set attempts = attempts + 1, due_at = clock_timestamp() + interval '15 seconds'
        where id = (
            select id from provider.event
            where state = 'waiting' and due_at <= statement_timestamp()
            order by due_at, id
            limit 1
            for update skip locked
        )
        returning id, body, attempts, extract(epoch from clock_timestamp())::bigint as now",
    )
    .fetch_optional(connection)
    .await
}

pub(super) async fn seconds_to_next(connection: &mut PgConnection) -> Result<Option<f64>> {
    sqlx::query_scalar(
        "select extract(epoch from min(due_at) - clock_timestamp())::float8
        from provider.event
        where state = 'waiting'",
    )
    .fetch_one(connection)
    .await
}

pub(super) async fn arrived(
    connection: &mut PgConnection,
    id: &str,
    next_copy_seconds: f64,
) -> Result<()> {
    sqlx::query(
        "update provider.event
        set copies = copies - 1,
            state = case when copies > 1 then 'waiting' else 'delivered' end,
            due_at = clock_timestamp() + make_interval(secs => $2)
        where id = $1 and state = 'waiting'",
    )
    .bind(id)
    .bind(next_copy_seconds)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn failed(
    connection: &mut PgConnection,
    id: &str,
    backoff_seconds: f64,
    attempts_max: i32,
) -> Result<()> {
    sqlx::query(
        "update provider.event
        set state = case when attempts < $3 then 'waiting' else 'dead' end,
            due_at = clock_timestamp() + make_interval(secs => $2)
        where id = $1 and state = 'waiting'",
    )
    .bind(id)
    .bind(backoff_seconds)
    .bind(attempts_max)
    .execute(connection)
    .await?;
    Ok(())
}
