//! A payment: what we know of a charge that somebody else makes.
//!
//! ```text
//! processing ──▶ succeeded | declined
//!      └── the answer was lost ──▶ unknown ──▶ succeeded | declined | cancelled
//! ```
//!
//! Succeeded, declined and cancelled are final. Only an unknown payment can end cancelled: that is
//! the provider's promise never to honour its key, asked for because nobody knew better.

mod method;

pub use method::{PaymentMethod, PaymentMethodError};

use crate::words::words;

words! {
    /// How far a payment is.
    PaymentStatus {
        /// The charge is being made.
        Processing = "processing",
        /// The charge may or may not have been made; somebody has to ask.
        Unknown = "unknown",
        /// The money is here.
        Succeeded = "succeeded",
        /// The provider refused; no money moved.
        Declined = "declined",
        /// The provider will never make the charge; no money moved.
        Cancelled = "cancelled",
    }
}

words! {
    /// Why the provider refused a charge.
    DeclineCode {
        /// The card was refused without a reason.
        CardDeclined = "card_declined",
        /// The card does not hold the amount.
        InsufficientFunds = "insufficient_funds",
    }
}

/// What the provider says became of a charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChargeOutcome {
    /// The money moved.
    Succeeded {
        /// The provider's name for the charge.
        charge_id: String,
    },
    /// The charge was refused.
    Declined {
        /// The provider's name for the charge.
        charge_id: String,
        /// Why.
        code: DeclineCode,
    },
    /// The provider will refuse the key for ever.
    Cancelled,
}

/// News that does not fit what is known; the payment stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a payment that is {from} does not become {to}")]
pub struct IllegalTransition {
    /// What the payment is.
    pub from: PaymentStatus,
    /// What the news would make of it.
    pub to: PaymentStatus,
}

/// There is no captured money to give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a payment that is {status} cannot be refunded")]
pub struct NotCaptured {
    /// What the payment is.
    pub status: PaymentStatus,
}

impl PaymentStatus {
    /// Applies the provider's answer. A final payment never changes, however late or often
    /// answers arrive.
    pub const fn settle(self, outcome: &ChargeOutcome) -> Result<Self, IllegalTransition> {
        let to = outcome.status();
        match (self, outcome) {
            (
                Self::Processing | Self::Unknown,
                ChargeOutcome::Succeeded { .. } | ChargeOutcome::Declined { .. },
            )
            | (Self::Unknown, ChargeOutcome::Cancelled) => Ok(to),
            (Self::Processing, ChargeOutcome::Cancelled)
            | (
                Self::Succeeded | Self::Declined | Self::Cancelled,
                ChargeOutcome::Succeeded { .. }
                | ChargeOutcome::Declined { .. }
                | ChargeOutcome::Cancelled,
            ) => Err(IllegalTransition { from: self, to }),
        }
    }

    /// Nobody knows any more what became of the charge.
    pub const fn lose_answer(self) -> Result<Self, IllegalTransition> {
        match self {
            Self::Processing => Ok(Self::Unknown),
            Self::Unknown | Self::Succeeded | Self::Declined | Self::Cancelled => {
                Err(IllegalTransition { from: self, to: Self::Unknown })
            }
        }
    }

    /// Only money that is here can be given back.
    pub const fn check_refundable(self) -> Result<(), NotCaptured> {
        match self {
            Self::Succeeded => Ok(()),
            Self::Processing | Self::Unknown | Self::Declined | Self::Cancelled => {
                Err(NotCaptured { status: self })
            }
        }
    }

    /// Whether the fate of the money is still open.
    pub const fn is_open(self) -> bool {
        match self {
            Self::Processing | Self::Unknown => true,
            Self::Succeeded | Self::Declined | Self::Cancelled => false,
        }
    }
}

impl ChargeOutcome {
    /// The status this answer leads to.
    pub const fn status(&self) -> PaymentStatus {
        match self {
            Self::Succeeded { .. } => PaymentStatus::Succeeded,
            Self::Declined { .. } => PaymentStatus::Declined,
            Self::Cancelled => PaymentStatus::Cancelled,
        }
    }

    /// The provider's name for the charge, where there is one.
    pub fn charge_id(&self) -> Option<&str> {
        match self {
            Self::Succeeded { charge_id } | Self::Declined { charge_id, .. } => Some(charge_id),
            Self::Cancelled => None,
        }
    }
}

impl IllegalTransition {
    /// Whether the news is old rather than contradictory: the payment is already what it says.
    pub fn is_repeat(self) -> bool {
        self.from == self.to
    }
}
