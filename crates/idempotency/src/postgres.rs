//! The durable truth: records in Postgres. Every statement takes the caller's connection,
//! so that record, effects and reply commit in the caller's one transaction.
//!
//! Nothing here opens or ends a transaction. Three rules keep it correct:
//! - a record is inserted without `on conflict`: the unique index makes a duplicate wait for
//!   the first and then fail, which undoes all that the duplicate did;
//! - whoever changes an unfinished record holds its row lock and has proved the fence;
//! - all times are the database's, by `clock_timestamp()`: `now()` stands still in a transaction.

use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::fingerprint::{Claim, Fingerprint, Marks};
use crate::key::{Identity, Key, Scope};
use crate::record::{Finished, Outcome, Record, State};
use crate::reply::Reply;

/// The table, to be copied into a service's own migrations.
pub const SCHEMA: &str = include_str!("../schema.sql");
/// The constraint that a duplicate insert violates.
pub const DUPLICATE: &str = "idempotency_record_pkey";
/// The constraint by which a statement undoes itself when its effects are incomplete.
pub const INCOMPLETE: &str = "idempotency_record_effects_complete";

/// The right to act on an unfinished record: its fence at the time of the claim.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Which record.
    pub identity: Identity,
    /// The holder's number.
    pub fence: i64,
    /// Payment or refund that the operation is about.
    pub subject: Uuid,
}

/// What a finished record stores.
#[derive(Debug, Clone)]
pub struct Ending<'a> {
    /// How it ended.
    pub outcome: Outcome,
    /// The reply for ever.
    pub reply: &'a Reply,
    /// What was made, as a path.
    pub resource: Option<&'a str>,
    /// How long it can be replayed from now.
    pub retention: Duration,
}

/// The record of a key and the database's time, in one look.
///
/// # Errors
/// Those of the database; a row that this crate did not write is a decode error.
pub async fn find(
    connection: &mut PgConnection,
    identity: &Identity,
) -> sqlx::Result<Option<(Record, OffsetDateTime)>> {
    let row = sqlx::query(
        "select fingerprint, marks, state, fence, attempts, subject, resource, created_at,
                lease_until, finished_at, expires_at, status, headers, body,
                clock_timestamp() as now
         from idempotency_record where scope = $1 and key = $2",
    )
    .bind(identity.scope.as_bytes())
    .bind(identity.key.as_str())
    .fetch_optional(connection)
    .await?;
    row.map(|row| Ok((Record::from_row(&row)?, row.try_get("now")?))).transpose()
}

/// Inserts a finished record: the last statement of a single-phase operation.
/// Returns when the reply expires.
///
/// # Errors
/// A violation of [`DUPLICATE`] when the key is taken; the transaction is then undone.
pub async fn insert_finished(
    connection: &mut PgConnection,
    claim: &Claim,
    operation: &str,
    ending: &Ending<'_>,
) -> sqlx::Result<OffsetDateTime> {
    sqlx::query_scalar(
        "insert into idempotency_record
             (scope, key, fingerprint, marks, operation, state, resource, created_at, finished_at,
              expires_at, status, headers, body)
         select $1, $2, $3, $4, $5, $6, $7, t, t, t + $8 * interval '1 millisecond', $9, $10, $11
         from clock_timestamp() t
         returning expires_at",
    )
    .bind(claim.identity.scope.as_bytes())
    .bind(claim.identity.key.as_str())
    .bind(&claim.fingerprint.0[..])
    .bind(claim.marks.as_bytes())
    .bind(operation)
    .bind(ending.outcome.as_str())
    .bind(ending.resource)
    .bind(milliseconds(ending.retention))
    .bind(stored_status(ending.reply))
    .bind(ending.reply.encode_headers())
    .bind(&ending.reply.body()[..])
    .fetch_one(connection)
    .await
}

/// Claims a key for a two-phase operation: fence 1, and a lease from now.
///
/// # Errors
/// A violation of [`DUPLICATE`] when the key is taken; the transaction is then undone.
pub async fn insert_processing(
    connection: &mut PgConnection,
    claim: &Claim,
    operation: &str,
    subject: Uuid,
    resource: &str,
    lease: Duration,
) -> sqlx::Result<Attempt> {
    sqlx::query(
        "insert into idempotency_record
             (scope, key, fingerprint, marks, operation, state, subject, resource,
              lease_until, recover_at)
         select $1, $2, $3, $4, $5, 'processing', $6, $7, t, t
         from (select clock_timestamp() + $8 * interval '1 millisecond' as t) as lease",
    )
    .bind(claim.identity.scope.as_bytes())
    .bind(claim.identity.key.as_str())
    .bind(&claim.fingerprint.0[..])
    .bind(claim.marks.as_bytes())
    .bind(operation)
    .bind(subject)
    .bind(resource)
    .bind(milliseconds(lease))
    .execute(connection)
    .await?;
    Ok(Attempt { identity: claim.identity.clone(), fence: 1, subject })
}

