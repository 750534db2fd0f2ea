//! Reading endpoints and their secrets: a merchant's own.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use domain::WebhookEndpointId;
use serde::Serialize;
use utoipa::ToSchema;

use super::{EndpointBody, secret, sql};
use crate::accounts::{Account, bearer};
use crate::app::App;
use crate::page::{Page, Window};
use crate::problem::Problem;

/// What deliveries to an endpoint are signed with.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookSecret)]
pub struct SecretBody {
    /// `whsec_` and base64, as Standard Webhooks libraries want it.
    #[schema(example = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")]
    secret: String,
}

/// Lists webhook endpoints, newest first
#[utoipa::path(
    get, path = "/v1/webhook-endpoints", tag = "Webhooks", params(Window),
    responses(
        (status = 200, description = "One's own endpoints", body = Page<EndpointBody>),
        (status = 403, description = "The account has not the role for this"),
    ),
)]
pub async fn list_endpoints(
    app: App,
    account: Account,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    bearer::merchants_only(&account)?;
    let window = Window::of(&request)?;
    let limit = window.limit()?;
    let before = window.after::<WebhookEndpointId>()?;
    let mut conn = app.db.connection().await?;
    let rows = sql::page(&mut conn, account.id, before, limit + 1).await;
    let rows = conn.end(rows)?;
    let page: Page<EndpointBody> =
        Page::of(rows, limit, |endpoint| endpoint.id.to_string(), EndpointBody::from);
    Ok(HttpResponse::Ok().json(page))
}

/// Shows a webhook endpoint
#[utoipa::path(
    get, path = "/v1/webhook-endpoints/{id}", tag = "Webhooks",
    params(("id" = String, Path, example = "whe_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses(
        (status = 200, description = "The endpoint", body = EndpointBody),
        (status = 403, description = "The account has not the role for this"),
    ),
)]
pub async fn get_endpoint(
    app: App,
    account: Account,
    id: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, _) = find(&app, &account, &id).await?;
    Ok(HttpResponse::Ok().json(EndpointBody::from(endpoint)))
}

/// Shows the signing secret of a webhook endpoint
#[utoipa::path(
    get, path = "/v1/webhook-endpoints/{id}/secret", tag = "Webhooks",
    params(("id" = String, Path, example = "whe_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses(
        (status = 200, description = "The secret", body = SecretBody),
        (status = 403, description = "The account has not the role for this"),
    ),
)]
pub async fn get_secret(
    app: App,
    account: Account,
    id: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let (endpoint, sealed) = find(&app, &account, &id).await?;
    let secret = secret::open(&app.secrets, endpoint.id, &sealed)
        .ok_or_else(|| Problem::internal(&"a webhook secret was sealed under another key"))?;
    Ok(HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(SecretBody { secret: secret.reveal() }))
}

async fn find(
    app: &App,
    account: &Account,
    id: &str,
) -> Result<(super::Endpoint, Vec<u8>), Problem> {
    bearer::merchants_only(account)?;
    let id = id.parse().map_err(|_| Problem::not_found())?;
    let mut conn = app.db.connection().await?;
    let found = sql::get(&mut conn, account.id, id).await;
    conn.end(found)?.ok_or_else(Problem::not_found)
}
