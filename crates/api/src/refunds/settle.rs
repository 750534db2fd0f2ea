//! Writes down what became of a refund: refund, order, ledger, stock, outbox and reply, in one
//! transaction.
//!
//! Whoever learns it settles it, under the record's lock and with a fence of their own, and stores
//! the reply to the original request. Locks are taken in the order record, order, payment, refund,
//! stock by id.

use domain::{Entry, LedgerTransactionId, OrderStatus, RefundOutcome};
use idempotency::postgres::{self, Attempt, Ending};
use idempotency::reply::ReplyHeader;
use idempotency::{Finished, Outcome, Reply};
use tokio::time::Instant;

use super::{Refund, RefundBody, failed, sql};
use crate::app::App;
use crate::catalog;
use crate::db::{self, Tx};
use crate::fault;
use crate::operation::Stop;
use crate::orders::{self, Order};
use crate::outbox;
use crate::payments::{self, Payment};
use crate::problem::Problem;

/// Settles the refund of an attempt, and finishes its record; tries until then.
///
/// # Errors
/// [`Stop::Taken`] when the fence is lost: then somebody else has settled, and what the record
/// says counts.
pub async fn settle(
    app: &App,
    attempt: &Attempt,
    refund: &Refund,
    outcome: &RefundOutcome,
    until: Instant,
) -> Result<Finished, Stop> {
    db::insisting(until, || async {
        let mut tx = app.db.begin().await?;
        if !postgres::lock(&mut tx, attempt).await? {
            return Err(Stop::Taken);
        }
        let finished = settle_in(app, &mut tx, attempt, refund, outcome).await?;
        fault::point("refund_before_settle_commit").await?;
        tx.commit().await?;
        fault::point("refund_settle_committed").await?;
        Ok(finished)
    })
    .await
}

/// The same inside the transaction of somebody who holds the record's lock.
///
/// # Errors
/// As [`settle`].
pub async fn settle_in(
    app: &App,
    tx: &mut Tx,
    attempt: &Attempt,
    refund: &Refund,
    outcome: &RefundOutcome,
) -> Result<Finished, Stop> {
    let order = orders::sql::lock(tx, refund.order_id).await?.ok_or_else(broken)?;
    payments::sql::lock(tx, refund.payment_id).await?.ok_or_else(broken)?;
    let refund = sql::lock(tx, refund.id).await?.ok_or_else(broken)?;
    let status = refund
        .status
        .settle(outcome)
        .map_err(|illegal| Stop::Passing(Problem::internal(&illegal)))?;
    if !sql::settle(tx, &refund, outcome).await? {
        return Err(Stop::Taken);
    }
    let refund = Refund { status, ..refund };
    match outcome {
        RefundOutcome::Succeeded { .. } => gone_back(app, tx, &order, &refund).await?,
        RefundOutcome::Failed { .. } => {
            metrics::counter!("payonce_refunds_failed_total").increment(1);
            failed_to_go_back(&refund);
        }
    }
    finish(app, tx, attempt, &refund).await
}

/// Nobody asked for an automatic refund, so nobody is there to be told that it failed.
fn failed_to_go_back(refund: &Refund) {
    if refund.automatic {
        metrics::counter!("payonce_anomalies_total").increment(1);
        tracing::error!(refund = %refund.id, payment = %refund.payment_id, order = %refund.order_id,
            "money that its order cannot take did not go back; somebody has to send it");
    } else {
        tracing::warn!(refund = %refund.id, "a refund failed");
    }
}

/// What money that went back means for order, ledger, stock and outbox. Order and payment are
/// locked, and the refund's row says that it succeeded.
///
/// # Errors
/// Those of the database; [`Stop::Taken`] when the order is not as it was read.
pub async fn gone_back(app: &App, tx: &mut Tx, order: &Order, refund: &Refund) -> Result<(), Stop> {
    let payment = payments::sql::get(tx, refund.payment_id).await?.ok_or_else(broken)?;
    let transaction = LedgerTransactionId::from_uuid(app.clock.new_id());
    let entry =
        Entry::refund(refund.amount).map_err(|error| Stop::Passing(Problem::internal(&error)))?;
    payments::sql::post(tx, transaction.uuid(), &entry, payment.id, Some(refund.id)).await?;
    if let Some(status) = next_status(order, &payment)?
        && !orders::sql::set_status(tx, order, status).await?
    {
        return Err(Stop::Taken);
    }
    if refund.restock {
        catalog::sql::return_goods(tx, order.id.uuid()).await?;
    }
    outbox::refund_succeeded(tx, app, order, refund.id, refund.amount).await?;
    Ok(())
}

/// Where the order goes. Money that it never took says nothing about it.
fn next_status(order: &Order, payment: &Payment) -> Result<Option<OrderStatus>, Stop> {
    if payment.misdirected {
        return Ok(None);
    }
    let next = order.state().refund(payment.refunded, payment.amount);
    let next = next.map_err(|refusal| Stop::Passing(Problem::internal(&refusal)))?;
    Ok(Some(next.status()))
}

async fn finish(
    app: &App,
    tx: &mut Tx,
    attempt: &Attempt,
    refund: &Refund,
) -> Result<Finished, Stop> {
    let (reply, outcome) = reply(refund)?;
    let path = refund.path();
    let ending =
        Ending { outcome, reply: &reply, resource: Some(&path), retention: app.limits.retention };
    let expires_at = postgres::finish(tx, attempt, &ending).await?.ok_or(Stop::Taken)?;
    // Fingerprint and marks are those of the record, which this transaction has locked.
    let (record, _) = postgres::find(tx, &attempt.identity).await?.ok_or_else(broken)?;
    tracing::info!(target: "payonce::flow", step = "settle", payment = %refund.payment_id,
        refund = %refund.id, status = refund.status.as_str(),
        "outcome and reply committed together");
    Ok(Finished {
        fingerprint: record.fingerprint,
        marks: record.marks,
        outcome,
        reply,
        expires_at,
        resource: Some(path),
    })
}

/// The answer to the original request.
fn reply(refund: &Refund) -> Result<(Reply, Outcome), Stop> {
    if refund.status == domain::RefundStatus::Failed {
        let request = format!("/v1/payments/{}/refunds", refund.payment_id);
        return Ok((failed(refund).at(&request).to_reply(), Outcome::Failed));
    }
    let body = serde_json::to_vec(&RefundBody::from(refund.clone()))
        .map_err(|error| Stop::Passing(Problem::internal(&error)))?;
    let reply =
        Reply::new(201, "application/json", body).with(ReplyHeader::Location, refund.path());
    Ok((reply, Outcome::Completed))
}

fn broken() -> Stop {
    Stop::Passing(Problem::internal(&"a record, an order, a payment or a refund is missing"))
}
