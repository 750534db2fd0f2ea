//! Why an order stays as it is: every refusal has a name and tells the state it met.

use time::OffsetDateTime;

use crate::id::PaymentId;
use crate::order::state::OrderStatus;

/// Why an order stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderRefusal {
    /// It has been paid, whether or not money went back since.
    #[error("the order is already paid")]
    AlreadyPaid {
        /// Its status.
        status: OrderStatus,
    },
    /// Its reservation is over, whether or not that has been written down yet.
    #[error("the order has expired")]
    Expired {
        /// Its status.
        status: OrderStatus,
    },
    /// Its stock is still reserved.
    #[error("the reservation has not run out")]
    StillReserved {
        /// When it runs out.
        until: OffsetDateTime,
    },
    /// A payment is on its way; this passes.
    #[error("a payment of this order is in progress")]
    PaymentInProgress {
        /// The payment.
        payment: PaymentId,
    },
    /// The refunds do not add up to more than nothing and at most the captured amount.
    #[error("the refunded total does not fit the captured amount")]
    WrongTotal {
        /// Its status.
        status: OrderStatus,
    },
    /// The state does not allow it.
    #[error("not possible while the order is {status}")]
    Illegal {
        /// Its status.
        status: OrderStatus,
    },
}

impl OrderRefusal {
    /// The status the order was found in, and still has.
    pub const fn status(self) -> OrderStatus {
        match self {
            Self::AlreadyPaid { status }
            | Self::Expired { status }
            | Self::WrongTotal { status }
            | Self::Illegal { status } => status,
            Self::StillReserved { .. } | Self::PaymentInProgress { .. } => OrderStatus::Pending,
        }
    }
}
