//! A refund: what we know of money that somebody else gives back.
//!
//! ```text
//! processing ──▶ succeeded | failed
//!      └── the answer was lost ──▶ unknown ──▶ succeeded | failed
//! ```

mod plan;

pub use plan::{InvalidRefund, RefundRefusal, Refundable, plan_refund};

use crate::words::words;

words! {
    /// How far a refund is.
    RefundStatus {
        /// The refund is being made.
        Processing = "processing",
        /// The refund may or may not have been made; somebody has to ask.
        Unknown = "unknown",
        /// The money went back.
        Succeeded = "succeeded",
        /// The money stayed.
        Failed = "failed",
    }
}

/// What the provider says became of a refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefundOutcome {
    /// The money went back.
    Succeeded {
        /// The provider's name for the refund.
        provider_refund_id: String,
    },
    /// The money stayed, and will stay.
    Failed {
        /// The provider's name for the refund, where it has one.
        provider_refund_id: Option<String>,
    },
}

/// News that does not fit what is known; the refund stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a refund that is {from} does not become {to}")]
pub struct IllegalRefundTransition {
    /// What the refund is.
    pub from: RefundStatus,
    /// What the news would make of it.
    pub to: RefundStatus,
}

impl RefundStatus {
    /// Applies the provider's answer. A final refund never changes.
    pub const fn settle(self, outcome: &RefundOutcome) -> Result<Self, IllegalRefundTransition> {
        let to = outcome.status();
        match self {
            Self::Processing | Self::Unknown => Ok(to),
            Self::Succeeded | Self::Failed => Err(IllegalRefundTransition { from: self, to }),
        }
    }

    /// Nobody knows any more what became of the refund.
    pub const fn lose_answer(self) -> Result<Self, IllegalRefundTransition> {
        match self {
            Self::Processing => Ok(Self::Unknown),
            Self::Unknown | Self::Succeeded | Self::Failed => {
                Err(IllegalRefundTransition { from: self, to: Self::Unknown })
            }
        }
    }

    /// Whether the fate of the money is still open.
    pub const fn is_open(self) -> bool {
        match self {
            Self::Processing | Self::Unknown => true,
            Self::Succeeded | Self::Failed => false,
        }
    }
}

impl RefundOutcome {
    /// The status this answer leads to.
    pub const fn status(&self) -> RefundStatus {
        match self {
            Self::Succeeded { .. } => RefundStatus::Succeeded,
            Self::Failed { .. } => RefundStatus::Failed,
        }
    }
}

impl IllegalRefundTransition {
    /// Whether the news is old rather than contradictory: the refund is already what it says.
    pub fn is_repeat(self) -> bool {
        self.from == self.to
    }
}
