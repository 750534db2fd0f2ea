//! Who looks through the records: for outcomes that nobody settles, and for those whose day is over.

use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::Attempt;
use super::row::{identity_of, milliseconds};
use crate::key::Identity;

/// Takes over one unfinished record that is due for recovery, skipping those that others hold.
///
/// # Errors
/// Those of the database.
pub async fn take_due(
    connection: &mut PgConnection,
    lease: Duration,
) -> sqlx::Result<Option<(Attempt, i32)>> {
    let row = sqlx::query(
        "update idempotency_record r
         set state = 'unknown', fence = r.fence + 1, attempts = r.attempts + 1, lease_until = t,
             recover_at = t
         from (
             select scope, key, clock_timestamp() + $1 * interval '1 millisecond' as t
             from idempotency_record
             where state in ('processing', 'unknown')
               and recover_at <= statement_timestamp() and lease_until <= statement_timestamp()
             order by recover_at
             limit 1
             for update skip locked
         ) as due
         where r.scope = due.scope and r.key = due.key
         returning r.scope, r.key, r.fence, r.subject, r.attempts",
    )
    .bind(milliseconds(lease))
    .fetch_optional(connection)
    .await?;
    row.map(|row| {
        let attempt = Attempt {
            identity: identity_of(&row)?,
            fence: row.try_get("fence")?,
            subject: row.try_get("subject")?,
        };
        Ok((attempt, row.try_get("attempts")?))
    })
    .transpose()
}

/// Deletes at most `batch` expired records, skipping those that others hold. Returns how many.
///
/// # Errors
/// Those of the database.
pub async fn sweep(connection: &mut PgConnection, batch: i64) -> sqlx::Result<u64> {
    let swept = sqlx::query(
        "delete from idempotency_record r using (
             select scope, key from idempotency_record
             where state in ('completed', 'failed') and expires_at <= statement_timestamp()
             order by expires_at
             limit $1
             for update skip locked
         ) as gone
         where r.scope = gone.scope and r.key = gone.key",
    )
    .bind(batch)
    .execute(connection)
    .await?;
    Ok(swept.rows_affected())
}

/// Deletes a finished record whose day is over. `false`: there is none (any more).
///
/// # Errors
/// Those of the database.
pub async fn delete_expired(
    connection: &mut PgConnection,
    identity: &Identity,
) -> sqlx::Result<bool> {
    let deleted = sqlx::query(
        "delete from idempotency_record
         where scope = $1 and key = $2 and state in ('completed', 'failed')
           and expires_at <= clock_timestamp()",
    )
    .bind(identity.scope.as_bytes())
    .bind(identity.key.as_str())
    .execute(connection)
    .await?;
    Ok(deleted.rows_affected() == 1)
}
