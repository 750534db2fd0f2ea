//! A refund: how much may still go back, and what became of it.
//!
//! Open refunds count as if they had succeeded when room is measured, and as if they might fail
//! when a refusal is judged. So the sum of all refunds never exceeds the capture, and a refusal is
//! final only where no outcome of the open ones could change it.

use crate::money::{Currency, Money, MoneyError};
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
            Self::Unknown | Self::Succeeded | Self::Failed => Err(IllegalRefundTransition {
                from: self,
                to: Self::Unknown,
            }),
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

/// What is left of a captured payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refundable {
    /// Captured less what went back.
    left: Money,
    /// What is left less what is on its way back.
    free: Money,
    restocked: bool,
}

/// Why a refund does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefundRefusal {
    /// The request itself is wrong.
    #[error("{0}")]
    Invalid(InvalidRefund),
    /// All of the money went back.
    #[error("nothing is left to refund")]
    NothingLeft,
    /// More than is left, whatever becomes of open refunds.
    #[error("at most {remaining} can be refunded")]
    TooLarge {
        /// What could be refunded at this moment.
        remaining: Money,
    },
    /// It depends on refunds that are still open; this passes.
    #[error("another refund of this payment is in progress")]
    RefundInProgress,
}

/// What is wrong with a refund request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRefund {
    /// Nothing, or less than nothing.
    #[error("a refund is more than nothing")]
    NotPositive,
    /// Another currency than the payment's.
    #[error("the payment was made in {}", .0.code())]
    WrongCurrency(Currency),
    /// Goods go back into stock only with the refund that takes the remainder.
    #[error("restock goes with the refund that takes the remainder")]
    RestockNeedsRemainder,
    /// The goods went back into stock before.
    #[error("the order has been restocked before")]
    AlreadyRestocked,
}

impl Refundable {
    /// Sums up a payment: what was captured, what succeeded and open refunds come to, and whether
    /// its goods went back into stock.
    pub fn new(
        captured: Money,
        refunded: Money,
        open: Money,
        restocked: bool,
    ) -> Result<Self, MoneyError> {
        let left = captured.checked_sub(refunded)?;
        let free = left.checked_sub(open)?;
        Ok(Self {
            left,
            free,
            restocked,
        })
    }
}

/// How much a refund will take: what was `requested`, or else what remains.
pub fn plan_refund(
    payment: &Refundable,
    requested: Option<Money>,
    restock: bool,
) -> Result<Money, RefundRefusal> {
    let Refundable {
        left,
        free,
        restocked,
    } = *payment;
    if let Some(requested) = requested {
        check_request(requested, left.currency).map_err(RefundRefusal::Invalid)?;
    }
    if !left.is_positive() {
        return Err(RefundRefusal::NothingLeft);
    }
    let amount = requested.unwrap_or(free);
    if amount.amount > left.amount {
        return Err(RefundRefusal::TooLarge { remaining: free });
    }
    if amount.amount > free.amount || !amount.is_positive() {
        return Err(RefundRefusal::RefundInProgress);
    }
    if restock {
        check_restock(amount, left, free, restocked)?;
    }
    Ok(amount)
}

fn check_request(requested: Money, currency: Currency) -> Result<(), InvalidRefund> {
    if requested.currency != currency {
        return Err(InvalidRefund::WrongCurrency(currency));
    }
    if requested.is_positive() {
        Ok(())
    } else {
        Err(InvalidRefund::NotPositive)
    }
}

/// With refunds still open, what is free may turn out not to be the remainder.
fn check_restock(
    amount: Money,
    left: Money,
    free: Money,
    restocked: bool,
) -> Result<(), RefundRefusal> {
    if restocked {
        Err(RefundRefusal::Invalid(InvalidRefund::AlreadyRestocked))
    } else if amount == left {
        Ok(())
    } else if amount == free {
        Err(RefundRefusal::RefundInProgress)
    } else {
        Err(RefundRefusal::Invalid(InvalidRefund::RestockNeedsRemainder))
    }
}

impl InvalidRefund {
    /// The JSON pointer of the offending member of the request.
    pub const fn pointer(self) -> &'static str {
        match self {
            Self::NotPositive => "/amount/amount",
            Self::WrongCurrency(_) => "/amount/currency",
            Self::RestockNeedsRemainder | Self::AlreadyRestocked => "/restock",
        }
    }
}
