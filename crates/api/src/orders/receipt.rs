//! Ask for an order's receipt: it has one, queued now or earlier, and always the same.

use actix_web::HttpResponse;
use domain::{OrderId, OrderStatus, ReceiptId};
use idempotency::{Claim, Finished, Outcome, Reply};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::cancel::owned;
use super::{Order, refused};
use crate::accounts::Account;
use crate::app::App;
use crate::db;
use crate::guard::Guarded;
use crate::mail;
use crate::operation::{self, Ended, Operation, Stop};
use crate::problem::Problem;

/// A receipt on the wire.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Receipt)]
pub struct ReceiptBody {
    /// `rcp_…`
    #[schema(value_type = String, example = "rcp_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub id: ReceiptId,
    /// For which order.
    #[schema(value_type = String, example = "ord_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub order_id: OrderId,
    /// Where it goes.
    #[schema(example = "ada@example.com")]
    pub to: String,
    /// When it was queued.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}

/// Asks for the receipt of a paid order
#[utoipa::path(
    post, path = "/v1/orders/{id}/receipts", tag = "Orders",
    params(("id" = String, Path, example = "ord_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses((status = 202, description = "The order's one receipt, queued now or earlier", body = ReceiptBody)),
)]
pub async fn create_receipt(request: Guarded) -> Result<HttpResponse, Problem> {
    let operation =
        Create { account: request.account()?, order: request.id("id"), body: request.no_body() };
    request.perform(operation).await
}

/// The operation.
pub struct Create {
    /// Who asks.
    pub account: Account,
    /// Which order, or that the id is none.
    pub order: Result<OrderId, Problem>,
    /// That no body was sent.
    pub body: Result<(), Problem>,
}

impl Operation for Create {
    const NAME: &'static str = "POST /v1/orders/{id}/receipts";

    async fn execute(&self, app: &App, claim: &Claim) -> Result<Finished, Stop> {
        let id = self.order.clone().map_err(Stop::Passing)?;
        db::retrying(|| async {
            let mut tx = app.db.begin_claim(&claim.identity).await?;
            // Locked, so that of two requests the later one finds what the first has queued.
            let order = owned(&mut tx, &self.account, id).await?;
            // The merchant sees every order, but has no mail sent to its buyer.
            if order.account_id != self.account.id {
                return Err(Stop::Passing(Problem::not_found()));
            }
            self.body.clone().map_err(Stop::Passing)?;
            check_paid(&order)?;
            let receipt = mail::queue_receipt(&mut tx, app, &order).await?;
            let receipt = receipt.ok_or_else(|| Stop::Passing(nobody_to_write_to()))?;
            let body = ReceiptBody {
                id: receipt.id,
                order_id: order.id,
                to: receipt.to,
                created_at: receipt.created_at,
            };
            let body = serde_json::to_vec(&body)
                .map_err(|error| Stop::Passing(Problem::internal(&error)))?;
            let reply = Reply::new(202, "application/json", body);
            let path = order.path();
            let ended = Ended {
                operation: Self::NAME,
                outcome: Outcome::Completed,
                reply: &reply,
                resource: Some(&path),
            };
            operation::commit(app, tx, claim, ended).await
        })
        .await
    }
}

/// An order that was paid keeps its receipt, whatever went back later.
fn check_paid(order: &Order) -> Result<(), Stop> {
    match order.status {
        OrderStatus::Paid | OrderStatus::PartiallyRefunded | OrderStatus::Refunded => Ok(()),
        OrderStatus::Pending | OrderStatus::Cancelled | OrderStatus::Expired => {
            Err(refused(order, domain::OrderRefusal::Illegal { status: order.status }))
        }
    }
}

fn nobody_to_write_to() -> Problem {
    Problem::invalid("", "The order has no e-mail address to send a receipt to.")
}
