//! `POST /checkout`: the order under `KEY/order`, then its payment under `KEY/pay`.
//!
//! | the form is pressed again …            | and                                                |
//! |----------------------------------------|----------------------------------------------------|
//! | while the order is being placed        | joins it: same key, same order                     |
//! | once the cart is an order              | goes to that order; its payment joins or replays   |
//! | after the cart was edited              | nothing is done, the cart is shown as it is        |
//! | with another e-mail or card meanwhile  | goes to the order that the first press made        |
//!
//! The cart's id travels with the form, because the account's current cart is another one by then.

use actix_web::{HttpRequest, HttpResponse};
use domain::{CartId, Money, OrderId};

use super::{Draft, current_key, draw};
use crate::accounts::create as accounts;
use crate::app::App;
use crate::operation::{self, Answer};
use crate::orders::create::{Create, CreateOrder, CreateOrderLine};
use crate::orders::{self, Order, OrderBody};
use crate::pages::basket::Basket;
use crate::pages::cart;
use crate::pages::keyed;
use crate::pages::order::{act, own};
use crate::pages::posted::{self, Again, Fields, Form, Posted, Received};
use crate::pages::response::{self, Shown};
use crate::pages::said::Said;
use crate::pages::test_cards::TEST_CARDS;
use crate::pages::visitor::Visitor;
use crate::problem::Problem;

/// The handler.
pub(in crate::pages) async fn pay_cart(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    response::answer(&request, pay(&app, &request, form).await)
}

/// A press of Pay.
struct Press<'a> {
    app: &'a App,
    request: &'a HttpRequest,
    visitor: Visitor,
    fields: Fields,
    cart: CartId,
}

async fn pay(app: &App, request: &HttpRequest, form: Form) -> Shown {
    let (posted, stale) = match Received::of(app, request, form).await? {
        Received::Ours(posted) => (posted, false),
        Received::Stale(posted) => (posted, true),
        Received::Stranger(fields) => {
            let again = Again { page: "/checkout", form: None };
            return Ok(posted::redraw(app, request, &fields, &again).await?);
        }
    };
    let Posted { visitor, fields } = posted;
    let Ok(cart) = fields.get("cart").parse() else {
        return Ok(response::see_other("/checkout"));
    };
    let press = Press { app, request, visitor, fields, cart };
    match press.ordered().await? {
        Some(order) if stale => Ok(response::see_other(&act::page(order.id))),
        Some(order) => press.go_on(&order).await,
        None if stale => Ok(response::see_other("/checkout")),
        None => press.order().await,
    }
}

