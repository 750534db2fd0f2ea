//! Orders: what somebody wants, priced by us, with the goods set aside.

pub mod cancel;
pub mod create;
pub mod expire;
pub mod place;
pub mod read;
pub mod receipt;
pub mod sql;

use domain::{
    AccountId, Money, OrderId, OrderRefusal, OrderState, OrderStatus, PaymentId, PaymentStatus, Sku,
};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::accounts::Account;
use crate::money::MoneyBody;
use crate::operation::Stop;
use crate::problem::{Code, Problem};

/// An order as rows have it, without its lines.
#[derive(Debug, Clone)]
pub struct Order {
    /// Its id.
    pub id: OrderId,
    /// Whose it is now.
    pub account_id: AccountId,
    /// How far it is.
    pub status: OrderStatus,
    /// To be paid, or paid.
    pub total: Money,
    /// Where the receipt goes.
    pub email: Option<String>,
    /// The buyer's words.
    pub note: Option<String>,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// Until when the goods are set aside for a payment to begin.
    pub reserved_until: OffsetDateTime,
    /// The payment it is linked to.
    pub live_payment: Option<(PaymentId, PaymentStatus)>,
}

/// A line of an order, as agreed when it was made.
#[derive(Debug, Clone)]
pub struct OrderLine {
    /// Which product.
    pub sku: Sku,
    /// Its name then.
    pub name: String,
    /// How many.
    pub quantity: i32,
    /// Its price then.
    pub unit_price: Money,
    /// Quantity times price.
    pub line_total: Money,
}

impl Order {
    /// The state with the data that transitions look at.
    pub fn state(&self) -> OrderState {
        let live = self.live_payment.map(|(id, status)| domain::LivePayment { id, status });
        OrderState::new(self.status, self.reserved_until, live)
    }

    /// Where it can be seen.
    pub fn path(&self) -> String {
        format!("/v1/orders/{}", self.id)
    }

    /// Whether this account may see it.
    pub fn is_visible_to(&self, account: &Account) -> bool {
        self.account_id == account.id || account.is_merchant()
    }
}

/// An order on the wire.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Order)]
pub struct OrderBody {
    /// `ord_…`
    #[schema(value_type = String, example = "ord_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub id: OrderId,
    /// How far it is.
    #[schema(value_type = String, example = "pending")]
    pub status: OrderStatus,
    /// One for each product.
    pub lines: Vec<OrderLineBody>,
    /// The sum of all lines.
    pub total: MoneyBody,
    /// Where the receipt goes.
    #[schema(example = "ada@example.com")]
    pub email: Option<String>,
    /// The buyer's words.
    #[schema(example = "Leave it at the door.")]
    pub note: Option<String>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
    /// Until when the goods are set aside.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub reserved_until: OffsetDateTime,
    /// The payment that is running or has succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub payment_id: Option<PaymentId>,
}

/// A line on the wire.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = OrderLine)]
pub struct OrderLineBody {
    /// Which product.
    #[schema(value_type = String, example = "counter-bell")]
    pub sku: Sku,
    /// Its name then.
    #[schema(example = "Counter bell")]
    pub name: String,
    /// How many.
    #[schema(example = 1, minimum = 1, maximum = 99)]
    pub quantity: i32,
    /// Its price then.
    pub unit_price: MoneyBody,
    /// Quantity times price.
    pub line_total: MoneyBody,
}

impl OrderBody {
    /// The order with its lines.
    pub fn new(order: Order, lines: Vec<OrderLine>) -> Self {
        Self {
            id: order.id,
            status: order.status,
            lines: lines.into_iter().map(OrderLineBody::from).collect(),
            total: order.total.into(),
            email: order.email,
            note: order.note,
            created_at: order.created_at,
            reserved_until: order.reserved_until,
            payment_id: order.live_payment.map(|(id, _)| id),
        }
    }
}

impl From<OrderLine> for OrderLineBody {
    fn from(line: OrderLine) -> Self {
        Self {
            sku: line.sku,
            name: line.name,
            quantity: line.quantity,
            unit_price: line.unit_price.into(),
            line_total: line.line_total.into(),
        }
    }
}

/// What a refused transition of an order is answered with.
pub fn refused(order: &Order, refusal: OrderRefusal) -> Stop {
    let payment = |problem: Problem| match order.live_payment {
        Some((id, _)) => {
            problem.member("payment_id", id.to_string()).resource(&format!("/v1/payments/{id}"))
        }
        None => problem.resource(&order.path()),
    };
    let state = order.status.as_str();
    match refusal {
        OrderRefusal::PaymentInProgress { .. } => Stop::Passing(payment(Problem::new(
            Code::PaymentInProgress,
            "A payment of this order is under way. Wait for its end.",
        ))),
        OrderRefusal::AlreadyPaid { .. } => Stop::Refused(payment(
            Problem::new(
                Code::OrderAlreadyPaid,
                "This order was paid before. Nothing was charged.",
            )
            .member("state", state),
        )),
        OrderRefusal::Expired { .. } => Stop::Refused(
            Problem::new(
                Code::OrderExpired,
                "The time to pay this order has run out. Order again; nothing was charged.",
            )
            .member("state", state)
            .resource(&order.path()),
        ),
        OrderRefusal::StillReserved { .. }
        | OrderRefusal::WrongTotal { .. }
        | OrderRefusal::Illegal { .. } => Stop::Refused(
            Problem::new(
                Code::InvalidTransition,
                format!("This is not possible while the order is {state}."),
            )
            .member("state", state)
            .resource(&order.path()),
        ),
    }
}
