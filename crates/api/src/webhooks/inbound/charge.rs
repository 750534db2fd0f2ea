//! What the provider tells about a charge.
//!
//! A final word settles the payment exactly as the answer to our own request would: whoever comes
//! first takes the record's next fence and stores the reply, whoever comes second finds it there.

use domain::{ChargeOutcome, PaymentId};
use idempotency::postgres;
use serde_json::Value;

use super::{Outcome, stray};
use crate::app::App;
use crate::db::Tx;
use crate::operation::Stop;
use crate::payments::{self, Payment, settle};
use crate::problem::{Code, Problem};
use crate::provider::client::Charge;

/// Takes in `charge.…`: the last part of its type, and the charge.
///
/// # Errors
/// When it cannot be worked on now; nothing may be kept then.
pub async fn take(app: &App, tx: &mut Tx, status: &str, data: &Value) -> Result<Outcome, Stop> {
    if !matches!(status, "succeeded" | "declined" | "cancelled") {
        return Ok(Outcome::Ignored("not final"));
    }
    let Ok(charge) = serde_json::from_value::<Charge>(data.clone()) else {
        return Ok(Outcome::Anomaly("the charge cannot be read"));
    };
    match &charge.outcome {
        Some(outcome) if outcome.status().as_str() == status => {
            apply(app, tx, &charge, outcome).await
        }
        _ => Ok(Outcome::Anomaly("type and charge differ")),
    }
}

async fn apply(
    app: &App,
    tx: &mut Tx,
    charge: &Charge,
    outcome: &ChargeOutcome,
) -> Result<Outcome, Stop> {
    let known = payments::sql::by_provider_key(tx, &charge.provider_key).await?;
    let Some((id, made_by)) = known else { return unknown(app, tx, charge, outcome).await };
    let payment = payments::sql::get(tx, id).await?.ok_or_else(again)?;
    if let Some(difference) = difference(charge, &payment, outcome) {
        return Ok(Outcome::Anomaly(difference));
    }
    match postgres::seize(tx, &made_by).await? {
        Some(attempt) => {
            settle::settle_in(app, tx, &attempt, &payment, outcome).await?;
            Ok(Outcome::Applied)
        }
        None => settled_before(tx, id, outcome).await,
    }
}

/// A key that was cancelled before a charge came has neither amount nor order.
fn difference(charge: &Charge, payment: &Payment, outcome: &ChargeOutcome) -> Option<&'static str> {
    if *outcome == ChargeOutcome::Cancelled {
        return None;
    }
    if charge.amount != Some(payment.amount) {
        return Some("amount or currency differs");
    }
    if charge.reference.as_deref() != Some(&*payment.order_id.to_string()) {
        return Some("order differs");
    }
    let known = payment.charge_id.as_deref();
    known.is_some_and(|known| known != charge.id).then_some("charge differs")
}

/// A final payment stays what it is, whatever comes late.
async fn settled_before(
    tx: &mut Tx,
    id: PaymentId,
    outcome: &ChargeOutcome,
) -> Result<Outcome, Stop> {
    let payment = payments::sql::get(tx, id).await?.ok_or_else(again)?;
    if payment.status.is_open() {
        return Err(again());
    }
    if payment.status == outcome.status() {
        return Ok(Outcome::Ignored("known already"));
    }
    match outcome {
        // The one contradiction that is about money we do not know of.
        ChargeOutcome::Succeeded { .. } => Ok(Outcome::Anomaly("charged after the end")),
        ChargeOutcome::Declined { .. } | ChargeOutcome::Cancelled => Ok(Outcome::Ignored("late")),
    }
}

/// Nothing of ours has this key (any more).
async fn unknown(
    app: &App,
    tx: &mut Tx,
    charge: &Charge,
    outcome: &ChargeOutcome,
) -> Result<Outcome, Stop> {
    match outcome {
        ChargeOutcome::Succeeded { .. } => stray::take(app, tx, charge).await,
        ChargeOutcome::Declined { .. } | ChargeOutcome::Cancelled => {
            Ok(Outcome::Ignored("no such payment"))
        }
    }
}

/// Released or settled between two looks of ours: the provider sends it again.
fn again() -> Stop {
    Stop::Passing(Problem::new(Code::Busy, "This payment is changing. Send the event again."))
}
