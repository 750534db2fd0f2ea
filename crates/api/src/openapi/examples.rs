//! Examples of every route: what to send and what comes back, as one story in the demo shop.
//!
//! Ada orders a bell and two mugs, pays, and sends one mug back. Requests work as they stand; only
//! ids are those of the story. A test sends them all.

use serde_json::{Value, json};

use crate::problem::{Code, Problem};

const ACCOUNT: &str = "acc_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f";
const ORDER: &str = "ord_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f";
const PAYMENT: &str = "pay_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f";
const REFUND: &str = "ref_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f";
const ENDPOINT: &str = "whe_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f";
const MADE: &str = "2026-11-29T10:42:07.006Z";
const LATER: &str = "2026-11-29T10:57:07.006Z";
const TOMORROW: &str = "2026-11-30T10:42:07.192Z";

/// The body of a request, for the routes that take one.
pub(super) fn request(route: &str) -> Option<Value> {
    Some(match route {
        "POST /v1/accounts" => {
            json!({ "email": "ada@example.com", "password": "correct horse battery", "name": "Ada" })
        }
        "POST /v1/sessions" => {
            json!({ "email": "shopper@payonce.test", "password": "click-twice-pay-once" })
        }
        "POST /v1/products/{sku}/stock-movements" => {
            json!({ "delta": 24, "reason": "Delivery of two boxes." })
        }
        "POST /v1/orders" => json!({
            "lines": [{ "sku": "counter-bell", "quantity": 1 }, { "sku": "enamel-mug", "quantity": 2 }],
            "expected_total": usd(6000), "email": "ada@example.com", "note": "Leave it at the door.",
        }),
        "POST /v1/orders/{id}/payments" => {
            json!({ "payment_method": "pm_card_ok", "amount": usd(6000) })
        }
        "POST /v1/payments/{id}/refunds" => {
            json!({ "amount": usd(1800), "reason": "One of the two came broken.", "restock": false })
        }
        "POST /v1/webhook-endpoints" => json!({
            "url": "https://example.com/hooks/payonce", "events": ["order.paid", "refund.succeeded"],
        }),
        "POST /v1/webhooks/provider" => json!({
            "type": "charge.succeeded",
            "data": { "id": "ch_8Q1", "provider_key": "pk_7f3a", "reference": ORDER,
                      "amount": usd(6000), "status": "succeeded", "refunded": usd(0), "created_at": MADE },
        }),
        _ => return None,
    })
}

/// The body of a success, for the routes that have one.
pub(super) fn response(route: &str) -> Option<Value> {
    Some(match route {
        "POST /v1/accounts" | "GET /v1/accounts/me" | "GET /v1/accounts/{id}" => json!({
            "id": ACCOUNT, "email": "ada@example.com", "name": "Ada", "role": "shopper",
            "created_at": MADE,
        }),
        "POST /v1/sessions" => {
            json!({ "token": "pt_Zm9ydHktdHdvIGJlbGxz", "expires_at": TOMORROW })
        }
        "GET /v1/products" => json!({ "data": [product()], "next_cursor": null }),
        "GET /v1/products/{sku}" => product(),
        "POST /v1/products/{sku}/stock-movements"
        | "GET /v1/products/{sku}/stock-movements/{id}" => json!({
            "id": "stm_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f", "sku": "counter-bell", "delta": 24,
            "reason": "Delivery of two boxes.", "stock_after": 144, "created_at": MADE,
        }),
        "POST /v1/orders" => order("pending"),
        "GET /v1/orders" => json!({ "data": [order("pending")], "next_cursor": null }),
        "GET /v1/orders/{id}" => order("pending"),
        "POST /v1/orders/{id}/cancel" => order("cancelled"),
        "POST /v1/orders/{id}/receipts" => json!({
            "id": "rcp_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f", "order_id": ORDER,
            "to": "ada@example.com", "created_at": MADE,
        }),
        "POST /v1/orders/{id}/payments" | "GET /v1/payments/{id}" => json!({
            "id": PAYMENT, "order_id": ORDER, "status": "succeeded", "amount": usd(6000),
            "refunded": usd(0), "payment_method": "pm_card_ok", "created_at": MADE,
        }),
        "POST /v1/payments/{id}/refunds" | "GET /v1/refunds/{id}" => json!({
            "id": REFUND, "payment_id": PAYMENT, "status": "succeeded", "amount": usd(1800),
            "reason": "One of the two came broken.", "restock": false, "created_at": MADE,
        }),
        "POST /v1/webhook-endpoints" | "GET /v1/webhook-endpoints/{id}" => endpoint(),
        "GET /v1/webhook-endpoints" => json!({ "data": [endpoint()], "next_cursor": null }),
        "GET /v1/webhook-endpoints/{id}/secret" => {
            json!({ "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" })
        }
        "POST /v1/webhooks/provider" => json!({ "outcome": "applied" }),
        "GET /v1/idempotency-keys/{key}" => json!({
            "state": "completed", "attempts": 1, "created_at": MADE,
            "finished_at": "2026-11-29T10:42:07.192Z", "expires_at": TOMORROW,
            "response_status": 201, "resource": format!("/v1/orders/{ORDER}"),
        }),
        "GET /.well-known/idempotency" => policy(),
        _ => return None,
    })
}

