//! Writes down what became of a charge: payment, order, ledger, outbox and reply, in one transaction.
//!
//! Whoever learns it settles it: the owner, a retry, recovery, an event of the provider. They all
//! come through here, under the record's lock and with a fence of their own, and store the reply
//! to the original request. Locks are taken in the order record, order, payment.

use domain::{ChargeOutcome, Entry, LedgerTransactionId, PaymentStatus};
use idempotency::postgres::{self, Attempt, Ending};
use idempotency::reply::ReplyHeader;
use idempotency::{Finished, Outcome, Reply};
use tokio::time::Instant;

use super::{Payment, PaymentBody, called_off, declined, sent_back, sql};
use crate::app::App;
use crate::db::{self, Tx};
use crate::fault;
use crate::operation::Stop;
use crate::orders::{self, Order};
use crate::problem::Problem;
use crate::{outbox, refunds};

/// Settles the payment of an attempt, and finishes its record; tries until then.
///
/// # Errors
/// [`Stop::Taken`] when the fence is lost: then somebody else has settled, and what the record
/// says counts.
pub async fn settle(
    app: &App,
    attempt: &Attempt,
    payment: &Payment,
    outcome: &ChargeOutcome,
    until: Instant,
) -> Result<Finished, Stop> {
    #[cfg(feature = "faults")]
    if let Some(settled) = super::planted::settle(app, attempt, payment, outcome).await {
        return settled;
    }
    db::insisting(until, || async {
        let mut tx = app.db.begin().await?;
        if !postgres::lock(&mut tx, attempt).await? {
            return Err(Stop::Taken);
        }
        let finished = settle_in(app, &mut tx, attempt, payment, outcome).await?;
        fault::point("before_settle_commit").await?;
        tx.commit().await?;
        fault::point("settle_committed").await?;
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
    payment: &Payment,
    outcome: &ChargeOutcome,
) -> Result<Finished, Stop> {
    let order = orders::sql::lock(tx, payment.order_id).await?.ok_or_else(broken)?;
    let mut payment = sql::lock(tx, payment.id).await?.ok_or_else(broken)?;
    if *outcome == ChargeOutcome::Cancelled && payment.status == PaymentStatus::Processing {
        sql::set_status(tx, payment.id, payment.status, PaymentStatus::Unknown).await?;
        payment.status = PaymentStatus::Unknown;
    }
    let status = payment
        .status
        .settle(outcome)
        .map_err(|illegal| Stop::Passing(Problem::internal(&illegal)))?;
    let misdirected =
        outcome.status() == PaymentStatus::Succeeded && order.state().pay(payment.id).is_err();
    if !sql::settle(tx, &payment, outcome, misdirected).await? {
        return Err(Stop::Taken);
    }
    let payment = Payment { status, misdirected, ..payment };
    effects(app, tx, &order, &payment, outcome).await?;
    finish(app, tx, attempt, &payment, outcome).await
}

/// What the outcome means for order, ledger and outbox.
pub(super) async fn effects(
    app: &App,
    tx: &mut Tx,
    order: &Order,
    payment: &Payment,
    outcome: &ChargeOutcome,
) -> Result<(), Stop> {
    match outcome {
        ChargeOutcome::Succeeded { .. } => {
            let transaction = LedgerTransactionId::from_uuid(app.clock.new_id());
            let entry = Entry::charge(payment.amount)
                .map_err(|error| Stop::Passing(Problem::internal(&error)))?;
            sql::post(tx, transaction.uuid(), &entry, payment.id, None).await?;
            if payment.misdirected {
                return refunds::automatic(tx, app, order, payment).await;
            }
            if !orders::sql::set_status(tx, order, domain::OrderStatus::Paid).await? {
                return Err(Stop::Taken);
            }
            outbox::order_paid(tx, app, order, payment).await?;
        }
        ChargeOutcome::Declined { code, .. } => {
            orders::sql::unlink_payment(tx, order.id, payment.id).await?;
            outbox::payment_declined(tx, app, order, payment.id, code.as_str()).await?;
        }
        ChargeOutcome::Cancelled => {
            orders::sql::unlink_payment(tx, order.id, payment.id).await?;
        }
    }
    Ok(())
}

pub(super) async fn finish(
    app: &App,
    tx: &mut Tx,
    attempt: &Attempt,
    payment: &Payment,
    outcome: &ChargeOutcome,
) -> Result<Finished, Stop> {
    let (reply, ended) = reply(payment, outcome)?;
    let path = payment.path();
    let ending = Ending {
        outcome: ended,
        reply: &reply,
        resource: Some(&path),
        retention: app.limits.retention,
    };
    let expires_at = postgres::finish(tx, attempt, &ending).await?.ok_or(Stop::Taken)?;
    // Fingerprint and marks are those of the record, which this transaction has locked.
    let (record, _) = postgres::find(tx, &attempt.identity).await?.ok_or_else(broken)?;
    tracing::info!(target: "payonce::flow", step = "settle", payment = %payment.id,
        status = payment.status.as_str(), "outcome and reply committed together");
    Ok(Finished {
        fingerprint: record.fingerprint,
        marks: record.marks,
        outcome: ended,
        reply,
        expires_at,
        resource: Some(path),
    })
}

/// The answer to the original request.
fn reply(payment: &Payment, outcome: &ChargeOutcome) -> Result<(Reply, Outcome), Stop> {
    let request = format!("/v1/orders/{}/payments", payment.order_id);
    match outcome {
        ChargeOutcome::Succeeded { .. } if payment.misdirected => {
            Ok((sent_back(payment).at(&request).to_reply(), Outcome::Failed))
        }
        ChargeOutcome::Succeeded { .. } => {
            let body = serde_json::to_vec(&PaymentBody::from(payment.clone()))
                .map_err(|error| Stop::Passing(Problem::internal(&error)))?;
            let reply = Reply::new(201, "application/json", body)
                .with(ReplyHeader::Location, payment.path());
            Ok((reply, Outcome::Completed))
        }
        ChargeOutcome::Declined { code, .. } => {
            Ok((declined(payment, *code).at(&request).to_reply(), Outcome::Failed))
        }
        ChargeOutcome::Cancelled => {
            Ok((called_off(payment).at(&request).to_reply(), Outcome::Failed))
        }
    }
}

fn broken() -> Stop {
    Stop::Passing(Problem::internal(&"a record, an order or a payment is missing"))
}