impl Press<'_> {
    /// The order that this cart has become, if it is the visitor's.
    async fn ordered(&self) -> Result<Option<Order>, Problem> {
        let mut conn = self.app.db.connection().await?;
        let owner = cart::sql::owner(&mut conn, self.cart).await?;
        let order = orders::sql::by_cart(&mut conn, self.cart.uuid()).await?;
        conn.done();
        match order {
            Some(order) if owner == Some(self.visitor.account.id) => {
                own::claim(self.app, &self.visitor, order.id).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A second press: the payment of the first one joins, replays, or was never begun.
    async fn go_on(&self, order: &Order) -> Shown {
        let made = self.made(order.id).await?;
        let said = if made { self.charge(order.id).await? } else { None };
        Ok(self.to(order.id, said))
    }

    /// Whether this very form made the order, for this very account.
    async fn made(&self, order: OrderId) -> Result<bool, Problem> {
        let Ok(key) = keyed::step(self.key(), "order") else { return Ok(false) };
        let mut conn = self.app.db.connection().await?;
        let made_by = own::sql::made_by(&mut conn, order).await;
        let made_by = conn.end(made_by)?;
        Ok(made_by.is_some_and(|by| by.scope == self.visitor.account.scope() && by.key == key))
    }

    /// The first press, or one that does not know better.
    async fn order(&self) -> Shown {
        let basket = self.basket().await?;
        let current = match basket.totals.len() {
            1 => Some(current_key(self.app, &self.visitor, self.cart, &basket).await?),
            _ => None,
        };
        if current.as_deref() != Some(self.key()) {
            return Ok(self.back(Said::CartChanged));
        }
        let Ok(email) = accounts::email(self.fields.get("email")) else {
            return Ok(self.draw_again().await?);
        };
        if !TEST_CARDS.iter().any(|card| card.token == self.card()) {
            return Err(Problem::invalid("/payment_method", "There is no such card.").into());
        }
        self.place(&basket, email).await
    }

    /// What lies in the form's cart, if it is the visitor's.
    async fn basket(&self) -> Result<Basket, Problem> {
        let mut conn = self.app.db.connection().await?;
        let owner = cart::sql::owner(&mut conn, self.cart).await?;
        let lines = match owner {
            Some(owner) if owner == self.visitor.account.id => {
                cart::sql::lines(&mut conn, self.cart).await?
            }
            _ => Vec::new(),
        };
        conn.done();
        Basket::of(lines).map_err(|error| Problem::internal(&error))
    }

    async fn place(&self, basket: &Basket, email: String) -> Shown {
        let total = basket.totals.first().map(|total| total.amount);
        let body = wish(basket, total, email);
        let key = keyed::step(self.key(), "order")?;
        let account = self.visitor.account.clone();
        let asked = keyed::ask(self.app, account.scope(), key, "/v1/orders", Some(&body))?;
        let create = Create { account, cart: Some(self.cart), body: Ok(body) };
        match operation::perform(self.app, asked, create).await {
            Answer::Finished(finished, _) => {
                if let Some(order) = placed(finished.reply.body()) {
                    return Ok(self.to(order, self.charge(order).await?));
                }
                let code = response::refused_with(&finished).unwrap_or_default();
                Ok(self.back(Said::of_code(&code).unwrap_or(Said::Failed)))
            }
            // Another press was faster, with another key or other words: its order is the order.
            Answer::Problem(problem) => match self.ordered().await? {
                Some(order) => self.go_on(&order).await,
                None => Err(Problem::clone(&problem).into()),
            },
        }
    }

    async fn charge(&self, order: OrderId) -> Result<Option<Said>, Problem> {
        let key = keyed::step(self.key(), "pay")?;
        act::pay(self.app, &self.visitor, order, key, self.card()).await
    }

    fn to(&self, order: OrderId, said: Option<Said>) -> HttpResponse {
        act::see(self.request, order, said)
    }

    fn back(&self, said: Said) -> HttpResponse {
        let mut response = response::see_other("/checkout");
        said.on("/checkout", self.request, &mut response);
        response
    }

    async fn draw_again(&self) -> Result<HttpResponse, Problem> {
        let fault = "Write an address with an @, so that the receipt can arrive.";
        let draft = Draft {
            email: Some(self.fields.get("email").to_owned()),
            email_fault: Some(fault.to_owned()),
            chosen: Some(self.card().to_owned()),
        };
        draw(self.app, self.request, &self.visitor, draft).await
    }

    fn key(&self) -> &str {
        self.fields.get("idempotency_key")
    }

    fn card(&self) -> &str {
        self.fields.get("payment_method")
    }
}

fn wish(basket: &Basket, total: Option<Money>, email: String) -> CreateOrder {
    let lines = basket.lines.iter().map(|line| CreateOrderLine {
        sku: line.sku.to_string(),
        quantity: i64::from(line.quantity),
    });
    CreateOrder {
        lines: lines.collect(),
        expected_total: total.map(Into::into),
        email: Some(email),
        note: None,
    }
}

/// The order out of a stored reply; a refusal has none.
fn placed(body: &[u8]) -> Option<OrderId> {
    serde_json::from_slice::<OrderBody>(body).ok().map(|order| order.id)
}
