//! The life of an order.
//!
//! ```text
//! pending ──pay──▶ paid ──refund──▶ partially_refunded ──refund──▶ refunded
//!    │               └───────────────refund (all of it)───────────────▲
//!    ├──cancel──▶ cancelled
//!    └──expire──▶ expired
//! ```
//!
//! A pending order holds stock until a moment, and has at most one live payment. While the fate
//! of that payment is open the order cannot leave `pending` any other way: money may already have
//! moved, and giving the stock away would sell it twice. That holds past the reservation's end.

use time::OffsetDateTime;

use crate::id::PaymentId;
use crate::money::Money;
use crate::order::refusal::OrderRefusal;
use crate::payment::PaymentStatus;
use crate::words::words;

words! {
    /// The state of an order without its data.
    OrderStatus {
        /// Stock is reserved, money is awaited.
        Pending = "pending",
        /// The money is here.
        Paid = "paid",
        /// Part of the money went back.
        PartiallyRefunded = "partially_refunded",
        /// All of the money went back.
        Refunded = "refunded",
        /// Given up before it was paid; the stock is back.
        Cancelled = "cancelled",
        /// Not paid in time; the stock is back.
        Expired = "expired",
    }
}

/// The state of an order with the data its transitions look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderState {
    /// Stock is reserved, money is awaited.
    Pending {
        /// From this moment on no new payment may begin.
        reserved_until: OffsetDateTime,
        /// The payment the order is linked to, if any.
        live_payment: Option<LivePayment>,
    },
    /// The money is here.
    Paid,
    /// Part of the money went back.
    PartiallyRefunded,
    /// All of the money went back.
    Refunded,
    /// Given up before it was paid.
    Cancelled,
    /// Not paid in time.
    Expired,
}

/// The payment an order is linked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePayment {
    /// Which payment.
    pub id: PaymentId,
    /// How far it is.
    pub status: PaymentStatus,
}

impl OrderState {
    /// The state a row tells of; what only a pending order has is dropped from any other.
    pub const fn new(
        status: OrderStatus,
        reserved_until: OffsetDateTime,
        live_payment: Option<LivePayment>,
    ) -> Self {
        match status {
            OrderStatus::Pending => Self::Pending { reserved_until, live_payment },
            OrderStatus::Paid => Self::Paid,
            OrderStatus::PartiallyRefunded => Self::PartiallyRefunded,
            OrderStatus::Refunded => Self::Refunded,
            OrderStatus::Cancelled => Self::Cancelled,
            OrderStatus::Expired => Self::Expired,
        }
    }

    /// The state without its data.
    pub const fn status(self) -> OrderStatus {
        match self {
            Self::Pending { .. } => OrderStatus::Pending,
            Self::Paid => OrderStatus::Paid,
            Self::PartiallyRefunded => OrderStatus::PartiallyRefunded,
            Self::Refunded => OrderStatus::Refunded,
            Self::Cancelled => OrderStatus::Cancelled,
            Self::Expired => OrderStatus::Expired,
        }
    }

    /// Gives the order up. The caller returns the stock.
    pub fn cancel(self) -> Result<Self, OrderRefusal> {
        match self {
            Self::Pending { live_payment, .. } => unbound(live_payment).map(|()| Self::Cancelled),
            Self::Paid
            | Self::PartiallyRefunded
            | Self::Refunded
            | Self::Cancelled
            | Self::Expired => Err(self.illegal()),
        }
    }

    /// Ends a reservation whose time is over. The caller returns the stock.
    pub fn expire(self, now: OffsetDateTime) -> Result<Self, OrderRefusal> {
        match self {
            Self::Pending { reserved_until, live_payment } => {
                unbound(live_payment)?;
                if now >= reserved_until {
                    Ok(Self::Expired)
                } else {
                    Err(OrderRefusal::StillReserved { until: reserved_until })
                }
            }
            Self::Paid
            | Self::PartiallyRefunded
            | Self::Refunded
            | Self::Cancelled
            | Self::Expired => Err(self.illegal()),
        }
    }

