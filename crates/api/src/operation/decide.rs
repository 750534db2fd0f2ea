//! The one decision: what a key that may be known already gets.
//!
//! 1. a live record: compare, then replay, refuse, wait, or take over;
//! 2. no record, but something that this key made: its record has expired;
//! 3. an expired record and nothing made: delete it and run again;
//! 4. nothing at all: run.

use idempotency::postgres::{self, Found};
use idempotency::{Admission, Claim, Finished};
use sqlx::PgConnection;
use uuid::Uuid;

use super::refusals::{key_expired, reused};
use crate::app::App;
use crate::problem::Problem;
use crate::{db, made_by};

/// What is to be done with a request.
pub(super) enum Decision {
    Execute,
    Replay {
        finished: Box<Finished>,
        /// Executions that were tried.
        attempts: i32,
    },
    Refuse(Box<Problem>),
    Wait {
        unknown: Option<Uuid>,
    },
    TakeOver {
        fence: i64,
    },
}

/// Asks the database, with others where repeats are likely: what they wait for is a record that is
/// there. Everything else is seen to alone.
pub(super) async fn decide(app: &App, claim: &Claim) -> sqlx::Result<Decision> {
    if app.repeats.are_likely()
        && let Some(Some(found)) = app.lookups.find(&app.db, &claim.identity).await
        && let Some(decision) = by_record(found, claim)
    {
        return Ok(decision);
    }
    decide_alone(app, claim).await
}

/// A connection that died in the pool is no reason to fail.
async fn decide_alone(app: &App, claim: &Claim) -> sqlx::Result<Decision> {
    let mut conn = match app.db.connection().await {
        Err(error) if db::is_disconnect(&error) => {
            app.db.forget_idle();
            app.db.connection().await?
        }
        conn => conn?,
    };
    let decision = decide_on(&mut conn, claim).await;
    if let Err(error) = &decision
        && db::is_disconnect(error)
    {
        // A connection that died in the pool: nothing was done, so ask on a new one.
        app.db.forget_idle();
        let mut conn = app.db.connection().await?;
        let decision = decide_on(&mut conn, claim).await;
        return conn.end(decision);
    }
    conn.end(decision)
}

async fn decide_on(conn: &mut PgConnection, claim: &Claim) -> sqlx::Result<Decision> {
    if let Some(found) = postgres::find(conn, &claim.identity).await? {
        return match by_record(found, claim) {
            Some(decision) => Ok(decision),
            None => expired(conn, claim).await,
        };
    }
    let Some(made) = made_by::resource(conn, &claim.identity).await? else {
        return Ok(Decision::Execute);
    };
    // Record and resource commit together, but these are two looks: it may have happened between.
    let found = postgres::find(conn, &claim.identity).await?;
    let decision = found.and_then(|found| by_record(found, claim));
    Ok(decision.unwrap_or_else(|| Decision::Refuse(Box::new(key_expired(&made.path)))))
}

/// `None`: the record has expired.
fn by_record((record, now): Found, claim: &Claim) -> Option<Decision> {
    let attempts = record.attempts;
    Some(match record.admit(claim, now) {
        Admission::Replay(finished) => Decision::Replay { finished: Box::new(finished), attempts },
        Admission::Reused(differences) => Decision::Refuse(Box::new(reused(differences))),
        Admission::Running { unknown } => Decision::Wait { unknown },
        Admission::Abandoned { fence, .. } => Decision::TakeOver { fence },
        Admission::Expired => return None,
    })
}

async fn expired(conn: &mut PgConnection, claim: &Claim) -> sqlx::Result<Decision> {
    if let Some(made) = made_by::resource(conn, &claim.identity).await? {
        return Ok(Decision::Refuse(Box::new(key_expired(&made.path))));
    }
    postgres::delete_expired(conn, &claim.identity).await?;
    Ok(Decision::Execute)
}