/// The refusals with this status that a route can answer with.
pub(super) fn problems(route: &str, guarded: bool, status: u16) -> Vec<Code> {
    let of_status = Code::ALL.iter().copied().filter(|code| code.status() == status);
    of_status.filter(|code| can_answer(route, guarded, *code)).collect()
}

/// Passing and general refusals are everybody's; those of a domain belong to its routes.
fn can_answer(route: &str, guarded: bool, code: Code) -> bool {
    let takes = |part: &str| guarded && route.ends_with(part);
    match code {
        Code::IdempotencyKeyMissing
        | Code::IdempotencyKeyInvalid
        | Code::IdempotencyKeyReused
        | Code::RequestInProgress => guarded,
        Code::IdempotencyKeyExpired => guarded && route.starts_with("POST") && makes(route),
        Code::OutcomeUnknown | Code::ProviderUnavailable => takes("/payments") || takes("/refunds"),
        Code::PaymentInProgress => takes("/payments") || takes("/refunds") || takes("/cancel"),
        Code::RefundInProgress | Code::RefundTooLarge => takes("/refunds"),
        Code::OrderAlreadyPaid
        | Code::OrderExpired
        | Code::CardDeclined
        | Code::InsufficientFunds => takes("/payments"),
        Code::OutOfStock => takes("/orders") || takes("/stock-movements"),
        Code::PriceChanged => takes("/orders"),
        Code::InvalidTransition => {
            ["/cancel", "/payments", "/refunds", "/receipts"].into_iter().any(takes)
        }
        Code::EmailTaken => takes("/accounts"),
        Code::MalformedJson
        | Code::Unauthenticated
        | Code::Forbidden
        | Code::NotFound
        | Code::MethodNotAllowed
        | Code::RequestIncomplete
        | Code::ValidationFailed
        | Code::BodyTooLarge
        | Code::UnsupportedMediaType
        | Code::RateLimited
        | Code::Busy
        | Code::Internal => true,
    }
}

/// Whether something remembers the key after its answer is gone.
fn makes(route: &str) -> bool {
    !route.ends_with("/cancel") && !route.ends_with("/receipts")
}

/// A refusal as somebody gets it.
pub(super) fn problem(code: Code) -> Value {
    let path = match code {
        Code::OutOfStock | Code::PriceChanged | Code::ValidationFailed => "/v1/orders".to_owned(),
        Code::EmailTaken => "/v1/accounts".to_owned(),
        Code::RefundInProgress | Code::RefundTooLarge => format!("/v1/payments/{PAYMENT}/refunds"),
        _ => format!("/v1/orders/{ORDER}/payments"),
    };
    with_members(Problem::new(code, code.means()), code).at(&path).document()
}

fn with_members(problem: Problem, code: Code) -> Problem {
    match code {
        Code::ValidationFailed => Problem::invalid("/lines/0/quantity", "A quantity is 1 to 99."),
        Code::IdempotencyKeyReused => problem
            .member("pointers", json!(["/lines/0/quantity"]))
            .member("differs", json!(["body"])),
        Code::OutcomeUnknown | Code::PaymentInProgress | Code::OrderAlreadyPaid => {
            problem.member("payment_id", PAYMENT).resource(&format!("/v1/payments/{PAYMENT}"))
        }
        Code::CardDeclined | Code::InsufficientFunds => problem.member("payment_id", PAYMENT),
        Code::IdempotencyKeyExpired => problem.resource(&format!("/v1/orders/{ORDER}")),
        Code::InvalidTransition => problem.member("state", "cancelled"),
        Code::RefundTooLarge => problem.member("remaining", usd(4200)),
        Code::PriceChanged => problem.member("total", usd(6000)),
        Code::OutOfStock => problem.member("sku", "counter-bell").member("available", 1),
        _ => problem,
    }
}

fn usd(amount: i64) -> Value {
    json!({ "amount": amount, "currency": "USD" })
}

fn product() -> Value {
    json!({ "sku": "counter-bell", "name": "Counter bell",
            "description": "Brass. Rings once per press.", "price": usd(2400), "stock": 120 })
}

fn order(status: &str) -> Value {
    let line = |sku, name, quantity, price: i64| {
        json!({ "sku": sku, "name": name, "quantity": quantity, "unit_price": usd(price),
                "line_total": usd(price * quantity) })
    };
    json!({
        "id": ORDER, "status": status,
        "lines": [line("counter-bell", "Counter bell", 1, 2400), line("enamel-mug", "Enamel mug", 2, 1800)],
        "total": usd(6000), "email": "ada@example.com", "note": "Leave it at the door.",
        "created_at": MADE, "reserved_until": LATER,
    })
}

fn endpoint() -> Value {
    json!({ "id": ENDPOINT, "url": "https://example.com/hooks/payonce",
            "events": ["order.paid", "refund.succeeded"], "created_at": MADE })
}

fn policy() -> Value {
    json!({
        "key": { "min": 1, "max": 255, "charset": "visible ASCII without , ; \" \\" },
        "retention_seconds": 86400, "wait": { "default": 10, "max": 30 },
        "routes": [
            { "method": "POST", "path": "/v1/orders", "guarded": true },
            { "method": "POST", "path": "/v1/sessions", "guarded": false,
              "exempt": "a token must never be stored in a reply that can be replayed" },
        ],
    })
}
