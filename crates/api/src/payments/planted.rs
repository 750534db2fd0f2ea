//! Mistakes that others have made, planted on purpose, so that the crash tests can show what they notice.
//! Exists with the feature `faults` only, and does nothing unless `PAYONCE_DEFECT` names one:
//!
//! - `fresh_key`: every call to the provider carries a provider key of its own;
//! - `effects_apart`: order and ledger are written before, and not in, the settling transaction;
//! - `reply_apart`: the reply is stored in a transaction after the one of the effects;
//! - `fence_unchecked`: an owner that was taken over from frees its key all the same;
//! - `resend_unasked` (in `converse`): who takes over sends again without asking.

use domain::ChargeOutcome;
use idempotency::Finished;
use idempotency::postgres::{self, Attempt};

use super::settle::{effects, finish};
use super::{Payment, sql};
use crate::app::App;
use crate::db::Tx;
use crate::fault::{self, defect};
use crate::operation::Stop;
use crate::orders;
use crate::problem::Problem;
use crate::provider::client::ChargeRequest;

pub(super) fn request(request: &ChargeRequest) -> ChargeRequest {
    let mut request = request.clone();
    if defect("fresh_key") {
        request.provider_key = hex::encode(rand::random::<[u8; 32]>());
    }
    request
}

/// The settling of a planted mistake, if one is planted there.
pub(super) async fn settle(
    app: &App,
    attempt: &Attempt,
    payment: &Payment,
    outcome: &ChargeOutcome,
) -> Option<Result<Finished, Stop>> {
    if defect("effects_apart") {
        Some(effects_apart(app, attempt, payment, outcome).await)
    } else if defect("reply_apart") {
        Some(reply_apart(app, attempt, payment, outcome).await)
    } else {
        None
    }
}

async fn effects_apart(
    app: &App,
    attempt: &Attempt,
    payment: &Payment,
    outcome: &ChargeOutcome,
) -> Result<Finished, Stop> {
    let mut before = app.db.begin().await?;
    let order = orders::sql::lock(&mut before, payment.order_id).await?.ok_or_else(missing)?;
    effects(app, &mut before, &order, payment, outcome).await?;
    before.commit().await?;

    let mut tx = app.db.begin().await?;
    let settled = record(app, &mut tx, attempt, payment, outcome).await?;
    fault::point("before_settle_commit").await?;
    tx.commit().await?;
    fault::point("settle_committed").await?;
    Ok(settled)
}

async fn record(
    app: &App,
    tx: &mut Tx,
    attempt: &Attempt,
    payment: &Payment,
    outcome: &ChargeOutcome,
) -> Result<Finished, Stop> {
    if !postgres::lock(tx, attempt).await? || !sql::settle(tx, payment, outcome, false).await? {
        return Err(Stop::Taken);
    }
    let payment = Payment { status: outcome.status(), ..payment.clone() };
    finish(app, tx, attempt, &payment, outcome).await
}

async fn reply_apart(
    app: &App,
    attempt: &Attempt,
    payment: &Payment,
    outcome: &ChargeOutcome,
) -> Result<Finished, Stop> {
    let mut tx = app.db.begin().await?;
    if !postgres::lock(&mut tx, attempt).await? {
        return Err(Stop::Taken);
    }
    let order = orders::sql::lock(&mut tx, payment.order_id).await?.ok_or_else(missing)?;
    if !sql::settle(&mut tx, payment, outcome, false).await? {
        return Err(Stop::Taken);
    }
    effects(app, &mut tx, &order, payment, outcome).await?;
    fault::point("before_settle_commit").await?;
    tx.commit().await?;
    fault::point("settle_committed").await?;

    let mut after = app.db.begin().await?;
    let payment = Payment { status: outcome.status(), ..payment.clone() };
    let finished = finish(app, &mut after, attempt, &payment, outcome).await?;
    after.commit().await?;
    Ok(finished)
}

/// What somebody who took over has written is written over.
pub(crate) async fn lower_fence(tx: &mut Tx, attempt: &Attempt) -> sqlx::Result<()> {
    if !defect("fence_unchecked") {
        return Ok(());
    }
    for statement in [
        "update idempotency_record set fence = 1, state = 'processing'
         where scope = $1 and key = $2 and state in ('processing', 'unknown')",
        "update payment set status = 'processing'
         where made_by = $1 and key = $2 and status = 'unknown'",
    ] {
        sqlx::query(statement)
            .bind(attempt.identity.scope.as_bytes())
            .bind(attempt.identity.key.as_str())
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

fn missing() -> Stop {
    Stop::Passing(Problem::internal(&"an order is missing"))
}
