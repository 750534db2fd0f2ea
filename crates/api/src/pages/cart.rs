//! `/cart`: quantities are set, never added to, so that a form sent twice changes nothing twice.

pub(super) mod sql;

use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use domain::{CartId, Currency, Quantity, Sku};
use sqlx::PgConnection;

use super::basket::Basket;
use super::layout::{Layout, Section};
use super::marks::Notice;
use super::posted::{Again, Fields, Form, Posted};
use super::redrawn::RedrawnForm;
use super::response::{self, Shown};
use super::visitor::Visitor;
use crate::app::App;
use crate::db;
use crate::problem::Problem;

#[derive(Debug, Template)]
#[template(path = "cart.html")]
pub struct Cart {
    pub page: Layout,
    pub basket: Basket,
    pub notice: Option<Notice>,
}

/// `GET /cart`
pub(super) async fn show_cart(app: App, request: HttpRequest) -> HttpResponse {
    response::answer(&request, show(&app, &request).await)
}

/// `POST /cart`: how many of a product, absolute.
pub(super) async fn set_quantity(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    response::answer(&request, set(&app, &request, form).await)
}

/// `POST /cart/currency`: one currency stays.
pub(super) async fn keep_currency(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    response::answer(&request, keep(&app, &request, form).await)
}

async fn show(app: &App, request: &HttpRequest) -> Shown {
    let visitor = Visitor::greet(app, request).await?;
    let (_, basket) = contents(app, &visitor).await?;
    let page = visitor.layout(app, request, Section::Elsewhere).await?;
    Ok(visitor.show(request, &Cart { page, basket, notice: None }))
}

async fn set(app: &App, request: &HttpRequest, form: Form) -> Shown {
    let again = Again { page: "/cart", form: Some(put_again) };
    let Posted { visitor, fields } = Posted::take(app, request, form, again).await?;
    let (sku, quantity) = wanted(app, &fields)?;
    db::retrying(|| edit(app, &visitor, Edit::Set(&sku, quantity))).await?;
    Ok(response::see_other(fields.back()))
}

async fn keep(app: &App, request: &HttpRequest, form: Form) -> Shown {
    let again = Again { page: "/cart", form: None };
    let Posted { visitor, fields } = Posted::take(app, request, form, again).await?;
    let currency: Currency = fields
        .get("currency")
        .parse()
        .map_err(|_| Problem::invalid("/currency", "There is no such currency."))?;
    db::retrying(|| edit(app, &visitor, Edit::Keep(currency))).await?;
    Ok(response::see_other("/cart"))
}

/// The visitor's cart and what lies in it.
pub(super) async fn contents(
    app: &App,
    visitor: &Visitor,
) -> Result<(Option<CartId>, Basket), Problem> {
    let mut conn = app.db.connection().await?;
    let cart = sql::current(&mut conn, visitor.account.id).await?;
    let lines = match cart {
        Some(cart) => sql::lines(&mut conn, cart).await?,
        None => Vec::new(),
    };
    conn.done();
    let basket = Basket::of(lines).map_err(|error| Problem::internal(&error))?;
    Ok((cart, basket))
}

#[derive(Clone, Copy)]
enum Edit<'a> {
    Set(&'a Sku, i32),
    Keep(Currency),
}

async fn edit(app: &App, visitor: &Visitor, edit: Edit<'_>) -> sqlx::Result<()> {
    let mut tx = app.db.begin().await?;
    sql::take_turn(&mut tx, visitor.account.id).await?;
    let cart = current_or_new(app, &mut tx, visitor).await?;
    let now = app.clock.now();
    match edit {
        Edit::Set(sku, quantity) => sql::set(&mut tx, cart, sku, quantity, now).await?,
        Edit::Keep(currency) => sql::keep_currency(&mut tx, cart, currency.code()).await?,
    }
    sql::touch(&mut tx, cart, now).await?;
    tx.commit().await
}

async fn current_or_new(
    app: &App,
    conn: &mut PgConnection,
    visitor: &Visitor,
) -> sqlx::Result<CartId> {
    if let Some(cart) = sql::current(conn, visitor.account.id).await? {
        return Ok(cart);
    }
    let cart = CartId::from_uuid(app.clock.new_id());
    sql::open(conn, cart, visitor.account.id, app.clock.now()).await?;
    Ok(cart)
}

fn wanted(app: &App, fields: &Fields) -> Result<(Sku, i32), Problem> {
    let sku = fields.get("sku").parse::<Sku>().ok();
    let sku = sku.filter(|sku| app.catalogue.listed().contains_key(sku));
    let quantity = fields.get("quantity").trim().parse::<i32>().ok();
    let most = Quantity::MAX.cast_signed();
    match (sku, quantity.filter(|quantity| (0..=most).contains(quantity))) {
        (Some(sku), Some(quantity)) => Ok((sku, quantity)),
        (None, _) => Err(Problem::not_found()),
        (_, None) => Err(Problem::invalid("/quantity", "A cart holds 0 to 99 of a thing.")),
    }
}

fn put_again(fields: &Fields) -> RedrawnForm {
    let field = |name: &str| (name.to_owned(), fields.get(name).to_owned());
    RedrawnForm {
        action: "/cart".to_owned(),
        key: None,
        fields: vec![field("sku"), field("quantity"), field("back")],
        asks: "Your browser has our cookie now. Shall this go into the cart?".to_owned(),
        button: "Put it in".to_owned(),
    }
}
