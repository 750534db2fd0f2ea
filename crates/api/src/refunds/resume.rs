//! From the intent to the end of a refund, by its first owner or by whoever comes after.

use domain::{RefundId, RefundStatus};
use idempotency::Finished;
use idempotency::postgres::{self, Attempt};

use super::{Refund, settle, sql};
use crate::app::App;
use crate::db;
use crate::fault;
use crate::operation::{Stop, outcome_unknown};
use crate::problem::Problem;
use crate::provider::converse::{self, Talk};

/// Goes on where a holder died or lost the answer; `attempts` executions so far.
///
/// # Errors
/// [`Stop::Passing`] with `outcome_unknown` when the provider does not tell.
pub async fn resume(app: &App, attempt: Attempt, attempts: i32) -> Result<Finished, Stop> {
    let id = RefundId::from_uuid(attempt.subject);
    let known = db::retrying(|| forget_answer(app, &attempt, id)).await;
    let refund = known.map_err(|stop| not_nothing(stop, id))?;
    go_on(app, attempt, refund, Some(attempts)).await
}

/// A lease ran out: from now on the refund is unknown, until the provider has told.
async fn forget_answer(app: &App, attempt: &Attempt, id: RefundId) -> Result<Refund, Stop> {
    let mut tx = app.db.begin().await?;
    if !postgres::lock(&mut tx, attempt).await? {
        return Err(Stop::Taken);
    }
    let refund = sql::get(&mut tx, id).await?;
    let mut refund =
        refund.ok_or_else(|| Stop::Passing(Problem::internal(&"a record without its refund")))?;
    if let Ok(unknown) = refund.status.lose_answer() {
        sql::set_status(&mut tx, id, refund.status, unknown).await?;
        refund.status = unknown;
    }
    tx.commit().await?;
    Ok(refund)
}

/// Phases two and three: the provider, then what it says. `taken_over` counts executions.
pub(super) async fn go_on(
    app: &App,
    attempt: Attempt,
    refund: Refund,
    taken_over: Option<i32>,
) -> Result<Finished, Stop> {
    let ended = talk_and_settle(app, &attempt, &refund, taken_over).await;
    ended.map_err(|stop| not_nothing(stop, refund.id))
}

async fn talk_and_settle(
    app: &App,
    attempt: &Attempt,
    refund: &Refund,
    taken_over: Option<i32>,
) -> Result<Finished, Stop> {
    match converse::converse(app, refund, taken_over).await? {
        Talk::Settled(outcome) => {
            fault::point("refund_answered").await?;
            settle::settle(app, attempt, refund, &outcome).await
        }
        Talk::NothingSent(problem) => release(app, attempt, refund, problem).await,
        Talk::Unknown => Err(lose_answer(app, attempt, refund).await?),
    }
}

/// Once the intent is committed nobody may say that nothing was done, whatever the database has
/// no time for.
fn not_nothing(stop: Stop, refund: RefundId) -> Stop {
    match stop {
        Stop::Database(error) if !db::is_disconnect(&error) => {
            tracing::error!(%error, %refund, "an outcome could not be written down");
            Stop::Passing(unknown(refund))
        }
        stop => stop,
    }
}

fn unknown(refund: RefundId) -> Problem {
    let path = format!("/v1/refunds/{refund}");
    outcome_unknown().member("refund_id", refund.to_string()).resource(&path)
}

/// The first owner knows that nothing was sent: as if nothing had been asked.
async fn release(
    app: &App,
    attempt: &Attempt,
    refund: &Refund,
    problem: Problem,
) -> Result<Finished, Stop> {
    db::retrying(|| async {
        let mut tx = app.db.begin().await?;
        if !postgres::release(&mut tx, attempt).await? {
            return Err(Stop::Taken);
        }
        sql::delete_unsent(&mut tx, refund.id).await?;
        tx.commit().await?;
        Ok(())
    })
    .await?;
    tracing::info!(target: "payonce::flow", step = "release", payment = %refund.payment_id,
        refund = %refund.id, "nothing was sent; the key is free");
    Err(Stop::Passing(problem))
}

/// The answer is lost: say so, and let recovery find it.
async fn lose_answer(app: &App, attempt: &Attempt, refund: &Refund) -> Result<Stop, Stop> {
    let marked = db::retrying(|| async {
        let mut tx = app.db.begin().await?;
        if !postgres::mark_unknown(&mut tx, attempt, app.limits.recover_every).await? {
            return Ok::<_, Stop>(false);
        }
        sql::set_status(&mut tx, refund.id, RefundStatus::Processing, RefundStatus::Unknown)
            .await?;
        tx.commit().await?;
        Ok(true)
    })
    .await?;
    if !marked {
        return Ok(Stop::Taken);
    }
    metrics::counter!("payonce_answers_lost_total").increment(1);
    tracing::warn!(target: "payonce::flow", step = "unknown", payment = %refund.payment_id,
        refund = %refund.id, "the provider's answer is lost");
    Ok(Stop::Passing(unknown(refund.id)))
}
