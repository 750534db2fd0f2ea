//! The OpenAPI document: written beside the handlers, completed here with what every guarded
//! route has in common, and with an example of each request and answer.

mod examples;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi as Document, Ref, RefOr, Required, Schema};
use utoipa::{Modify, OpenApi, ToSchema};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::accounts::{create as accounts, current};
use crate::catalog::{movement, read as products};
use crate::pages::assets;
use crate::problem::{Code, PROBLEM_JSON, Problem};
use crate::routes::{self, RouteFacts, only_shown, shown};
use crate::webhooks::{endpoints, inbound};
use crate::{orders, payments, records, refunds};

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

/// Keys, replay headers and problems: the same on every route of a kind, so written once.
struct Common;

impl Modify for Common {
    fn modify(&self, document: &mut Document) {
        let refusals = Code::ALL.iter().map(|code| {
            let example = serde_json::from_value(json!({ "value": examples::problem(*code) }));
            (code.as_str().to_owned(), RefOr::T(example.expect("a value is an example")))
        });
        document.components.get_or_insert_default().examples.extend(refusals);
        for route in routes::api().facts() {
            let Some(item) = document.paths.paths.get_mut(route.path) else { continue };
            let operation = match route.method.as_str() {
                "GET" => &mut item.get,
                "POST" => &mut item.post,
                "DELETE" => &mut item.delete,
                _ => continue,
            };
            if let Some(operation) = operation {
                complete(operation, route);
            }
        }
    }
}

fn complete(operation: &mut Operation, route: &RouteFacts) {
    if let Some(why) = route.exempt {
        extend(operation, json!({ "exempt": why }));
    }
    if route.guarded {
        extend(operation, json!({ "key": "required" }));
        parameter(operation, key_parameter());
        parameter(operation, prefer_parameter());
        replay_headers(operation);
    }
    for status in statuses(operation, route) {
        let problem = response(json!({
            "description": describe(status),
            "headers": retry_headers(status),
            "content": { "application/problem+json": {
                "schema": { "$ref": "#/components/schemas/Problem" } } },
        }));
        operation.responses.responses.entry(status.to_string()).or_insert(problem);
    }
    refusals_are_problems(operation);
    bodies_are_objects(operation);
    show(operation, route);
}

/// An example of what is sent, of what comes back, and of every refusal.
fn show(operation: &mut Operation, route: &RouteFacts) {
    let name = format!("{} {}", route.method, route.path);
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        for content in body.content.values_mut() {
            let RefOr::T(content) = content else { continue };
            content.example = examples::request(&name);
        }
    }
    for (status, described) in &mut operation.responses.responses {
        let RefOr::T(described) = described else { continue };
        let refusals =
            status.parse().map(|status| examples::problems(&name, route.guarded, status));
        for (kind, content) in &mut described.content {
            let RefOr::T(content) = content else { continue };
            match kind.as_str() {
                PROBLEM_JSON => {
                    let shared = refusals.iter().flatten().map(|code| {
                        let place = format!("#/components/examples/{}", code.as_str());
                        (code.as_str().to_owned(), RefOr::Ref(Ref::new(place)))
                    });
                    content.examples.extend(shared);
                }
                _ => content.example = examples::response(&name),
            }
        }
    }
}

/// A body that may be left out is not one that may be `null`.
fn bodies_are_objects(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else { return };
    for content in body.content.values_mut() {
        let RefOr::T(content) = content else { continue };
        if let Some(RefOr::T(Schema::OneOf(choice))) = &content.schema {
            content.schema = choice.items.first().cloned();
            body.required = Some(Required::False);
        }
    }
}

