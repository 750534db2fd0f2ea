//! Recovery: finds records of payments and refunds whose holder died or lost the answer, and
//! settles them.
//!
//! Every process does this. A record is taken under its own row lock and gets a lease like any
//! other attempt, so two processes never talk about one charge, and a process that stops while it
//! talks holds nobody up for longer than the lease.

use std::time::Duration;

use idempotency::Finished;
use idempotency::postgres::{self, Attempt};
use tokio::time::Instant;

use super::Payment;
use crate::app::App;
use crate::db;
use crate::operation::Stop;
use crate::refunds::{self, Refund};
use crate::two_phase;

/// A record that could not be settled rests twice as long after every attempt, up to this.
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// From this attempt on an unknown outcome is somebody's business.
const ALARM_AFTER: i32 = 10;
/// One run ends after so many, or after this long, so that a stop is never far away.
const BATCH: usize = 100;
const RUN_MAX: Duration = Duration::from_secs(20);

/// Settles what is due. Returns how many records were taken, and how many of them settled.
///
/// # Errors
/// Those of the database while looking for work.
pub async fn run_once(app: &App) -> sqlx::Result<(usize, usize)> {
    let (mut taken, mut settled) = (0, 0);
    let until = Instant::now() + RUN_MAX;
    while taken < BATCH && Instant::now() < until {
        let mut conn = app.db.connection().await?;
        let due = postgres::take_due(&mut conn, app.limits.lease).await;
        let Some((attempt, attempts)) = conn.end(due)? else { break };
        taken += 1;
        if recover(app, attempt, attempts).await {
            settled += 1;
        }
    }
    Ok((taken, settled))
}

async fn recover(app: &App, attempt: Attempt, attempts: i32) -> bool {
    match resume(app, attempt.clone(), attempts).await {
        Ok(_) => {
            metrics::counter!("payonce_recovered_total").increment(1);
            true
        }
        // Settled by somebody else meanwhile.
        Err(Stop::Taken) => true,
        Err(stop) => {
            put_off(app, &attempt, attempts, &stop).await;
            false
        }
    }
}

/// What the record is about says who goes on with it.
async fn resume(app: &App, attempt: Attempt, attempts: i32) -> Result<Finished, Stop> {
    let mut conn = app.db.connection().await?;
    let is_refund = refunds::sql::is_refund(&mut conn, attempt.subject).await;
    match conn.end(is_refund)? {
        true => two_phase::resume::<Refund>(app, attempt, attempts).await,
        false => two_phase::resume::<Payment>(app, attempt, attempts).await,
    }
}

async fn put_off(app: &App, attempt: &Attempt, attempts: i32, stop: &Stop) {
    if attempts >= ALARM_AFTER {
        metrics::counter!("payonce_unknown_outcome_alarms_total").increment(1);
        tracing::error!(
            key = attempt.identity.key.log_hash(),
            attempts,
            ?stop,
            "an outcome stays unknown"
        );
    }
    let exponent = u32::try_from(attempts.clamp(0, 16)).unwrap_or_default();
    let pause = app.limits.recover_every.saturating_mul(1 << exponent.min(10)).min(PAUSE_MAX);
    let put_off = db::retrying(|| async {
        let mut conn = app.db.connection().await?;
        let marked = postgres::put_off(&mut conn, attempt, pause).await;
        conn.end(marked)
    })
    .await;
    if let Err(error) = put_off {
        // The lease runs out by itself, and the record is due again.
        tracing::warn!(%error, "could not put a recovery off");
    }
}
