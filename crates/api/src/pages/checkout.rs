//! `/checkout`: one form, one key per cart content, a Pay button that is never disabled.

pub(super) mod pay;
mod sql;

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use domain::CartId;

use super::basket::{Basket, Total};
use super::cart;
use super::error::Link;
use super::keyed::{self, KeyFacts};
use super::layout::{Layout, Section};
use super::marks::Notice;
use super::response::{self, Shown};
use super::said::Said;
use super::test_cards::{TEST_CARDS, TestCard};
use super::visitor::Visitor;
use crate::app::App;
use crate::orders::Order;
use crate::problem::Problem;

/// More refusals of one cart than this in a day, and the last key is kept.
const REFUSED_MAX: usize = 100;
/// So long after an order somebody may still wonder what became of it.
const JUST_NOW: Duration = Duration::from_mins(15);

#[derive(Debug, Template)]
#[template(path = "checkout.html")]
pub struct Checkout {
    pub page: Layout,
    /// Which cart the form orders, whatever lies in the current one by then.
    pub cart: String,
    pub basket: Basket,
    pub key: KeyFacts,
    pub email: String,
    pub email_fault: Option<String>,
    /// The token of the card that is ticked.
    pub chosen: String,
    pub notice: Option<Notice>,
    /// Where somebody with an empty cart may want to go: what was ordered just now.
    pub last_order: Option<Link>,
    /// What was ordered just now, with something in the cart again: the answer may have been lost,
    /// and a changed cart is another order.
    pub just_ordered: Option<Link>,
}

/// What the form shall hold when it is drawn.
#[derive(Default)]
struct Draft {
    email: Option<String>,
    email_fault: Option<String>,
    chosen: Option<String>,
}

/// `GET /checkout`
pub(super) async fn show_checkout(app: App, request: HttpRequest) -> HttpResponse {
    response::answer(&request, show(&app, &request).await)
}

async fn show(app: &App, request: &HttpRequest) -> Shown {
    let visitor = Visitor::greet(app, request).await?;
    let mut response = draw(app, request, &visitor, Draft::default()).await?;
    Said::forget("/checkout", request, &mut response);
    Ok(response)
}

async fn draw(
    app: &App,
    request: &HttpRequest,
    visitor: &Visitor,
    draft: Draft,
) -> Result<HttpResponse, Problem> {
    let (cart, basket) = cart::contents(app, visitor).await?;
    let last = last_order(app, visitor).await?;
    let refused = draft.email_fault.is_some();
    let last_email = last.as_ref().and_then(|order| order.email.clone());
    let email = draft.email.or_else(|| visitor.account.email.clone()).or(last_email);
    let just_now = app.clock.now() - JUST_NOW;
    let is_new = |order: &&Order| !basket.is_empty() && order.created_at >= just_now;
    let page = Checkout {
        page: visitor.layout(app, request, Section::Elsewhere).await?,
        cart: cart.map(|cart| cart.to_string()).unwrap_or_default(),
        key: facts(app, visitor, cart, &basket).await?,
        email: email.unwrap_or_default(),
        email_fault: draft.email_fault,
        chosen: draft.chosen.unwrap_or_else(|| TEST_CARDS[0].token.to_owned()),
        notice: Said::heard(request).map(Said::notice),
        last_order: last.as_ref().filter(|_| basket.is_empty()).map(link_to),
        just_ordered: last.as_ref().filter(is_new).map(link_to),
        basket,
    };
    let status = if refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok(visitor.remember(request, response::html(status, &page)))
}

async fn last_order(app: &App, visitor: &Visitor) -> Result<Option<Order>, Problem> {
    let mut conn = app.db.connection().await?;
    let newest = crate::orders::sql::page(&mut conn, Some(visitor.account.id), None, 1).await;
    Ok(conn.end(newest)?.into_iter().next())
}

fn link_to(order: &Order) -> Link {
    Link { href: format!("/orders/{}", order.id), text: "To your last order".to_owned() }
}

async fn facts(
    app: &App,
    visitor: &Visitor,
    cart: Option<CartId>,
    basket: &Basket,
) -> Result<KeyFacts, Problem> {
    let key = match cart {
        Some(cart) => current_key(app, visitor, cart, basket).await?,
        None => String::new(),
    };
    let total = basket.totals.first().map(|total| total.amount.to_string());
    Ok(KeyFacts {
        key,
        made_from: "this cart. The same cart always gets the same key".to_owned(),
        bound_to: format!(
            "this cart and {}. Another cart under this key is refused",
            total.unwrap_or_default()
        ),
        state: "unused".to_owned(),
    })
}

/// The key of the cart's next order: of this content, after those that were refused for good.
async fn current_key(
    app: &App,
    visitor: &Visitor,
    cart: CartId,
    basket: &Basket,
) -> Result<String, Problem> {
    let (scope, content) = (visitor.account.scope(), basket.content());
    let mut conn = app.db.connection().await?;
    let mut refused = 0;
    loop {
        let key = keyed::of_cart(app, cart, &content, refused);
        let over = sql::was_refused(&mut conn, &scope, &keyed::step(&key, "order")?).await?;
        if !over || refused == REFUSED_MAX {
            conn.done();
            return Ok(key);
        }
        refused += 1;
    }
}

impl Checkout {
    fn can_pay(&self) -> bool {
        !self.basket.is_empty() && !self.basket.is_mixed()
    }

    fn total(&self) -> &Total {
        let total = self.basket.totals.first();
        total.expect("the form is drawn only for a cart that can be paid")
    }

    #[expect(clippy::unused_self, reason = "templates reach functions through self")]
    fn cards(&self) -> &'static [TestCard] {
        &TEST_CARDS
    }
}
