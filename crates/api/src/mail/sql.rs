//! Statements about mails on their way out.

use domain::ReceiptId;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};
use time::OffsetDateTime;

/// Longer than any talk with a mail server.
const LEASE_SECONDS: f64 = 60.0;

/// A mail that this process has taken, and nobody else until its lease is over.
#[derive(Debug)]
pub struct Due {
    /// Its id.
    pub id: ReceiptId,
    /// Attempts, this one included: the fence of this one.
    pub attempts: i32,
    /// The same on every attempt.
    pub message_id: String,
    /// One address.
    pub recipient: String,
    /// One line.
    pub subject: String,
    /// Plain text.
    pub body: String,
    /// When it was queued.
    pub created_at: OffsetDateTime,
}

impl<'r> FromRow<'r, PgRow> for Due {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            id: ReceiptId::from_uuid(row.try_get("id")?),
            attempts: row.try_get("attempts")?,
            message_id: row.try_get("message_id")?,
            recipient: row.try_get("recipient")?,
            subject: row.try_get("subject")?,
            body: row.try_get("body")?,
            created_at: row.try_get("created_at")?,
        })
    }
}

/// Takes one mail that is due, skipping those that others take at the moment. A worker that dies
/// with it leaves it due again at the end of the lease.
pub async fn claim(conn: &mut PgConnection) -> sqlx::Result<Option<Due>> {
    sqlx::query_as(
        "with due as materialized (
             select id, clock_timestamp() + $1 * interval '1 second' as t from mail
             where state = 'queued' and next_attempt_at <= statement_timestamp()
             order by next_attempt_at
             limit 1
             for update skip locked
         )
         update mail m
         set attempts = m.attempts + 1, lease_until = due.t, next_attempt_at = due.t
         from due where m.id = due.id
         returning m.id, m.attempts, m.message_id, m.recipient, m.subject, m.body, m.created_at",
    )
    .bind(LEASE_SECONDS)
    .fetch_optional(conn)
    .await
}

/// The mail server took it. `false`: the lease was over and somebody else has it.
pub async fn sent(conn: &mut PgConnection, mail: &Due) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "update mail set state = 'sent', sent_at = clock_timestamp(), lease_until = null,
                last_error = null
         where id = $1 and attempts = $2 and state = 'queued'",
    )
    .bind(mail.id.uuid())
    .bind(mail.attempts)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// It did not go out: again after a pause, or never (`None`).
pub async fn failed(
    conn: &mut PgConnection,
    mail: &Due,
    reason: &str,
    pause_seconds: Option<f64>,
) -> sqlx::Result<bool> {
    let done = sqlx::query(
        "update mail
         set state = case when $4::float8 is null then 'dead' else 'queued' end, lease_until = null,
             next_attempt_at = clock_timestamp() + coalesce($4, 0) * interval '1 second',
             last_error = left($3, 500)
         where id = $1 and attempts = $2 and state = 'queued'",
    )
    .bind(mail.id.uuid())
    .bind(mail.attempts)
    .bind(reason.replace('\0', " "))
    .bind(pause_seconds)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
