//! What the provider tells about a refund: one of ours, or one that was made there without us.
//!
//! The first kind settles like the answer to our own request. The second kind is written down
//! once, by the provider's own id, as money that went back.

use domain::{Money, OrderId, PaymentId, PaymentStatus, RefundId, RefundOutcome, RefundStatus};
use idempotency::{Identity, Key, Scope, postgres};
use serde_json::Value;
use time::Duration;

use super::{Outcome, sql};
use crate::app::App;
use crate::db::Tx;
use crate::operation::Stop;
use crate::orders::{self, Order};
use crate::payments::{self, Payment};
use crate::problem::{Code, Problem};
use crate::provider::client;
use crate::refunds::{self, Refund, settle};

/// So long after a refund the event of its charge may still be on its way.
const CHARGE_EVENT_LATE: Duration = Duration::hours(1);

/// Takes in `refund.…`: the last part of its type, and the refund.
///
/// # Errors
/// When it cannot be worked on now; nothing may be kept then.
pub async fn take(app: &App, tx: &mut Tx, status: &str, data: &Value) -> Result<Outcome, Stop> {
    if !matches!(status, "succeeded" | "failed") {
        return Ok(Outcome::Ignored("not final"));
    }
    let Ok(told) = serde_json::from_value::<client::Refund>(data.clone()) else {
        return Ok(Outcome::Anomaly("the refund cannot be read"));
    };
    let Some(outcome) = told.outcome.clone().filter(|told| told.status().as_str() == status) else {
        return Ok(Outcome::Anomaly("type and refund differ"));
    };
    match refunds::sql::by_provider_key(tx, &told.provider_key).await? {
        Some((id, made_by)) => ours(app, tx, id, &made_by, &told, &outcome).await,
        None => theirs(app, tx, &told, &outcome).await,
    }
}

async fn ours(
    app: &App,
    tx: &mut Tx,
    id: RefundId,
    made_by: &Identity,
    told: &client::Refund,
    outcome: &RefundOutcome,
) -> Result<Outcome, Stop> {
    let refund = refunds::sql::get(tx, id).await?.ok_or_else(again)?;
    if let Some(difference) = difference(told, &refund, outcome) {
        return Ok(Outcome::Anomaly(difference));
    }
    if let Some(attempt) = postgres::seize(tx, made_by).await? {
        settle::settle_in(app, tx, &attempt, &refund, outcome).await?;
        return Ok(Outcome::Applied);
    }
    let refund = refunds::sql::get(tx, id).await?.ok_or_else(again)?;
    if refund.status.is_open() {
        return Err(again());
    }
    Ok(match outcome {
        _ if refund.status == outcome.status() => Outcome::Ignored("known already"),
        RefundOutcome::Succeeded { .. } => Outcome::Anomaly("refunded after the end"),
        RefundOutcome::Failed { .. } => Outcome::Ignored("late"),
    })
}

/// A key that was cancelled before a refund came has neither amount nor order.
fn difference(
    told: &client::Refund,
    refund: &Refund,
    outcome: &RefundOutcome,
) -> Option<&'static str> {
    let RefundOutcome::Succeeded { .. } = outcome else { return None };
    if told.amount != Some(refund.amount) {
        return Some("amount or currency differs");
    }
    let is_ours = told.reference.as_deref() == Some(&*refund.order_id.to_string());
    (!is_ours).then_some("order differs")
}

/// Made at the provider without us.
async fn theirs(
    app: &App,
    tx: &mut Tx,
    told: &client::Refund,
    outcome: &RefundOutcome,
) -> Result<Outcome, Stop> {
    if outcome.status() != RefundStatus::Succeeded {
        return Ok(Outcome::Ignored("no such refund"));
    }
    let Some(payment) = sql::payment_of_charge(tx, told.charge_id.as_deref()).await? else {
        return too_early(app, tx, told).await;
    };
    let Some((order, payment)) = locked(tx, payment).await? else { return Err(again()) };
    if sql::is_refund_known(tx, &told.id).await? {
        return Ok(Outcome::Ignored("known already"));
    }
    if told.reference.as_ref().is_some_and(|reference| *reference != order.id.to_string()) {
        return Ok(Outcome::Anomaly("order differs"));
    }
    match fitting(tx, told, &payment).await? {
        Ok(amount) => write(app, tx, told, &order, &payment, amount, outcome).await,
        Err(anomaly) => Ok(Outcome::Anomaly(anomaly)),
    }
}

