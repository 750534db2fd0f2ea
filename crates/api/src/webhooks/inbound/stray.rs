//! Money for an order of ours under a key that no payment has: the key was given back, because
//! everything said that nothing had been sent. It is written down, and goes back by itself.

use domain::{Entry, LedgerTransactionId, Money, OrderId, PaymentId, PaymentStatus};
use idempotency::{Identity, Key, Scope};

use super::{Outcome, sql};
use crate::app::App;
use crate::db::Tx;
use crate::operation::Stop;
use crate::orders::{self, Order};
use crate::payments::{self, Payment};
use crate::provider::client::Charge;
use crate::refunds;

/// Takes in a charge that succeeded.
///
/// # Errors
/// When it cannot be worked on now; nothing may be kept then.
pub async fn take(app: &App, tx: &mut Tx, charge: &Charge) -> Result<Outcome, Stop> {
    let reference = charge.reference.as_deref().unwrap_or_default();
    let (Ok(order), Some(amount)) = (reference.parse::<OrderId>(), charge.amount) else {
        return Ok(Outcome::Anomaly("no such payment"));
    };
    let Some(order) = orders::sql::lock(tx, order).await? else {
        return Ok(Outcome::Anomaly("no such payment"));
    };
    let Ok(entry) = Entry::charge(amount) else {
        return Ok(Outcome::Anomaly("a charge of nothing"));
    };
    let payment = payment(app, &order, charge, amount);
    sql::insert_stray(tx, &payment, &identity(&charge.provider_key)).await?;
    let transaction = LedgerTransactionId::from_uuid(app.clock.new_id());
    payments::sql::post(tx, transaction.uuid(), &entry, payment.id, None).await?;
    refunds::automatic(tx, app, &order, &payment).await?;
    Ok(Outcome::Applied)
}

fn payment(app: &App, order: &Order, charge: &Charge, amount: Money) -> Payment {
    Payment {
        id: PaymentId::from_uuid(app.clock.new_id()),
        order_id: order.id,
        account_id: order.account_id,
        provider_key: charge.provider_key.clone(),
        status: PaymentStatus::Succeeded,
        amount,
        refunded: Money::zero(amount.currency),
        payment_method: "unknown".to_owned(),
        charge_id: Some(charge.id.clone()),
        decline_code: None,
        misdirected: true,
        created_at: app.clock.now(),
    }
}

/// Nobody's own key: one for each charge.
fn identity(provider_key: &str) -> Identity {
    Identity {
        scope: Scope::digest(format!("stray charge {provider_key}").as_bytes()),
        key: Key::from_bare(b"stray-charge").expect("these letters make a key"),
    }
}
