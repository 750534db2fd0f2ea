//! The one decision: what a key that may be known already gets.
//!
//! 1. a live record: compare, then replay, refuse, wait, or take over;
//! 2. no record, but something that this key made: its record has expired;
//! 3. an expired record and nothing made: delete it and run again;
//! 4. nothing at all: run.

use idempotency::{Admission, Claim, Finished, postgres};
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
        && let Some(Some((record, now))) = app.lookups.find(&app.db, &claim.identity).await
    {
        let attempts = record.attempts;
        match record.admit(claim, now) {
            Admission::Expired => {}
            admission => return Ok(by_record(admission, attempts)),
        }
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
    if let Some((record, now)) = postgres::find(conn, &claim.identity).await? {
        let attempts = record.attempts;
        return match record.admit(claim, now) {
            Admission::Expired => expired(conn, claim).await,
            admission => Ok(by_record(admission, attempts)),
        };
    }
    let Some(made) = made_by::resource(conn, &claim.identity).await? else {
        return Ok(Decision::Execute);
    };
    // Record and resource commit together, but these are two looks: it may have happened between.
    match postgres::find(conn, &claim.identity).await? {
        Some((record, now)) => {
            let attempts = record.attempts;
            Ok(match record.admit(claim, now) {
                Admission::Expired => Decision::Refuse(Box::new(key_expired(&made.path))),
                admission => by_record(admission, attempts),
            })
        }
        None => Ok(Decision::Refuse(Box::new(key_expired(&made.path)))),
    }
}

fn by_record(admission: Admission, attempts: i32) -> Decision {
    match admission {
        Admission::Replay(finished) => Decision::Replay { finished: Box::new(finished), attempts },
        Admission::Reused(differences) => Decision::Refuse(Box::new(reused(differences))),
        Admission::Running { unknown } => Decision::Wait { unknown },
        Admission::Abandoned { fence, .. } => Decision::TakeOver { fence },
        Admission::Expired => Decision::Execute,
    }
}

async fn expired(conn: &mut PgConnection, claim: &Claim) -> sqlx::Result<Decision> {
    if let Some(made) = made_by::resource(conn, &claim.identity).await? {
        return Ok(Decision::Refuse(Box::new(key_expired(&made.path))));
    }
    postgres::delete_expired(conn, &claim.identity).await?;
    Ok(Decision::Execute)
}
