//! Statements about deliveries.

use domain::WebhookEndpointId;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};
use uuid::Uuid;

/// Longer than any attempt.
const LEASE_SECONDS: f64 = 30.0;
/// An endpoint that hangs may keep so many attempts busy, and no more.
const AT_ONCE_PER_ENDPOINT: i64 = 4;

/// A delivery that this process has taken, and nobody else until its lease is over.
#[derive(Debug)]
pub struct Due {
    /// What is told.
    pub event: Uuid,
    /// To whom.
    pub endpoint: WebhookEndpointId,
    /// Attempts, this one included: the fence of this one.
    pub attempts: i32,
    /// Where it goes.
    pub url: String,
    /// What it is signed with.
    pub sealed_secret: Vec<u8>,
    /// The endpoint was deleted after the event.
    pub deleted: bool,
    /// The e-mail of whose it is.
    pub owner: Option<String>,
    /// The bytes, the same on every attempt.
    pub body: Vec<u8>,
}

impl<'r> FromRow<'r, PgRow> for Due {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            event: row.try_get("event_id")?,
            endpoint: WebhookEndpointId::from_uuid(row.try_get("endpoint_id")?),
            attempts: row.try_get("attempts")?,
            url: row.try_get("url")?,
            sealed_secret: row.try_get("sealed_secret")?,
            deleted: row.try_get("deleted")?,
            owner: row.try_get("owner")?,
            body: row.try_get("body")?,
        })
    }
}

/// Takes one delivery that is due, skipping those that others take at the moment, and endpoints
/// that keep enough attempts busy already. The endpoint of somebody who is no merchant any more
/// counts as deleted: what it would hear is not theirs to know.
pub async fn claim(conn: &mut PgConnection) -> sqlx::Result<Option<Due>> {
    sqlx::query_as(
        "with busy as materialized (
             select endpoint_id from delivery
             where state = 'queued' and lease_until > statement_timestamp()
             group by endpoint_id having count(*) >= $2
         ),
         due as materialized (
             select event_id, endpoint_id, clock_timestamp() + $1 * interval '1 second' as t
             from delivery
             where state = 'queued' and next_attempt_at <= statement_timestamp()
               and endpoint_id not in (select endpoint_id from busy)
             order by next_attempt_at
             limit 1
             for update skip locked
         )
         update delivery d
         set attempts = d.attempts + 1, lease_until = due.t, next_attempt_at = due.t
         from due
         join webhook_endpoint w on w.id = due.endpoint_id
         join account owner on owner.id = w.account_id
         join event e on e.id = due.event_id
         where d.event_id = due.event_id and d.endpoint_id = due.endpoint_id
         returning d.event_id, d.endpoint_id, d.attempts, w.url, w.sealed_secret,
                   w.deleted_at is not null or owner.role <> 'merchant' as deleted,
                   owner.email as owner, e.body",
    )
    .bind(LEASE_SECONDS)
    .bind(AT_ONCE_PER_ENDPOINT)
    .fetch_optional(conn)
    .await
}

/// The receiver has it. `false`: the lease was over and somebody else took it.
pub async fn delivered(conn: &mut PgConnection, due: &Due) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "update delivery set state = 'delivered', delivered_at = clock_timestamp(),
                lease_until = null, last_error = null
         where event_id = $1 and endpoint_id = $2 and attempts = $3 and state = 'queued'",
    )
    .bind(due.event)
    .bind(due.endpoint.uuid())
    .bind(due.attempts)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// It did not arrive: again after a pause, or never (`None`).
pub async fn failed(
    conn: &mut PgConnection,
    due: &Due,
    reason: &str,
    pause_seconds: Option<f64>,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "update delivery
         set state = case when $5::float8 is null then 'dead' else 'queued' end, lease_until = null,
             next_attempt_at = clock_timestamp() + coalesce($5, 0) * interval '1 second',
             last_error = left($4, 500)
         where event_id = $1 and endpoint_id = $2 and attempts = $3 and state = 'queued'",
    )
    .bind(due.event)
    .bind(due.endpoint.uuid())
    .bind(due.attempts)
    .bind(reason.replace('\0', " "))
    .bind(pause_seconds)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
