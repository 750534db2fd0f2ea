//! Create an endpoint: one key, one endpoint, one signing secret that no reply ever carries.

use actix_web::HttpResponse;
use domain::WebhookEndpointId;
use idempotency::reply::ReplyHeader;
use idempotency::{Claim, Finished, Outcome, Reply};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Endpoint, EndpointBody, EventKind, secret, sql};
use crate::accounts::Account;
use crate::app::App;
use crate::db;
use crate::guard::Guarded;
use crate::operation::{self, Ended, Operation, Stop};
use crate::problem::Problem;

/// A wish to be told.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateEndpoint {
    /// https:// or http://, a host on the public internet, no user or password.
    #[schema(
        example = "https://shop.example.com/hooks/payonce",
        max_length = 2000,
        format = "uri"
    )]
    pub url: String,
    /// At least one, each once.
    #[schema(min_items = 1, max_items = 4)]
    pub events: Vec<EventKind>,
}

/// Creates a webhook endpoint
#[utoipa::path(
    post, path = "/v1/webhook-endpoints", tag = "Webhooks", request_body = CreateEndpoint,
    responses((status = 201, description = "The endpoint; its secret has an address of its own", body = EndpointBody)),
)]
pub async fn create_endpoint(request: Guarded) -> Result<HttpResponse, Problem> {
    let operation = Create { account: request.account()?, body: request.body() };
    request.perform(operation).await
}

/// The operation.
pub struct Create {
    /// Whose endpoint it will be.
    pub account: Account,
    /// What was sent, or why it cannot be used.
    pub body: Result<CreateEndpoint, Problem>,
}

impl Operation for Create {
    const NAME: &'static str = "POST /v1/webhook-endpoints";

    async fn execute(&self, app: &App, claim: &Claim) -> Result<Finished, Stop> {
        let endpoint = self.endpoint(app).await.map_err(Stop::Passing)?;
        let sealed = secret::seal(&app.secrets, endpoint.id, &secret::generate());
        let reply = reply(&endpoint)?;
        let path = endpoint.path();
        db::retrying(|| async {
            let mut tx = app.db.begin_claim(&claim.identity).await?;
            sql::insert(&mut tx, &endpoint, self.account.id, &claim.identity, &sealed).await?;
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

impl Create {
    /// Resolves the host's name, so no transaction may be open here.
    async fn endpoint(&self, app: &App) -> Result<Endpoint, Problem> {
        let CreateEndpoint { url, events } = self.body.clone()?;
        let repeated = events.iter().enumerate().any(|(at, kind)| events[..at].contains(kind));
        if events.is_empty() || repeated {
            return Err(Problem::invalid("/events", "Name at least one event, each once."));
        }
        let checked = app.targets.check(&url).await;
        let url = checked.map_err(|refused| Problem::invalid("/url", refused.to_string()))?;
        Ok(Endpoint {
            id: WebhookEndpointId::from_uuid(app.clock.new_id()),
            url: url.into(),
            events,
            created_at: app.clock.now(),
        })
    }
}

fn reply(endpoint: &Endpoint) -> Result<Reply, Stop> {
    let body = serde_json::to_vec(&EndpointBody::from(endpoint.clone()))
        .map_err(|error| Stop::Passing(Problem::internal(&error)))?;
    Ok(Reply::new(201, "application/json", body).with(ReplyHeader::Location, endpoint.path()))
}
