//! How much may go back.
//!
//! Open refunds count as if they had succeeded when room is measured, and as if they might fail
//! when a refusal is judged. So the sum of all refunds never exceeds the capture, and a refusal is
//! final only where no outcome of the open ones could change it.

use crate::money::{Currency, Money, MoneyError};

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
    /// The goods went back into stock before, or were never this payment's.
    #[error("there are no goods that could come back with this refund")]
    NothingToRestock,
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
        Ok(Self { left, free, restocked })
    }
}

/// How much a refund will take: what was `requested`, or else what remains.
pub fn plan_refund(
    payment: &Refundable,
    requested: Option<Money>,
    restock: bool,
) -> Result<Money, RefundRefusal> {
    payment.check_request(requested, restock).map_err(RefundRefusal::Invalid)?;
    let Refundable { left, free, .. } = *payment;
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
    if restock { payment.check_remainder(amount) } else { Ok(amount) }
}

impl Refundable {
    /// What no outcome of open refunds could make right.
    fn check_request(&self, requested: Option<Money>, restock: bool) -> Result<(), InvalidRefund> {
        let currency = self.left.currency;
        match requested {
            Some(requested) if requested.currency != currency => {
                Err(InvalidRefund::WrongCurrency(currency))
            }
            Some(requested) if !requested.is_positive() => Err(InvalidRefund::NotPositive),
            Some(_) | None if restock && self.restocked => Err(InvalidRefund::NothingToRestock),
            Some(_) | None => Ok(()),
        }
    }

    /// With refunds still open, all that is free may turn out not to be the remainder.
    fn check_remainder(&self, amount: Money) -> Result<Money, RefundRefusal> {
        if amount == self.left {
            Ok(amount)
        } else if amount == self.free {
            Err(RefundRefusal::RefundInProgress)
        } else {
            Err(RefundRefusal::Invalid(InvalidRefund::RestockNeedsRemainder))
        }
    }
}

impl InvalidRefund {
    /// The JSON pointer of the offending member of the request.
    pub const fn pointer(self) -> &'static str {
        match self {
            Self::NotPositive => "/amount/amount",
            Self::WrongCurrency(_) => "/amount/currency",
            Self::RestockNeedsRemainder | Self::NothingToRestock => "/restock",
        }
    }
}
