//! `/orders`: the shopper's own orders, newest first.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use domain::{Money, OrderId, OrderStatus, PaymentStatus};
use serde::Deserialize;

use super::layout::{Layout, Section};
use super::marks::{Chip, Mark};
use super::moment::Moment;
use super::response::{self, Shown};
use super::visitor::Visitor;
use crate::app::App;
use crate::orders::{self, Order, OrderLine};
use crate::problem::Problem;

const ON_A_PAGE: usize = 20;

/// The order after which the next page begins.
#[derive(Deserialize)]
pub(super) struct From {
    cursor: Option<String>,
}

/// `GET /orders`
pub(super) async fn list_orders(
    app: App,
    request: HttpRequest,
    from: web::Query<From>,
) -> HttpResponse {
    response::answer(&request, list(&app, &request, &from).await)
}

async fn list(app: &App, request: &HttpRequest, from: &From) -> Shown {
    let visitor = Visitor::greet(app, request).await?;
    let before = match &from.cursor {
        Some(cursor) => Some(cursor.parse::<OrderId>().map_err(|_| Problem::not_found())?),
        None => None,
    };
    let whose = (!visitor.account.is_merchant()).then_some(visitor.account.id);
    let mut conn = app.db.connection().await?;
    let limit = i64::try_from(ON_A_PAGE + 1).unwrap_or(i64::MAX);
    let mut rows = Vec::new();
    for order in orders::sql::page(&mut conn, whose, before, limit).await? {
        let lines = orders::sql::lines(&mut conn, order.id).await?;
        rows.push(OrderRow::new(&order, &lines));
    }
    conn.done();
    let more = rows.len() > ON_A_PAGE;
    rows.truncate(ON_A_PAGE);
    let page = Orders {
        page: visitor.layout(app, request, Section::Orders).await?,
        next: rows.last().filter(|_| more).map(|row| row.id.to_string()),
        everybody: visitor.account.is_merchant(),
        orders: rows,
    };
    Ok(visitor.show(request, &page))
}

#[derive(Debug, Template)]
#[template(path = "orders.html")]
pub struct Orders {
    pub page: Layout,
    pub orders: Vec<OrderRow>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// Merchants see the orders of everybody.
    pub everybody: bool,
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
    fn heading(&self) -> &'static str {
        if self.everybody { "All orders" } else { "Your orders" }
    }

    fn whose(&self) -> String {
        if self.everybody {
            return "Everything ordered in this shop.".to_owned();
        }
        match &self.page.signed_in {
            Some(who) => format!("Everything {who} ordered here."),
            None => "Everything ordered from this browser. Sign in to keep it.".to_owned(),
        }
    }
}

impl OrderRow {
    fn new(order: &Order, lines: &[OrderLine]) -> Self {
        Self {
            id: order.id,
            what: what(lines),
            total: order.total,
            placed_at: order.created_at.into(),
            status: Standing::of(order),
        }
    }

    fn number(&self) -> String {
        number(self.id)
    }
}

impl Standing {
    fn of(order: &Order) -> Self {
        match (order.status, order.live_payment) {
            (OrderStatus::Pending, Some((_, PaymentStatus::Processing))) => Self::Charging,
            (OrderStatus::Pending, Some((_, PaymentStatus::Unknown))) => Self::Unknown,
            (status, _) => Self::Is(status),
        }
    }

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

/// "Counter bell and 2 more"
fn what(lines: &[OrderLine]) -> String {
    match lines {
        [] => "Nothing".to_owned(),
        [line] => line.name.clone(),
        [first, more @ ..] => format!("{} and {} more", first.name, more.len()),
    }
}
