//! Routes without a body: members that are sent to them are refused, in their turn.

use serde_json::{Value, json};

use crate::app::{Caller, Response, TestApp};

async fn ask(
    caller: &Caller,
    (method, path): &(&str, String),
    key: &str,
    body: &Value,
) -> Response {
    caller.request(method, path).key(key).json(body).send().await
}

/// The merchant, who may do all of it, with an order that is paid, one that is not, an endpoint.
async fn routes(merchant: &Caller) -> [(&'static str, String); 3] {
    let (paid, pending) = (merchant.order("paid").await, merchant.order("pending").await);
    merchant.pay(&paid, "paid-too", "pm_card_ok").await.expect(201);
    let wish = json!({ "url": "http://127.0.0.1:9/hook", "events": ["order.paid"] });
    let hook = merchant.post("/v1/webhook-endpoints", "hook", &wish).await.expect(201).text("id");
    [
        ("POST", format!("/v1/orders/{pending}/cancel")),
        ("POST", format!("/v1/orders/{paid}/receipts")),
        ("DELETE", format!("/v1/webhook-endpoints/{hook}")),
    ]
}

#[tokio::test]
async fn a_route_without_a_body_refuses_members_and_leaves_the_key_free() {
    let app = TestApp::start().await;
    let merchant = app.merchant().await;
    for (n, route) in routes(&merchant).await.into_iter().enumerate() {
        let key = format!("K{n}");
        let members = json!({ "reason": "too late", "a/b": { "c": 1 } });
        let refused = ask(&merchant, &route, &key, &members).await;
        let refused = refused.problem(422, "validation_failed").json();
        let errors = refused["errors"].as_array().unwrap().iter();
        let pointers: Vec<&Value> = errors.map(|error| &error["pointer"]).collect();
        assert_eq!(pointers, [&json!("/a~1b"), &json!("/reason")], "{refused}");
        for body in [json!([]), json!(null), json!("{}"), json!(0), json!([{}])] {
            let refused = ask(&merchant, &route, &key, &body).await;
            assert_eq!(
                refused.problem(422, "validation_failed").json()["errors"][0]["pointer"],
                ""
            );
        }
        // What is not this account's comes before what is wrong with the request.
        let elsewhere = (route.0, "/v1/orders/ord_1/cancel".to_owned());
        if route.0 == "POST" {
            ask(&merchant, &elsewhere, &key, &members).await.problem(404, "not_found");
        }
        let done = ask(&merchant, &route, &key, &json!({})).await;
        assert!(done.status < 300 && !done.is_replay(), "{done:?}");
        // A key that was used comes first, whatever is wrong with the request.
        let reused = ask(&merchant, &route, &key, &members).await;
        reused.problem(422, "idempotency_key_reused");
        ask(&merchant, &route, &key, &json!({})).await.replays(&done);
    }
    app.finish().await;
}

#[tokio::test]
async fn signing_out_takes_no_members_either() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let leave = |body: Value| shopper.request("DELETE", "/v1/sessions/current").json(&body).send();
    leave(json!({ "everywhere": true })).await.problem(422, "validation_failed");
    leave(json!([])).await.problem(422, "validation_failed");
    shopper.get("/v1/accounts/me").await.expect(200);
    leave(json!({})).await.expect(204);
    shopper.get("/v1/accounts/me").await.problem(401, "unauthenticated");
    app.finish().await;
}
