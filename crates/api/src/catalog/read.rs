//! Reading the catalogue: anyone may.

use actix_web::{HttpRequest, HttpResponse, web};

use super::{ProductBody, sql};
use crate::app::App;
use crate::page::{Page, Window};
use crate::problem::Problem;

/// Lists products
#[utoipa::path(
    get, path = "/v1/products", tag = "Catalogue", params(Window), security(),
    responses((status = 200, description = "Products in the order of the catalogue", body = Page<ProductBody>)),
)]
pub async fn list_products(app: App, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let window = Window::of(&request)?;
    let limit = window.limit()?;
    let after = window.after::<i32>()?;
    let mut conn = app.db.connection().await?;
    let rows = sql::page(&mut conn, after, limit + 1).await;
    let rows = conn.end(rows)?;
    let page: Page<ProductBody> =
        Page::of(rows, limit, |(id, _)| id.to_string(), |(_, product)| product.into());
    Ok(HttpResponse::Ok().json(page))
}

/// Shows a product
#[utoipa::path(
    get, path = "/v1/products/{sku}", tag = "Catalogue", security(),
    params(("sku" = String, Path, example = "counter-bell")),
    responses((status = 200, description = "The product", body = ProductBody)),
)]
pub async fn get_product(app: App, sku: web::Path<String>) -> Result<HttpResponse, Problem> {
    // No SKU holds a NUL, and no text column can be asked for one.
    if sku.contains('\0') {
        return Err(Problem::not_found());
    }
    let mut conn = app.db.connection().await?;
    let product = sql::get(&mut conn, &sku).await;
    let product = conn.end(product)?;
    let product = product.ok_or_else(Problem::not_found)?;
    Ok(HttpResponse::Ok().json(ProductBody::from(product)))
}
