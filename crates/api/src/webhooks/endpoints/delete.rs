//! Delete an endpoint: nothing more is sent there. The row stays, so that its key never makes a
//! second one; its secret does not.

use actix_web::HttpResponse;
use bytes::Bytes;
use domain::WebhookEndpointId;
use idempotency::{Claim, Finished, Outcome, Reply};

use super::sql;
use crate::accounts::Account;
use crate::app::App;
use crate::db;
use crate::guard::Guarded;
use crate::operation::{self, Ended, Operation, Stop};
use crate::problem::Problem;

/// Deletes a webhook endpoint
#[utoipa::path(
    delete, path = "/v1/webhook-endpoints/{id}", tag = "Webhooks",
    params(("id" = String, Path, example = "whe_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses((status = 204, description = "Nothing more is sent there")),
)]
pub async fn delete_endpoint(request: Guarded) -> Result<HttpResponse, Problem> {
    let operation =
        Delete { account: request.account()?, endpoint: request.id("id"), body: request.no_body() };
    request.perform(operation).await
}

/// The operation.
pub struct Delete {
    /// Whose endpoint it is.
    pub account: Account,
    /// Which one, or that the id is none.
    pub endpoint: Result<WebhookEndpointId, Problem>,
    /// That no body was sent.
    pub body: Result<(), Problem>,
}

impl Operation for Delete {
    const NAME: &'static str = "DELETE /v1/webhook-endpoints/{id}";

    async fn execute(&self, app: &App, claim: &Claim) -> Result<Finished, Stop> {
        let id = self.endpoint.clone().map_err(Stop::Passing)?;
        let reply = Reply::new(204, "", Bytes::new());
        db::retrying(|| async {
            let mut tx = app.db.begin_claim(&claim.identity).await?;
            if !sql::delete(&mut tx, self.account.id, id).await? {
                return Err(Stop::Passing(Problem::not_found()));
            }
            // Whose it is comes first; without a commit it stays.
            self.body.clone().map_err(Stop::Passing)?;
            let ended = Ended {
                operation: Self::NAME,
                outcome: Outcome::Completed,
                reply: &reply,
                resource: None,
            };
            operation::commit(app, tx, claim, ended).await
        })
        .await
    }
}
