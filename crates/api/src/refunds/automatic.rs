//! Money that arrived for an order that cannot take it goes back: once, whole, and by itself.
//!
//! It needs no machinery of its own. A refund and an unfinished record are written in the
//! transaction that learned of the money, filed under a scope that no account has, with a lease
//! that is over: recovery finds it like any other operation whose owner is gone, and settles it.

use std::time::Duration;

use domain::{Money, PaymentId, RefundId, RefundStatus};
use idempotency::fingerprint::{Body, Parts};
use idempotency::{Identity, Key, Scope, postgres};

use super::create::Create;
use super::{Refund, sql};
use crate::app::App;
use crate::db::Tx;
use crate::operation::{Operation, Stop};
use crate::orders::Order;
use crate::payments::Payment;
use crate::problem::Problem;
use crate::provider::provider_key;

/// Begins the automatic refund of a payment that has succeeded, if that was not done before.
/// Order and payment are locked in `tx`; the payment's row is there and is misdirected.
///
/// # Errors
/// Those of the database.
pub async fn automatic(
    tx: &mut Tx,
    app: &App,
    order: &Order,
    payment: &Payment,
) -> Result<(), Stop> {
    let made_by = identity(payment.id);
    let amount = remaining(tx, payment).await?;
    if !amount.is_positive() || sql::is_made(tx, &made_by).await? {
        return Ok(());
    }
    let refund = Refund {
        id: RefundId::from_uuid(app.clock.new_id()),
        payment_id: payment.id,
        order_id: order.id,
        account_id: payment.account_id,
        provider_key: provider_key(made_by.scope.as_bytes(), made_by.key.as_str(), Create::NAME),
        charge_key: payment.provider_key.clone(),
        status: RefundStatus::Processing,
        amount,
        reason: Some("The order could not take this payment.".to_owned()),
        restock: false,
        automatic: true,
        created_at: app.clock.now(),
    };
    insert(tx, app, &refund, made_by).await?;
    metrics::counter!("payonce_misdirected_payments_total").increment(1);
    tracing::warn!(target: "payonce::flow", step = "send_back", payment = %payment.id,
        refund = %refund.id, order = %order.id, "the order cannot take this money; it goes back");
    Ok(())
}

/// Whose key an automatic refund is filed under: one for each payment, and nobody's own.
pub(super) fn identity(payment: PaymentId) -> Identity {
    Identity {
        scope: Scope::digest(format!("automatic refund of {payment}").as_bytes()),
        key: Key::from_bare(b"automatic-refund").expect("these letters make a key"),
    }
}

async fn insert(tx: &mut Tx, app: &App, refund: &Refund, made_by: Identity) -> Result<(), Stop> {
    let path = format!("/v1/payments/{}/refunds", refund.payment_id);
    let parts =
        Parts { method: "POST", path: &path, query: "", content_type: None, body: Body::Empty };
    let claim = app.fingerprinter.claim(made_by, parts, &[]);
    let (subject, resource) = (refund.id.uuid(), refund.path());
    let lease = Duration::ZERO;
    postgres::insert_processing(tx, &claim, Create::NAME, subject, &resource, lease).await?;
    sql::insert(tx, refund, &claim.identity).await?;
    Ok(())
}

/// The whole amount, unless part of it went back another way.
async fn remaining(tx: &mut Tx, payment: &Payment) -> Result<Money, Stop> {
    let open = sql::open(tx, payment).await?;
    let left = payment.amount.checked_sub(payment.refunded);
    left.and_then(|left| left.checked_sub(open))
        .map_err(|error| Stop::Passing(Problem::internal(&error)))
}
