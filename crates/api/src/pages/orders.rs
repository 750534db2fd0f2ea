//! `/orders`: the shopper's own orders, newest first.

use askama::Template;
use domain::{Money, OrderId, OrderStatus};

use super::layout::Layout;
use super::marks::{Chip, Mark};
use super::moment::Moment;

#[derive(Debug, Template)]
#[template(path = "orders.html")]
pub struct Orders {
    pub page: Layout,
    pub orders: Vec<OrderRow>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

#[derive(Debug, Clone)]
pub struct OrderRow {
    pub id: OrderId,
    /// "Counter bell and 2 more"
    pub what: String,
    pub total: Money,
    pub placed_at: Moment,
    pub status: Standing,
}

/// The order's status, and whether its money is in the open.
#[derive(Debug, Clone, Copy)]
pub enum Standing {
    Is(OrderStatus),
    /// Pending, and a payment of it is being made.
    Charging,
    /// Pending, and nobody knows what became of its payment.
    Unknown,
}

impl Orders {
    fn whose(&self) -> String {
        match &self.page.signed_in {
            Some(who) => format!("Everything {who} ordered here."),
            None => "Everything ordered from this browser. Sign in to keep it.".to_owned(),
        }
    }
}

impl OrderRow {
    fn number(&self) -> String {
        number(self.id)
    }
}

impl Standing {
    fn chip(self) -> Chip {
        match self {
            Self::Charging => Chip::new(Mark::Quiet, "being charged"),
            Self::Unknown => Chip::new(Mark::Unsure, "not known yet"),
            Self::Is(OrderStatus::Pending) => Chip::new(Mark::Quiet, "not paid yet"),
            Self::Is(OrderStatus::Paid) => Chip::new(Mark::Once, "paid once"),
            Self::Is(OrderStatus::PartiallyRefunded) => Chip::new(Mark::Once, "partly sent back"),
            Self::Is(OrderStatus::Refunded) => Chip::new(Mark::Returned, "sent back"),
            Self::Is(OrderStatus::Cancelled) => Chip::new(Mark::Plain, "cancelled"),
            Self::Is(OrderStatus::Expired) => Chip::new(Mark::Plain, "ran out of time"),
        }
    }
}

/// The number a shopper reads out: the end of the id, where ids of one day differ.
pub(super) fn number(id: OrderId) -> String {
    let id = id.to_string();
    id[id.len() - 6..].to_uppercase()
}
