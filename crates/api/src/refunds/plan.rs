//! How much goes back, decided with order and payment locked.

use domain::{Money, RefundRefusal, Refundable, plan_refund};
use sqlx::PgConnection;

use super::sql;
use crate::operation::Stop;
use crate::payments::Payment;
use crate::problem::{Code, Problem};

/// What is asked for.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    /// None: what remains.
    pub(super) amount: Option<Money>,
    pub(super) reason: Option<String>,
    pub(super) restock: bool,
}

/// The amount of the refund. Its record, order and payment are locked.
pub(super) async fn plan(
    conn: &mut PgConnection,
    payment: &Payment,
    wish: &Wish,
) -> Result<Money, Stop> {
    payment.status.check_refundable().map_err(|_| not_captured(payment))?;
    let open = sql::open(conn, payment).await?;
    // Goods of an order that could not take the money are not this payment's to return.
    let restocked = payment.misdirected || sql::is_restocked(conn, payment.order_id).await?;
    let refundable = Refundable::new(payment.amount, payment.refunded, open, restocked)
        .map_err(|error| Stop::Passing(Problem::internal(&error)))?;
    plan_refund(&refundable, wish.amount, wish.restock).map_err(|refusal| refused(payment, refusal))
}

fn not_captured(payment: &Payment) -> Stop {
    let state = payment.status.as_str();
    let about = |problem: Problem| problem.member("state", state).resource(&payment.path());
    if payment.status.is_open() {
        return Stop::Passing(about(Problem::new(
            Code::PaymentInProgress,
            "This payment is still under way. It can be refunded once it has succeeded.",
        )));
    }
    Stop::Refused(about(Problem::new(
        Code::InvalidTransition,
        format!("Nothing was charged: the payment is {state}."),
    )))
}

fn refused(payment: &Payment, refusal: RefundRefusal) -> Stop {
    match refusal {
        RefundRefusal::Invalid(invalid) => {
            Stop::Passing(Problem::invalid(invalid.pointer(), invalid.to_string()))
        }
        RefundRefusal::NothingLeft => Stop::Refused(too_large(
            payment,
            Money::zero(payment.amount.currency),
            "All of this payment went back before.".to_owned(),
        )),
        RefundRefusal::TooLarge { remaining } => Stop::Refused(too_large(
            payment,
            remaining,
            format!("{remaining} of this payment can still be refunded."),
        )),
        RefundRefusal::RefundInProgress => Stop::Passing(
            Problem::new(
                Code::RefundInProgress,
                "Another refund of this payment is under way. Wait for its end.",
            )
            .member("payment_id", payment.id.to_string())
            .resource(&payment.path()),
        ),
    }
}

fn too_large(payment: &Payment, remaining: Money, detail: String) -> Problem {
    let Money { amount, currency } = remaining;
    let remaining = serde_json::json!({ "amount": amount, "currency": currency.code() });
    Problem::new(Code::RefundTooLarge, detail)
        .member("remaining", remaining)
        .member("payment_id", payment.id.to_string())
}
