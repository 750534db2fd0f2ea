//! Cancel an order: the goods come back once, whoever asks and however often.

use actix_web::HttpResponse;
use domain::OrderId;
use idempotency::{Claim, Finished, Outcome, Reply};
use uuid::Uuid;

use super::{Order, OrderBody, refused, sql};
use crate::accounts::Account;
use crate::app::App;
use crate::db::{self, Tx};
use crate::guard::Guarded;
use crate::operation::{self, Ended, Operation, Stop};
use crate::problem::Problem;
use crate::{catalog, outbox};

/// Cancels an unpaid order
#[utoipa::path(
    post, path = "/v1/orders/{id}/cancel", tag = "Orders",
    params(("id" = String, Path, example = "ord_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses((status = 200, description = "The order; its goods are for sale again", body = OrderBody)),
)]
pub async fn cancel_order(request: Guarded) -> Result<HttpResponse, Problem> {
    let operation =
        Cancel { account: request.account()?, order: request.id("id"), body: request.no_body() };
    request.perform(operation).await
}

/// The operation.
pub struct Cancel {
    /// Who asks.
    pub account: Account,
    /// Which order, or that the id is none.
    pub order: Result<OrderId, Problem>,
    /// That no body was sent.
    pub body: Result<(), Problem>,
}

impl Operation for Cancel {
    const NAME: &'static str = "POST /v1/orders/{id}/cancel";

    async fn execute(&self, app: &App, claim: &Claim) -> Result<Finished, Stop> {
        let id = self.order.clone().map_err(Stop::Passing)?;
        db::retrying(|| async {
            let mut tx = app.db.begin_claim(&claim.identity).await?;
            let order = owned(&mut tx, &self.account, id).await?;
            self.body.clone().map_err(Stop::Passing)?;
            let cancelled = order.state().cancel().map_err(|refusal| refused(&order, refusal))?;
            if !sql::set_status(&mut tx, &order, cancelled.status()).await? {
                return Err(Stop::Taken);
            }
            catalog::sql::return_goods(&mut tx, id.uuid()).await?;
            outbox::order_cancelled(&mut tx, app, &order).await?;
            let order = Order { status: cancelled.status(), ..order };
            let reply = shown(&mut tx, order.clone(), 200).await?;
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

    fn shared(&self) -> Option<Uuid> {
        self.order.as_ref().ok().map(|id| id.uuid())
    }
}

/// The order, locked, if this account may see it.
pub async fn owned(tx: &mut Tx, account: &Account, id: OrderId) -> Result<Order, Stop> {
    let order = sql::lock(tx, id).await?;
    order
        .filter(|order| order.is_visible_to(account))
        .ok_or_else(|| Stop::Passing(Problem::not_found()))
}

async fn shown(tx: &mut Tx, order: Order, status: u16) -> Result<Reply, Stop> {
    let lines = sql::lines(tx, order.id).await?;
    let body = serde_json::to_vec(&OrderBody::new(order, lines))
        .map_err(|error| Stop::Passing(Problem::internal(&error)))?;
    Ok(Reply::new(status, "application/json", body))
}
