//! What every route of a kind has in common in the document, and an example of each request and answer.

use serde_json::{Value, json};
use utoipa::Modify;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi as Document, Ref, RefOr, Required, Schema};

use super::examples;
use crate::problem::{Code, PROBLEM_JSON};
use crate::routes::{self, RouteFacts};

/// Keys, replay headers and problems: the same on every route of a kind, so written once.
pub(super) struct Common;

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
