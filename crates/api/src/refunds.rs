//! Refunds: money that somebody else gives back for us, never more than was paid.

pub mod automatic;
pub mod create;
mod errand;
mod plan;
pub mod read;
pub mod settle;
pub mod sql;

use domain::{AccountId, Money, OrderId, PaymentId, RefundId, RefundStatus};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

pub use automatic::automatic;

use crate::money::MoneyBody;
use crate::problem::{Code, Problem};

/// A refund as rows have it.
#[derive(Debug, Clone)]
pub struct Refund {
    /// Its id.
    pub id: RefundId,
    /// Whose money goes back.
    pub payment_id: PaymentId,
    /// What was paid with it.
    pub order_id: OrderId,
    /// Who asked for it; with an automatic one, who paid.
    pub account_id: AccountId,
    /// The key under which the provider knows it, the same on every attempt.
    pub provider_key: String,
    /// The key under which the provider knows the charge.
    pub charge_key: String,
    /// How far it is.
    pub status: RefundStatus,
    /// How much.
    pub amount: Money,
    /// As given.
    pub reason: Option<String>,
    /// Whether the goods go back into stock with it.
    pub restock: bool,
    /// Nobody asked for it: the order could not take the money.
    pub automatic: bool,
    /// When it was begun.
    pub created_at: OffsetDateTime,
}

impl Refund {
    /// Where it can be seen.
    pub fn path(&self) -> String {
        format!("/v1/refunds/{}", self.id)
    }
}

/// A refund on the wire.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Refund)]
pub struct RefundBody {
    /// `ref_…`
    #[schema(value_type = String, example = "ref_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub id: RefundId,
    /// Whose money goes back.
    #[schema(value_type = String, example = "pay_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub payment_id: PaymentId,
    /// `processing`, `unknown`, `succeeded`, `failed`
    #[schema(value_type = String, example = "succeeded")]
    pub status: RefundStatus,
    /// How much.
    pub amount: MoneyBody,
    /// As given.
    #[schema(example = "One of the two came broken.")]
    pub reason: Option<String>,
    /// Whether the goods go back into stock with it.
    pub restock: bool,
    /// When it was begun.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}

impl From<Refund> for RefundBody {
    fn from(refund: Refund) -> Self {
        Self {
            id: refund.id,
            payment_id: refund.payment_id,
            status: refund.status,
            amount: refund.amount.into(),
            reason: refund.reason,
            restock: refund.restock,
            created_at: refund.created_at,
        }
    }
}

/// What a refund is answered with that the provider did not make and never will.
pub fn failed(refund: &Refund) -> Problem {
    Problem::new(
        Code::InvalidTransition,
        "The provider did not make this refund. No money moved. Ask again with a new key.",
    )
    .member("state", refund.status.as_str())
    .member("refund_id", refund.id.to_string())
    .member("payment_id", refund.payment_id.to_string())
    .resource(&refund.path())
}
