//! Reading refunds: of one's own orders; the merchant sees all.

use actix_web::{HttpResponse, web};
use domain::RefundId;

use super::{Refund, RefundBody, sql};
use crate::accounts::Account;
use crate::app::App;
use crate::orders;
use crate::problem::Problem;

/// Shows a refund
#[utoipa::path(
    get, path = "/v1/refunds/{id}", tag = "Refunds",
    params(("id" = String, Path, example = "ref_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses((status = 200, description = "The refund", body = RefundBody)),
)]
pub async fn get_refund(
    app: App,
    account: Account,
    id: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let id = id.parse().map_err(|_| Problem::not_found())?;
    let refund = visible(&app, &account, id).await?;
    Ok(HttpResponse::Ok().json(RefundBody::from(refund)))
}

/// A refund, if this account may see its order.
///
/// # Errors
/// `not_found` for what is not there and for what is somebody else's.
pub async fn visible(app: &App, account: &Account, id: RefundId) -> Result<Refund, Problem> {
    let mut conn = app.db.connection().await?;
    let refund = sql::get(&mut conn, id).await?;
    let order = match &refund {
        Some(refund) => orders::sql::get(&mut conn, refund.order_id).await?,
        None => None,
    };
    conn.done();
    match (refund, order) {
        (Some(refund), Some(order)) if order.is_visible_to(account) => Ok(refund),
        _ => Err(Problem::not_found()),
    }
}
