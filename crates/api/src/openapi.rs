//! The OpenAPI document: written beside the handlers, gathered here, and served with its reference.

mod common;
mod examples;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::accounts::{create as accounts, current};
use crate::catalog::{movement, read as products};
use crate::pages::assets;
use crate::problem::Problem;
use crate::routes::{self, only_shown, shown};
use crate::webhooks::{endpoints, inbound};
use crate::{orders, payments, records, refunds};
use common::Common;

/// The API of Payonce.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Payonce",
        description = "Orders and payments that are safe to retry. Every request that changes something carries an `Idempotency-Key`; the same key with the same request gets the same answer, byte for byte, for 24 hours.",
    ),
    servers((url = "/")),
    security(("bearer" = [])),
    paths(
        accounts::create_account, current::get_account, current::get_account_by_id, current::create_session, current::delete_session,
        products::list_products, products::get_product, movement::create_stock_movement, movement::get_stock_movement,
        orders::create::create_order, orders::read::list_orders, orders::read::get_order, orders::cancel::cancel_order,
        orders::receipt::create_receipt,
        payments::create::create_payment, payments::read::get_payment,
        refunds::create::create_refund, refunds::read::get_refund,
        endpoints::create::create_endpoint, endpoints::read::list_endpoints, endpoints::read::get_endpoint,
        endpoints::read::get_secret, endpoints::delete::delete_endpoint, inbound::receive_event,
        records::get_record, routes::policy,
    ),
    components(schemas(ProblemBody)),
    modifiers(&Bearer, &Common),
)]
struct Api;

/// A problem document (RFC 9457) with what a client needs to decide about a retry.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
#[allow(dead_code, reason = "only its shape is used")]
struct ProblemBody {
    /// Where the kind of problem is described.
    #[schema(example = "/problems/idempotency_key_reused")]
    r#type: String,
    /// The same for every problem of this code.
    title: String,
    /// The HTTP status.
    #[schema(example = 422, minimum = 400, maximum = 599)]
    status: u16,
    /// What happened this time.
    detail: String,
    /// The path that was asked.
    instance: Option<String>,
    /// A stable name.
    #[schema(example = "idempotency_key_reused")]
    code: String,
    /// May the same request be sent again?
    retryable: bool,
    /// Can a new key not cause a second effect?
    safe_new_key: bool,
    /// With `validation_failed`: what is wrong where.
    errors: Option<Vec<FieldError>>,
    /// With `idempotency_key_reused`: JSON pointers of members that differ.
    pointers: Option<Vec<String>>,
    /// With `idempotency_key_reused`: of path, query, method, content_type, body.
    differs: Option<Vec<String>>,
    /// The resource that this is about.
    resource: Option<String>,
    /// With refused payments.
    payment_id: Option<String>,
}

/// One broken rule.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "only its shape is used")]
struct FieldError {
    /// Where in the request.
    #[schema(example = "/lines/0/quantity")]
    pointer: String,
    /// What is wrong.
    message: String,
}

/// The rules of keys.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "only its shape is used")]
pub struct Policy {
    /// What a key may look like.
    key: KeyRules,
    /// How long a finished key replays.
    retention_seconds: u64,
    /// How long a duplicate waits for a running request, in seconds.
    wait: WaitRules,
    /// All routes.
    routes: Vec<RouteRules>,
}

/// What a key may look like.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "only its shape is used")]
struct KeyRules {
    /// In bytes.
    min: u16,
    /// In bytes.
    max: u16,
    /// In words.
    charset: String,
}

/// How long a duplicate waits.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "only its shape is used")]
struct WaitRules {
    /// Without `Prefer: wait`.
    default: u64,
    /// At most.
    max: u64,
}

/// One route.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "only its shape is used")]
struct RouteRules {
    /// `POST`, …
    method: String,
    /// With placeholders.
    path: String,
    /// Whether it takes a key.
    guarded: bool,
    /// Why it changes something without one.
    exempt: Option<String>,
}

/// The whole document.
pub fn document() -> Document {
    Api::openapi()
}

/// The document as it is served and committed.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn json() -> anyhow::Result<String> {
    Ok(format!("{}\n", document().to_pretty_json()?))
}

/// `POST /v1/orders`, … for everything in the document.
pub fn operations() -> Vec<String> {
    let document = document();
    let named = |path: &str, item: &PathItem| {
        each(item).map(|(method, _)| format!("{method} {path}")).collect::<Vec<_>>()
    };
    document.paths.paths.iter().flat_map(|(path, item)| named(path, item)).collect()
}

fn each(item: &PathItem) -> impl Iterator<Item = (&'static str, &Operation)> {
    [
        ("GET", &item.get),
        ("PUT", &item.put),
        ("POST", &item.post),
        ("DELETE", &item.delete),
        ("PATCH", &item.patch),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_default();
        components
            .add_security_scheme("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

/// `GET /openapi.json`
pub async fn served() -> Result<HttpResponse, Problem> {
    let document = json().map_err(|error| Problem::internal(&error))?;
    Ok(HttpResponse::Ok().content_type("application/json").body(document))
}

/// `/docs`: the reference with a try-it page, from the binary, without any outside request.
pub fn docs(config: &mut web::ServiceConfig) {
    let swagger = SwaggerUi::new("/docs/{_:.*}").config(Config::from("/openapi.json"));
    config
        .service(shown("/docs", || async { web::Redirect::to("/docs/") }))
        // In the place of its own two: how it looks, and how it begins.
        .service(shown("/docs/index.css", || async { own("docs.css") }))
        .service(shown("/docs/swagger-initializer.js", || async { own("docs.js") }))
        .service(swagger)
        .service(only_shown("/docs/{_:.*}"));
}

fn own(name: &str) -> Result<HttpResponse, Problem> {
    let asset = assets::find(name).ok_or_else(Problem::not_found)?;
    Ok(HttpResponse::Ok().content_type(asset.content_type).body(asset.body))
}
