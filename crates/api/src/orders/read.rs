//! Reading orders: one's own; the merchant sees all.

use actix_web::{HttpRequest, HttpResponse, web};
use domain::OrderId;

use super::{Order, OrderBody, OrderLine, sql};
use crate::accounts::Account;
use crate::app::App;
use crate::page::{Page, Window};
use crate::problem::Problem;

/// Lists orders, newest first
#[utoipa::path(
    get, path = "/v1/orders", tag = "Orders", params(Window),
    responses((status = 200, description = "Orders", body = Page<OrderBody>)),
)]
pub async fn list_orders(
    app: App,
    account: Account,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let window = Window::of(&request)?;
    let limit = window.limit()?;
    let before = window.after::<OrderId>()?;
    let whose = (!account.is_merchant()).then_some(account.id);
    let mut conn = app.db.connection().await?;
    let mut rows = Vec::new();
    for order in sql::page(&mut conn, whose, before, limit + 1).await? {
        let lines = sql::lines(&mut conn, order.id).await?;
        rows.push((order, lines));
    }
    conn.done();
    let page: Page<OrderBody> = Page::of(
        rows,
        limit,
        |(order, _)| order.id.to_string(),
        |(order, lines)| OrderBody::new(order, lines),
    );
    Ok(HttpResponse::Ok().json(page))
}

/// Shows an order
#[utoipa::path(
    get, path = "/v1/orders/{id}", tag = "Orders",
    params(("id" = String, Path, example = "ord_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses((status = 200, description = "The order", body = OrderBody)),
)]
pub async fn get_order(
    app: App,
    account: Account,
    id: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let id = id.parse().map_err(|_| Problem::not_found())?;
    let (order, lines) = visible(&app, &account, id).await?;
    Ok(HttpResponse::Ok().json(OrderBody::new(order, lines)))
}

/// An order with its lines, if this account may see it.
///
/// # Errors
/// `not_found` for what is not there and for what is somebody else's.
pub async fn visible(
    app: &App,
    account: &Account,
    id: OrderId,
) -> Result<(Order, Vec<OrderLine>), Problem> {
    let mut conn = app.db.connection().await?;
    let order = sql::get(&mut conn, id).await?;
    let lines = sql::lines(&mut conn, id).await?;
    conn.done();
    let order = order.filter(|order| order.is_visible_to(account));
    Ok((order.ok_or_else(Problem::not_found)?, lines))
}
