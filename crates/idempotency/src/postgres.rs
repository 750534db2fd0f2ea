//! The durable truth: records in Postgres. Every statement takes the caller's connection,
//! so that record, effects and reply commit in the caller's one transaction.
//!
//! Nothing here opens or ends a transaction. Three rules keep it correct:
//! - a record is inserted without `on conflict`: the unique index makes a duplicate wait for
//!   the first and then fail, which undoes all that the duplicate did;
//! - whoever changes an unfinished record holds its row lock and has proved the fence;
//! - all times are the database's, by `clock_timestamp()`: `now()` stands still in a transaction.
//!   Whoever looks for rows that are due compares with `statement_timestamp()`: a time that may
//!   change from row to row cannot be looked up in an index, so every row would be read.

mod due;
mod holding;
pub mod presence;
mod row;

use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};
use time::OffsetDateTime;
use uuid::Uuid;

pub use due::{delete_expired, sweep, take_due};
pub use holding::{finish, lock, mark_unknown, put_off, release, seize, take_over};
use row::{milliseconds, stored_status};

use crate::fingerprint::Claim;
use crate::key::{Identity, Scope};
use crate::record::{Finished, Outcome, Record};
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

/// The columns of [`Found`].
macro_rules! found {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            " fingerprint, marks, state, fence, attempts, subject, resource, created_at, lease_until,
              finished_at, expires_at, status, headers, body, clock_timestamp() as now
              from idempotency_record where ",
            $after
        )
    };
}

/// The record of a key, and the database's time when it was read.
pub type Found = (Record, OffsetDateTime);

/// The record of a key and the database's time, in one look.
///
/// # Errors
/// Those of the database; a row that this crate did not write is a decode error.
pub async fn find(
    connection: &mut PgConnection,
    identity: &Identity,
) -> sqlx::Result<Option<Found>> {
    let row = sqlx::query(found!("select", "scope = $1 and key = $2"))
        .bind(identity.scope.as_bytes())
        .bind(identity.key.as_str())
        .fetch_optional(connection)
        .await?;
    row.map(|row| found_in(&row)).transpose()
}

/// The same for several keys in one statement; what was found stands where its key stood.
///
/// Two things are there for the planner alone. `offset 0` keeps it one look into the index for each
/// key: joined to a list whose length it has to guess, it may prefer to read the whole table. The
/// inner `select`s hide that length: seeing it, it would plan anew for each list.
///
/// # Errors
/// As [`find`]; one row that cannot be read spoils all.
pub async fn find_each(
    connection: &mut PgConnection,
    identities: &[&Identity],
) -> sqlx::Result<Vec<Option<Found>>> {
    let scopes: Vec<&[u8]> = identities.iter().map(|wanted| wanted.scope.as_bytes()).collect();
    let keys: Vec<&str> = identities.iter().map(|wanted| wanted.key.as_str()).collect();
    let rows = sqlx::query(found!(
        "select wanted.place, found.* from unnest((select $1::bytea[]), (select $2::text[]))
             with ordinality as wanted (scope, key, place)
         cross join lateral (select",
        "scope = wanted.scope and key = wanted.key offset 0) as found"
    ))
    .bind(scopes)
    .bind(keys)
    .fetch_all(connection)
    .await?;
    let mut all = vec![None; identities.len()];
    for row in rows {
        let place = usize::try_from(row.try_get::<i64, _>("place")?).unwrap_or_default();
        let slot =
            all.get_mut(place.wrapping_sub(1)).expect("a row for each key that was asked for");
        *slot = Some(found_in(&row)?);
    }
    Ok(all)
}

fn found_in(row: &PgRow) -> sqlx::Result<Found> {
    Ok((Record::from_row(row)?, row.try_get("now")?))
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
