//! Rows as they are read and written.

use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{FromRow, Row};

use crate::fingerprint::{Fingerprint, Marks};
use crate::key::{Identity, Key, Scope};
use crate::record::{Outcome, Record, State};
use crate::reply::Reply;

impl<'r> FromRow<'r, PgRow> for Record {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        let fingerprint: &[u8] = row.try_get("fingerprint")?;
        let marks: Vec<u8> = row.try_get("marks")?;
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

pub(super) fn identity_of(row: &PgRow) -> sqlx::Result<Identity> {
    let key: &str = row.try_get("key")?;
    Ok(Identity {
        scope: Scope::from_stored(row.try_get("scope")?),
        key: Key::from_bare(key.as_bytes()).map_err(|_| broken("key"))?,
    })
}

fn broken(column: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("idempotency_record.{column} holds something else").into())
}

pub(super) fn stored_status(reply: &Reply) -> i16 {
    i16::try_from(reply.status()).unwrap_or(0)
}

pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
