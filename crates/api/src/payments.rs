//! Payments: charges that somebody else makes, each at most once.

mod charge;
pub mod create;
#[cfg(feature = "faults")]
pub(crate) mod planted;
pub mod read;
pub mod recover;
pub mod settle;
pub mod sql;

use domain::{AccountId, DeclineCode, Money, OrderId, PaymentId, PaymentStatus};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::money::MoneyBody;
use crate::problem::{Code, Problem};

/// A payment as rows have it.
#[derive(Debug, Clone)]
pub struct Payment {
    /// Its id.
    pub id: PaymentId,
    /// What it pays.
    pub order_id: OrderId,
    /// Who pays.
    pub account_id: AccountId,
    /// The key under which the provider knows it, the same on every attempt.
    pub provider_key: String,
    /// How far it is.
    pub status: PaymentStatus,
    /// How much.
    pub amount: Money,
    /// What succeeded refunds come to.
    pub refunded: Money,
    /// The provider's token.
    pub payment_method: String,
    /// The provider's name for the charge, once it is known.
    pub charge_id: Option<String>,
    /// Why it was declined.
    pub decline_code: Option<DeclineCode>,
    /// It arrived for an order that could not take it, and goes back by itself.
    pub misdirected: bool,
    /// When it was begun.
    pub created_at: OffsetDateTime,
}

impl Payment {
    /// Where it can be seen.
    pub fn path(&self) -> String {
        format!("/v1/payments/{}", self.id)
    }
}

/// A payment on the wire.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Payment)]
pub struct PaymentBody {
    /// `pay_…`
    #[schema(value_type = String, example = "pay_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub id: PaymentId,
    /// What it pays.
    #[schema(value_type = String, example = "ord_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub order_id: OrderId,
    /// `processing`, `unknown`, `succeeded`, `declined`, `cancelled`
    #[schema(value_type = String, example = "succeeded")]
    pub status: PaymentStatus,
    /// How much.
    pub amount: MoneyBody,
    /// What succeeded refunds come to.
    pub refunded: MoneyBody,
    /// The provider's token.
    #[schema(example = "pm_card_ok")]
    pub payment_method: String,
    /// When it was begun.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}

impl From<Payment> for PaymentBody {
    fn from(payment: Payment) -> Self {
        Self {
            id: payment.id,
            order_id: payment.order_id,
            status: payment.status,
            amount: payment.amount.into(),
            refunded: payment.refunded.into(),
            payment_method: payment.payment_method,
            created_at: payment.created_at,
        }
    }
}

/// What a declined card is answered with.
pub fn declined(payment: &Payment, code: DeclineCode) -> Problem {
    let (code, detail) = match code {
        DeclineCode::CardDeclined => (
            Code::CardDeclined,
            "The bank said no. Nothing was charged. Try another card with a new key.",
        ),
        DeclineCode::InsufficientFunds => (
            Code::InsufficientFunds,
            "The card does not hold the amount. Nothing was charged. Try another card with a new key.",
        ),
    };
    Problem::new(code, detail)
        .member("payment_id", payment.id.to_string())
        .member("order_id", payment.order_id.to_string())
}

/// What a payment is answered with that the provider promised never to make.
pub fn called_off(payment: &Payment) -> Problem {
    Problem::new(
        Code::InvalidTransition,
        "The provider could not be reached in time, so the charge was called off. Nothing was charged. Pay with a new key.",
    )
    .member("state", "cancelled")
    .member("payment_id", payment.id.to_string())
    .resource(&payment.path())
}

/// What a payment is answered with whose money the order could not take.
pub fn sent_back(payment: &Payment) -> Problem {
    Problem::new(
        Code::InvalidTransition,
        "The money arrived when the order could no longer take it. All of it goes back by itself.",
    )
    .member("state", payment.status.as_str())
    .member("payment_id", payment.id.to_string())
    .resource(&payment.path())
}