/// Also where a handler describes a refusal in its own words.
fn refusals_are_problems(operation: &mut Operation) {
    for (status, described) in &mut operation.responses.responses {
        let RefOr::T(known) = described else { continue };
        if !status.starts_with(['4', '5']) || !known.content.is_empty() {
            continue;
        }
        let document = response(json!({ "description": "", "content": {
            "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } } }));
        if let RefOr::T(document) = document {
            known.content = document.content;
        }
    }
}

fn extend(operation: &mut Operation, value: Value) {
    let extensions = ExtensionsBuilder::new().add("x-idempotency", value).build();
    operation.extensions.get_or_insert_default().merge(extensions);
}

fn parameter(operation: &mut Operation, parameter: Value) {
    let parameter = serde_json::from_value(parameter).expect("a parameter written here is one");
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter));
}

fn response(response: Value) -> RefOr<utoipa::openapi::Response> {
    RefOr::T(serde_json::from_value(response).expect("a response written here is one"))
}

fn key_parameter() -> Value {
    json!({
        "name": "Idempotency-Key", "in": "header", "required": true,
        "description": "Names this purchase, not this attempt: a fresh UUID for a new request, the same one for every repeat. \"abc\" in quotes is the same key as abc.",
        "schema": { "type": "string", "minLength": 1, "maxLength": 255,
                    "pattern": "^[!#-+\\--:<-\\[\\]-~]{1,255}$" },
        "example": "8e03978e-40d5-43dd-bc93-6894a57f9324",
    })
}

fn prefer_parameter() -> Value {
    json!({
        "name": "Prefer", "in": "header", "required": false,
        "description": "wait=N: how many seconds a duplicate waits for the running request (RFC 7240), 0 to 30; 10 if not said.",
        "schema": { "type": "string" }, "example": "wait=10",
    })
}

fn replay_headers(operation: &mut Operation) {
    let headers = json!({
        "Idempotency-Replayed": { "description": "true on every answer that was given before",
                                  "schema": { "type": "string", "enum": ["true"] } },
        "Idempotency-Key-Expires": { "description": "Until when the answer can be had again",
                                     "schema": { "type": "string", "format": "date-time" } },
        "Content-Digest": { "description": "SHA-256 of the body (RFC 9530), the same on every replay",
                            "schema": { "type": "string" } },
    });
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else { continue };
        let Value::Object(headers) = headers.clone() else { continue };
        for (name, header) in headers {
            let header = serde_json::from_value(header).expect("a header written here is one");
            response.headers.insert(name, header);
        }
    }
}

fn retry_headers(status: u16) -> Value {
    match status {
        408 | 409 | 429 | 503 => json!({ "Retry-After": {
            "description": "Seconds after which to send the same request again, where that helps",
            "schema": { "type": "integer", "format": "int32", "minimum": 0 } } }),
        _ => json!({}),
    }
}

/// The statuses of problems that a route can answer with.
fn statuses(operation: &Operation, route: &RouteFacts) -> Vec<u16> {
    let open = operation.security.as_ref().is_some_and(Vec::is_empty);
    let mut statuses = vec![429, 500, 503];
    if !open || route.exempt.is_some() {
        statuses.push(401);
    }
    if route.path.contains('{') {
        statuses.push(404);
    }
    if route.guarded {
        statuses.extend([400, 408, 409, 413, 415, 422]);
    } else if operation.request_body.is_some() || route.exempt.is_some() {
        statuses.extend([400, 408, 413, 415, 422]);
    } else if operation.parameters.iter().flatten().any(is_query) {
        statuses.push(422);
    }
    if route.role.is_some() {
        statuses.push(403);
    }
    if route.path.ends_with("/payments") {
        statuses.push(402);
    }
    statuses
}

fn is_query(parameter: &RefOr<utoipa::openapi::path::Parameter>) -> bool {
    matches!(parameter, RefOr::T(parameter)
        if parameter.parameter_in == utoipa::openapi::path::ParameterIn::Query)
}

fn describe(status: u16) -> &'static str {
    match status {
        400 => "No key, a malformed key, or a body that is not unambiguous JSON",
        401 => "No token, or one that is no good",
        402 => "The card was refused; nothing was charged",
        403 => "The account has not the role for this",
        404 => "Not there, or not yours",
        408 => "The body did not arrive as a whole in its time; nothing was done",
        409 => "The state does not allow it, or the outcome of this key is not known yet",
        413 => "More than 65536 bytes",
        415 => "Not application/json",
        422 => "A broken rule, or a key that belongs to another request",
        429 => "Too many requests",
        500 => "The server failed; send the same request with the same key again",
        _ => "Busy, or the provider cannot be reached; nothing was done",
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