/// Until the transaction ends, lets nobody else of this scope past this point: what is counted
/// after it includes what others of the scope have claimed. The lock is on a hash of the scope,
/// so that two scopes may, rarely, wait for each other.
///
/// # Errors
/// Those of the database.
pub async fn take_turn(connection: &mut PgConnection, scope: &Scope) -> sqlx::Result<()> {
    sqlx::query("select pg_advisory_xact_lock(hashtextextended(encode($1, 'hex'), 0))")
        .bind(scope.as_bytes())
        .execute(connection)
        .await?;
    Ok(())
}

/// How many keys of a scope are unfinished; counts no further than `at_most`. Claims that are not
/// committed are not seen: see [`take_turn`].
///
/// # Errors
/// Those of the database.
pub async fn unfinished(
    connection: &mut PgConnection,
    scope: &Scope,
    at_most: i64,
) -> sqlx::Result<i64> {
    sqlx::query_scalar(
        "select count(*) from (
             select from idempotency_record
             where scope = $1 and state in ('processing', 'unknown')
             limit $2
         ) as unfinished",
    )
    .bind(scope.as_bytes())
    .bind(at_most)
    .fetch_one(connection)
    .await
}

/// Takes the fence after `fence`, if its lease is over. `None`: somebody was faster. With the lease
/// the outcome is lost: it is unknown from now on.
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
         set state = 'unknown', fence = fence + 1, attempts = attempts + 1, lease_until = t,
             recover_at = t
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

/// Records that the outcome is not known and nobody is at it; recovery looks again after `pause`.
/// `false`: the fence is lost.
///
/// # Errors
/// Those of the database.
pub async fn mark_unknown(
    connection: &mut PgConnection,
    attempt: &Attempt,
    pause: Duration,
) -> sqlx::Result<bool> {
    let marked = sqlx::query(
        "update idempotency_record
         set state = 'unknown', lease_until = clock_timestamp(),
             recover_at = clock_timestamp() + $4 * interval '1 millisecond'
         where scope = $1 and key = $2 and fence = $3 and state in ('processing', 'unknown')",
    )
    .bind(attempt.identity.scope.as_bytes())
    .bind(attempt.identity.key.as_str())
    .bind(attempt.fence)
    .bind(milliseconds(pause))
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
               and recover_at <= clock_timestamp() and lease_until <= clock_timestamp()
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
             where state in ('completed', 'failed') and expires_at <= clock_timestamp()
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

/// A finished reply as an answer carries it.
pub fn finished(claim: &Claim, ending: &Ending<'_>, expires_at: OffsetDateTime) -> Finished {
    Finished {
        fingerprint: claim.fingerprint,
        marks: claim.marks.clone(),
        outcome: ending.outcome,
        reply: ending.reply.clone(),
        expires_at,
        resource: ending.resource.map(str::to_owned),
    }
}

impl<'r> FromRow<'r, PgRow> for Record {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        let fingerprint: &[u8] = row.try_get("fingerprint")?;
        let marks: &[u8] = row.try_get("marks")?;
        Ok(Self {
            fingerprint: Fingerprint(fingerprint.try_into().map_err(|_| broken("fingerprint"))?),
            marks: Marks::from_stored(marks).ok_or_else(|| broken("marks"))?,
            state: state_of(row)?,
            fence: row.try_get("fence")?,
            attempts: row.try_get("attempts")?,
            created_at: row.try_get("created_at")?,
            finished_at: row.try_get("finished_at")?,
            resource: row.try_get("resource")?,
        })
    }
}

fn state_of(row: &PgRow) -> sqlx::Result<State> {
    let state: &str = row.try_get("state")?;
    match state {
        "processing" | "unknown" => Ok(State::Unfinished {
            unknown: state == "unknown",
            lease_until: row.try_get("lease_until")?,
            subject: row.try_get("subject")?,
        }),
        "completed" => finished_state(row, Outcome::Completed),
        "failed" => finished_state(row, Outcome::Failed),
        _ => Err(broken("state")),
    }
}

fn finished_state(row: &PgRow, outcome: Outcome) -> sqlx::Result<State> {
    let status = u16::try_from(row.try_get::<i16, _>("status")?).map_err(|_| broken("status"))?;
    let body: Vec<u8> = row.try_get("body")?;
    let reply = Reply::from_stored(status, row.try_get("headers")?, body)
        .ok_or_else(|| broken("headers"))?;
    Ok(State::Finished { outcome, reply, expires_at: row.try_get("expires_at")? })
}

fn identity_of(row: &PgRow) -> sqlx::Result<Identity> {
    let key: &str = row.try_get("key")?;
    Ok(Identity {
        scope: Scope::from_stored(row.try_get("scope")?),
        key: Key::from_bare(key.as_bytes()).map_err(|_| broken("key"))?,
    })
}

fn broken(column: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("idempotency_record.{column} holds something else").into())
}

fn stored_status(reply: &Reply) -> i16 {
    i16::try_from(reply.status()).unwrap_or(0)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
