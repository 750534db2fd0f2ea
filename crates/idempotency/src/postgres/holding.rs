//! What the holder of an unfinished record may do with it, and how another one becomes its holder.

use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::PgConnection;
use time::OffsetDateTime;

use super::row::{milliseconds, stored_status};
use super::{Attempt, Ending};
use crate::key::Identity;

/// Takes the fence after `fence`, if its lease is over. `None`: somebody was faster. With the lease
/// the outcome is lost: it is unknown from now on. When recovery looks is not changed: whoever asks
/// again and again must not keep it away.
///
/// # Errors
/// Those of the database.
pub async fn take_over(
    connection: &mut PgConnection,
    identity: &Identity,
    fence: i64,
    lease: Duration,
) -> sqlx::Result<Option<Attempt>> {
    let row = sqlx::query(
        "update idempotency_record
         set state = 'unknown', fence = fence + 1, attempts = attempts + 1, lease_until = t
         from (select clock_timestamp() + $4 * interval '1 millisecond' as t) as lease
         where scope = $1 and key = $2 and fence = $3
           and state in ('processing', 'unknown') and lease_until <= clock_timestamp()
         returning fence, subject",
    )
    .bind(identity.scope.as_bytes())
    .bind(identity.key.as_str())
    .bind(fence)
    .bind(milliseconds(lease))
    .fetch_optional(connection)
    .await?;
    row.map(|row| {
        Ok(Attempt {
            identity: identity.clone(),
            fence: row.try_get("fence")?,
            subject: row.try_get("subject")?,
        })
    })
    .transpose()
}

/// Locks the record of an attempt. `false`: it is finished, or somebody has a later fence,
/// and this attempt may change nothing any more.
///
/// # Errors
/// Those of the database.
pub async fn lock(connection: &mut PgConnection, attempt: &Attempt) -> sqlx::Result<bool> {
    let held = sqlx::query(
        "select 1 from idempotency_record
         where scope = $1 and key = $2 and fence = $3 and state in ('processing', 'unknown')
         for update",
    )
    .bind(attempt.identity.scope.as_bytes())
    .bind(attempt.identity.key.as_str())
    .bind(attempt.fence)
    .fetch_optional(connection)
    .await?;
    Ok(held.is_some())
}

/// Locks an unfinished record and takes its next fence, whoever holds it: for an answer that
/// arrived another way. `None`: it is finished or gone.
///
/// # Errors
/// Those of the database.
pub async fn seize(
    connection: &mut PgConnection,
    identity: &Identity,
) -> sqlx::Result<Option<Attempt>> {
    let row = sqlx::query(
        "update idempotency_record set fence = fence + 1
         where scope = $1 and key = $2 and state in ('processing', 'unknown')
         returning fence, subject",
    )
    .bind(identity.scope.as_bytes())
    .bind(identity.key.as_str())
    .fetch_optional(connection)
    .await?;
    row.map(|row| {
        Ok(Attempt {
            identity: identity.clone(),
            fence: row.try_get("fence")?,
            subject: row.try_get("subject")?,
        })
    })
    .transpose()
}

/// Stores the reply of a locked attempt. Returns when it expires, or `None` if the fence is lost.
///
/// # Errors
/// Those of the database.
pub async fn finish(
    connection: &mut PgConnection,
    attempt: &Attempt,
    ending: &Ending<'_>,
) -> sqlx::Result<Option<OffsetDateTime>> {
    sqlx::query_scalar(
        "update idempotency_record
         set state = $4, resource = coalesce($5, resource), lease_until = null, recover_at = null,
             finished_at = t, expires_at = t + $6 * interval '1 millisecond',
             status = $7, headers = $8, body = $9
         from clock_timestamp() t
         where scope = $1 and key = $2 and fence = $3 and state in ('processing', 'unknown')
         returning expires_at",
    )
    .bind(attempt.identity.scope.as_bytes())
    .bind(attempt.identity.key.as_str())
    .bind(attempt.fence)
    .bind(ending.outcome.as_str())
    .bind(ending.resource)
    .bind(milliseconds(ending.retention))
    .bind(stored_status(ending.reply))
    .bind(ending.reply.encode_headers())
    .bind(&ending.reply.body()[..])
    .fetch_optional(connection)
    .await
}

/// Records that the outcome is not known and nobody is at it. After the first owner recovery looks
/// after `pause`, after a later one when it would have looked anyway. `false`: the fence is lost.
///
/// # Errors
/// Those of the database.
pub async fn mark_unknown(
    connection: &mut PgConnection,
    attempt: &Attempt,
    pause: Duration,
) -> sqlx::Result<bool> {
    leave(connection, attempt, pause, attempt.fence == 1).await
}

/// The same by recovery itself, which looks again after `pause` and not before.
///
/// # Errors
/// Those of the database.
pub async fn put_off(
    connection: &mut PgConnection,
    attempt: &Attempt,
    pause: Duration,
) -> sqlx::Result<bool> {
    leave(connection, attempt, pause, true).await
}

async fn leave(
    connection: &mut PgConnection,
    attempt: &Attempt,
    pause: Duration,
    sets_recovery: bool,
) -> sqlx::Result<bool> {
    let marked = sqlx::query(
        "update idempotency_record
         set state = 'unknown', lease_until = clock_timestamp(),
             recover_at = case when $5 then clock_timestamp() + $4 * interval '1 millisecond'
                               else recover_at end
         where scope = $1 and key = $2 and fence = $3 and state in ('processing', 'unknown')",
    )
    .bind(attempt.identity.scope.as_bytes())
    .bind(attempt.identity.key.as_str())
    .bind(attempt.fence)
    .bind(milliseconds(pause))
    .bind(sets_recovery)
    .execute(connection)
    .await?;
    Ok(marked.rows_affected() == 1)
}

/// Frees the key of the first owner, who knows that nothing was sent. `false`: somebody took over.
///
/// # Errors
/// Those of the database.
pub async fn release(connection: &mut PgConnection, attempt: &Attempt) -> sqlx::Result<bool> {
    if attempt.fence != 1 {
        return Ok(false);
    }
    let released = sqlx::query(
        "delete from idempotency_record
         where scope = $1 and key = $2 and fence = 1 and state = 'processing'",
    )
    .bind(attempt.identity.scope.as_bytes())
    .bind(attempt.identity.key.as_str())
    .execute(connection)
    .await?;
    Ok(released.rows_affected() == 1)
}