/// The charge is not known by its id yet while its own outcome is open, or before its own event has
/// come, if it was made at the provider too: that comes first. What never comes is an anomaly.
async fn too_early(app: &App, tx: &mut Tx, told: &client::Refund) -> Result<Outcome, Stop> {
    let order = told.reference.as_deref().and_then(|reference| reference.parse::<OrderId>().ok());
    let Some(order) = order else { return Ok(Outcome::Anomaly("no such charge")) };
    let payments = payments::sql::of_order(tx, order).await?;
    // Open, or settled between the two looks: either way its turn comes.
    let may_come = |payment: &Payment| {
        payment.status.is_open()
            || (told.charge_id.is_some() && payment.charge_id == told.charge_id)
    };
    let is_fresh = app.clock.now() - told.created_at < CHARGE_EVENT_LATE;
    let awaited = is_fresh && orders::sql::get(tx, order).await?.is_some();
    match awaited || payments.iter().any(may_come) {
        true => Err(again()),
        false => Ok(Outcome::Anomaly("no such charge")),
    }
}

/// Order, then payment: the order of all locks.
async fn locked(tx: &mut Tx, payment: PaymentId) -> Result<Option<(Order, Payment)>, Stop> {
    let Some(Payment { order_id, .. }) = payments::sql::get(tx, payment).await? else {
        return Ok(None);
    };
    let order = orders::sql::lock(tx, order_id).await?;
    Ok(order.zip(payments::sql::lock(tx, payment).await?))
}

/// The amount, if so much is left of the payment. What a refund of ours that is still open holds
/// back may be free in a moment: then the event has to come again, or it would be lost.
async fn fitting(
    tx: &mut Tx,
    told: &client::Refund,
    payment: &Payment,
) -> Result<Result<Money, &'static str>, Stop> {
    let Some(amount) = told.amount.filter(|amount| amount.currency == payment.amount.currency)
    else {
        return Ok(Err("amount or currency differs"));
    };
    if payment.status != PaymentStatus::Succeeded {
        return Ok(Err("nothing was captured"));
    }
    let open = refunds::sql::open(tx, payment).await?;
    let fits = |left: Option<Money>| left.is_some_and(|left| amount.amount <= left.amount);
    let left = payment.amount.checked_sub(payment.refunded).ok();
    if !amount.is_positive() || !fits(left) {
        return Ok(Err("more than was captured"));
    }
    match fits(left.and_then(|left| left.checked_sub(open).ok())) {
        true => Ok(Ok(amount)),
        false => Err(again()),
    }
}

async fn write(
    app: &App,
    tx: &mut Tx,
    told: &client::Refund,
    order: &Order,
    payment: &Payment,
    amount: Money,
    outcome: &RefundOutcome,
) -> Result<Outcome, Stop> {
    let refund = Refund {
        id: RefundId::from_uuid(app.clock.new_id()),
        payment_id: payment.id,
        order_id: order.id,
        account_id: payment.account_id,
        provider_key: told.provider_key.clone(),
        charge_key: payment.provider_key.clone(),
        status: RefundStatus::Processing,
        amount,
        reason: Some("Refunded at the provider.".to_owned()),
        restock: false,
        automatic: false,
        created_at: app.clock.now(),
    };
    refunds::sql::insert(tx, &refund, &identity(&told.id)).await?;
    refunds::sql::settle(tx, &refund, outcome).await?;
    let refund = Refund { status: outcome.status(), ..refund };
    settle::gone_back(app, tx, order, &refund).await?;
    Ok(Outcome::Applied)
}

/// Nobody's own key: one for each refund that the provider made by itself.
fn identity(provider_refund_id: &str) -> Identity {
    Identity {
        scope: Scope::digest(format!("refund {provider_refund_id} at the provider").as_bytes()),
        key: Key::from_bare(b"provider-refund").expect("these letters make a key"),
    }
}

/// Not now: the provider sends it again.
fn again() -> Stop {
    let detail = "Something it depends on is not settled yet. Send the event again.";
    Stop::Passing(Problem::new(Code::Busy, detail))
}
