//! What became of a key: its state and times, never its reply's body.

use std::borrow::Cow;

use actix_web::{HttpResponse, web};
use idempotency::postgres::{self, presence};
use idempotency::{Identity, Key, Record, State};
use serde::Serialize;
use sqlx::PgConnection;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::accounts::Account;
use crate::app::App;
use crate::made_by;
use crate::problem::Problem;

/// A record on the wire.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IdempotencyKey)]
pub struct RecordBody {
    /// `processing`, `unknown`, `completed`, `failed`, `expired`
    #[schema(example = "completed")]
    pub state: &'static str,
    /// Executions, not replays.
    #[schema(minimum = 1, example = 1)]
    pub attempts: i32,
    /// When the key was first used; now, while its first request has written nothing yet.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
    /// When the reply was stored.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<OffsetDateTime>,
    /// Until when the reply can be had again.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<OffsetDateTime>,
    /// The status of the stored reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 201, minimum = 200, maximum = 499)]
    pub response_status: Option<u16>,
    /// What the key made, as a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/v1/orders/ord_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub resource: Option<String>,
}

const ADDRESS: &str = "/v1/idempotency-keys/";

/// A path as logs have it: a key in it is a short hash there, as everywhere.
pub fn without_key(path: &str) -> Cow<'_, str> {
    let Some(key) = path.strip_prefix(ADDRESS) else { return path.into() };
    let hash = Key::from_bare(key.as_bytes()).map_or_else(|_| "-".to_owned(), |key| key.log_hash());
    format!("{ADDRESS}{hash}").into()
}

/// Tells what became of a key
#[utoipa::path(
    get, path = "/v1/idempotency-keys/{key}", tag = "Idempotency",
    params(("key" = String, Path, description = "Percent-encoded where it needs to be",
            example = "8e03978e-40d5-43dd-bc93-6894a57f9324")),
    responses((status = 200, description = "The state of one of your own keys", body = RecordBody)),
)]
pub async fn get_record(
    app: App,
    account: Account,
    key: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let key = Key::from_bare(key.as_bytes()).map_err(|_| Problem::not_found())?;
    let identity = Identity { scope: account.scope(), key };
    let is_here = app.flights.has(&identity);
    let (at_work, found) = tell(&app, &identity).await?;
    let record = match found {
        Some(record) => record,
        None if is_here || at_work => RecordBody::begun(app.clock.now()),
        None => return Err(Problem::not_found()),
    };
    Ok(HttpResponse::Ok().json(record))
}

/// Whether somebody is at the key, and its record. In this order: what has ended since is on record.
async fn tell(app: &App, identity: &Identity) -> sqlx::Result<(bool, Option<RecordBody>)> {
    let mut conn = app.db.connection().await?;
    let told = async {
        let at_work = presence::is_at_work(&mut conn, identity).await?;
        Ok((at_work, find(&mut conn, identity).await?))
    };
    let told = told.await;
    conn.end(told)
}

/// The record of a key, or what is remembered of it after it was swept.
///
/// # Errors
/// Those of the database.
pub async fn find(
    conn: &mut PgConnection,
    identity: &Identity,
) -> sqlx::Result<Option<RecordBody>> {
    if let Some((record, now)) = postgres::find(conn, identity).await? {
        return Ok(Some(RecordBody::new(record, now)));
    }
    let made = made_by::resource(conn, identity).await?;
    Ok(made.map(|made| RecordBody {
        state: "expired",
        attempts: 1,
        created_at: made.created_at,
        finished_at: None,
        expires_at: None,
        response_status: None,
        resource: Some(made.path),
    }))
}

impl RecordBody {
    /// An execution that has not written anything that others can see.
    fn begun(now: OffsetDateTime) -> Self {
        Self {
            state: "processing",
            attempts: 1,
            created_at: now,
            finished_at: None,
            expires_at: None,
            response_status: None,
            resource: None,
        }
    }

    fn new(record: Record, now: OffsetDateTime) -> Self {
        let (state, expires_at, response_status) = match &record.state {
            // A lease that ran out leaves an outcome that nobody knows, noticed or not.
            State::Unfinished { unknown, lease_until, .. } if *unknown || *lease_until <= now => {
                ("unknown", None, None)
            }
            State::Unfinished { .. } => ("processing", None, None),
            State::Finished { expires_at, reply, .. } if *expires_at <= now => {
                ("expired", Some(*expires_at), Some(reply.status()))
            }
            State::Finished { outcome, expires_at, reply } => {
                (outcome.as_str(), Some(*expires_at), Some(reply.status()))
            }
        };
        Self {
            state,
            attempts: record.attempts,
            created_at: record.created_at,
            finished_at: record.finished_at,
            expires_at,
            response_status,
            resource: record.resource,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_in_a_log_holds_a_key() {
        let logged = without_key("/v1/idempotency-keys/my-secret-key");
        assert_eq!(logged.len(), ADDRESS.len() + 8);
        assert!(!logged.contains("secret"), "{logged}");
        let malformed = without_key("/v1/idempotency-keys/my,secret,key");
        assert_eq!(malformed, "/v1/idempotency-keys/-");
        assert_eq!(without_key("/v1/orders"), "/v1/orders");
    }
}
