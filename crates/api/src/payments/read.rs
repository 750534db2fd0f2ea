//! Reading payments: one's own; the merchant sees all.

use actix_web::{HttpResponse, web};
use domain::PaymentId;

use super::{Payment, PaymentBody, sql};
use crate::accounts::Account;
use crate::app::App;
use crate::orders;
use crate::problem::Problem;

/// Shows a payment
#[utoipa::path(
    get, path = "/v1/payments/{id}", tag = "Payments",
    params(("id" = String, Path, example = "pay_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses((status = 200, description = "The payment", body = PaymentBody)),
)]
pub async fn get_payment(
    app: App,
    account: Account,
    id: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let id = id.parse().map_err(|_| Problem::not_found())?;
    let payment = visible(&app, &account, id).await?;
    Ok(HttpResponse::Ok().json(PaymentBody::from(payment)))
}

/// A payment, if this account may see its order.
///
/// # Errors
/// `not_found` for what is not there and for what is somebody else's.
pub async fn visible(app: &App, account: &Account, id: PaymentId) -> Result<Payment, Problem> {
    let mut conn = app.db.connection().await?;
    let payment = sql::get(&mut conn, id).await?;
    let order = match &payment {
        Some(payment) => orders::sql::get(&mut conn, payment.order_id).await?,
        None => None,
    };
    conn.done();
    match (payment, order) {
        (Some(payment), Some(order)) if order.is_visible_to(account) => Ok(payment),
        _ => Err(Problem::not_found()),
    }
}
