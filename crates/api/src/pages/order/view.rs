//! The parts of the order page.

use domain::{Money, OrderId, RefundStatus};

use crate::pages::marks::{Chip, Mark};
use crate::pages::moment::Moment;
use crate::pages::orders::number;

#[derive(Debug, Clone)]
pub struct OrderView {
    pub id: OrderId,
    pub lines: Vec<OrderLine>,
    pub total: Money,
    pub email: Option<String>,
}

#[derive(Debug, Clone)]
pub struct OrderLine {
    pub name: String,
    pub quantity: u32,
    pub amount: Money,
}

/// Where the order and its money are. `card` reads "card ending 4242".
#[derive(Debug, Clone)]
pub enum State {
    Pending { until: Moment },
    Processing,
    Unknown,
    Declined { for_want_of_funds: bool },
    Paid { card: String },
    PartlyRefunded { back: Money, card: String },
    Refunded { card: String },
    Cancelled,
    Expired,
}

/// One question to the provider, and what came of it.
#[derive(Debug, Clone)]
pub struct ProviderStep {
    pub at: Moment,
    pub says: String,
    pub chip: Chip,
}

/// One press of Pay, or several that did the same, and what it did.
#[derive(Debug, Clone)]
pub struct Press {
    /// Of the first of them.
    pub number: i64,
    pub times: i64,
    pub at: Moment,
    pub says: String,
    pub chip: Chip,
}

#[derive(Debug, Clone)]
pub struct RefundLine {
    pub amount: Money,
    pub status: RefundStatus,
    pub at: Moment,
}

/// The rest of a payment, which may go back under this key.
#[derive(Debug, Clone)]
pub struct RefundOffer {
    pub key: String,
    pub amount: Money,
}

/// Money that arrived for an order that could not take it.
#[derive(Debug, Clone)]
pub struct Stray {
    pub amount: Money,
    pub at: Moment,
    pub refund: RefundStatus,
}

impl OrderView {
    pub(in crate::pages) fn number(&self) -> String {
        number(self.id)
    }

    pub(in crate::pages) fn href(&self) -> String {
        format!("/orders/{}", self.id)
    }

    pub(in crate::pages) fn inspect(&self) -> String {
        format!("/inspect?q={}", self.id)
    }
}

impl State {
    pub(in crate::pages) const fn mark(&self) -> Mark {
        match self {
            Self::Pending { .. } | Self::Processing => Mark::Quiet,
            Self::Unknown => Mark::Unsure,
            Self::Declined { .. } | Self::Cancelled | Self::Expired => Mark::Refused,
            Self::Paid { .. } | Self::PartlyRefunded { .. } => Mark::Once,
            Self::Refunded { .. } => Mark::Returned,
        }
    }
}

impl RefundLine {
    pub(in crate::pages) const fn says(&self) -> &'static str {
        match self.status {
            RefundStatus::Processing => "Going back",
            RefundStatus::Unknown => "Going back, not confirmed yet",
            RefundStatus::Succeeded => "Went back",
            RefundStatus::Failed => "Did not go back",
        }
    }

    /// Only money that went back, or may have, is taken off.
    pub(in crate::pages) fn figure(&self) -> String {
        match self.status {
            RefundStatus::Failed => self.amount.to_string(),
            RefundStatus::Processing | RefundStatus::Unknown | RefundStatus::Succeeded => {
                format!("− {}", self.amount)
            }
        }
    }
}

impl Stray {
    pub(in crate::pages) fn says(&self) -> String {
        let (amount, at) = (self.amount, self.at.minute());
        let went = match self.refund {
            RefundStatus::Processing => "We are sending it back in full.",
            RefundStatus::Unknown => {
                "We are sending it back in full and wait for the word of the provider."
            }
            RefundStatus::Succeeded => "We sent it back in full, by ourselves and once.",
            RefundStatus::Failed => "Sending it back failed; somebody here has to look at it.",
        };
        format!("{amount} reached us at {at} UTC, when this order could no longer take it. {went}")
    }
}