    /// Links a new payment, before anything is sent to the provider.
    pub fn begin_payment(self, id: PaymentId, now: OffsetDateTime) -> Result<Self, OrderRefusal> {
        let status = self.status();
        match self {
            Self::Pending { reserved_until, live_payment } => {
                unbound(live_payment)?;
                if now >= reserved_until {
                    return Err(OrderRefusal::Expired { status });
                }
                let live_payment = Some(LivePayment { id, status: PaymentStatus::Processing });
                Ok(Self::Pending { reserved_until, live_payment })
            }
            Self::Paid | Self::PartiallyRefunded | Self::Refunded => {
                Err(OrderRefusal::AlreadyPaid { status })
            }
            Self::Cancelled => Err(self.illegal()),
            Self::Expired => Err(OrderRefusal::Expired { status }),
        }
    }

    /// Takes the money of the linked payment. Money of any other payment, or of one that was known
    /// to have failed, is refused, and the caller sends it back.
    pub fn pay(self, payment: PaymentId) -> Result<Self, OrderRefusal> {
        let (_, status) = self.linked(payment)?;
        match status {
            PaymentStatus::Processing | PaymentStatus::Unknown | PaymentStatus::Succeeded => {
                Ok(Self::Paid)
            }
            PaymentStatus::Declined | PaymentStatus::Cancelled => Err(self.illegal()),
        }
    }

    /// Unlinks a payment that came to nothing (declined, cancelled, never sent), so that another
    /// may begin. One that succeeded stays.
    pub fn unlink_payment(self, payment: PaymentId) -> Result<Self, OrderRefusal> {
        let (reserved_until, status) = self.linked(payment)?;
        match status {
            PaymentStatus::Processing
            | PaymentStatus::Unknown
            | PaymentStatus::Declined
            | PaymentStatus::Cancelled => Ok(Self::Pending { reserved_until, live_payment: None }),
            PaymentStatus::Succeeded => Err(OrderRefusal::AlreadyPaid { status: self.status() }),
        }
    }

    /// Notes that of `captured` altogether `refunded` went back, the newest refund included.
    pub fn refund(self, refunded: Money, captured: Money) -> Result<Self, OrderRefusal> {
        let status = self.status();
        match self {
            Self::Paid | Self::PartiallyRefunded => match captured.checked_sub(refunded) {
                Ok(left) if refunded.is_positive() && left.is_positive() => {
                    Ok(Self::PartiallyRefunded)
                }
                Ok(left) if refunded.is_positive() && left.amount == 0 => Ok(Self::Refunded),
                Ok(_) | Err(_) => Err(OrderRefusal::WrongTotal { status }),
            },
            Self::Pending { .. } | Self::Refunded | Self::Cancelled | Self::Expired => {
                Err(self.illegal())
            }
        }
    }

    /// Proves that this payment is the one the order waits for; answers how long the order is
    /// reserved and how far the payment is.
    fn linked(self, payment: PaymentId) -> Result<(OffsetDateTime, PaymentStatus), OrderRefusal> {
        let status = self.status();
        match self {
            Self::Pending { reserved_until, live_payment } => match live_payment {
                Some(live) if live.id == payment => Ok((reserved_until, live.status)),
                Some(_) | None => unbound(live_payment).and(Err(self.illegal())),
            },
            Self::Paid | Self::PartiallyRefunded | Self::Refunded => {
                Err(OrderRefusal::AlreadyPaid { status })
            }
            Self::Cancelled => Err(self.illegal()),
            Self::Expired => Err(OrderRefusal::Expired { status }),
        }
    }

    fn illegal(self) -> OrderRefusal {
        OrderRefusal::Illegal { status: self.status() }
    }
}

/// A pending order is free to move on when no payment holds it. One that failed does not, even
/// while it is still linked.
fn unbound(live_payment: Option<LivePayment>) -> Result<(), OrderRefusal> {
    let Some(LivePayment { id, status }) = live_payment else {
        return Ok(());
    };
    match status {
        PaymentStatus::Processing | PaymentStatus::Unknown => {
            Err(OrderRefusal::PaymentInProgress { payment: id })
        }
        PaymentStatus::Succeeded => Err(OrderRefusal::AlreadyPaid { status: OrderStatus::Pending }),
        PaymentStatus::Declined | PaymentStatus::Cancelled => Ok(()),
    }
}
