//! Which requests are the same request, and what is said of those that are not.

use serde_json::{Value, json};

use crate::app::{Caller, Response, TestApp, basket};

async fn sent(caller: &Caller, body: &str) -> Response {
    caller.request("POST", "/v1/orders").key("K").body("application/json", body).send().await
}

#[track_caller]
fn differs(response: Response, differs: &[&str], pointers: &[&str]) -> Value {
    let document = response.problem(422, "idempotency_key_reused").json();
    assert_eq!(document["differs"], json!(differs), "{document}");
    assert_eq!(document["pointers"], json!(pointers), "{document}");
    document
}

#[tokio::test]
async fn spelling_does_not_make_another_request() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let first =
        sent(&shopper, r#"{"lines":[{"sku":"enamel-mug","quantity":2}],"note":"At the door, é"}"#)
            .await
            .expect(201);
    for same in [
        r#"{"note":"At the door, é","lines":[{"quantity":2,"sku":"enamel-mug"}]}"#,
        "{ \"lines\" : [ {\"sku\":\"enamel-mug\",\n\t\"quantity\": 2 } ],\r\n\"note\":\"At the door, é\" }\n",
        r#"{"lines":[{"sku":"enamel-mug","quantity":2.0}],"note":"At the door, é"}"#,
        r#"{"lines":[{"sku":"enamel-mug","quantity":2e0}],"note":"At the door, é"}"#,
        r#"{"lines":[{"sku":"enamel-mug","quantity":0.2E+1}],"note":"At the door, é"}"#,
        r#"{"lines":[{"sku":"enamel\u002dmug","quantity":2}],"note":"\u0041t the door, \u00E9"}"#,
    ] {
        sent(&shopper, same).await.replays(&first);
    }
    for content_type in
        ["application/json; charset=utf-8", "Application/JSON", "application/json ;a=b"]
    {
        let again = shopper.request("POST", "/v1/orders").key("K").body(
            content_type,
            r#"{"lines":[{"sku":"enamel-mug","quantity":2}],"note":"At the door, é"}"#,
        );
        again.send().await.replays(&first);
    }
    app.finish().await;
}

#[tokio::test]
async fn headers_and_tokens_do_not_make_another_request() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let body = basket(&[("enamel-mug", 1)]);
    let first = shopper.post("/v1/orders", "K", &body).await.expect(201);
    let again = shopper.request("POST", "/v1/orders").key("K").json(&body);
    let again = again.header("Accept", b"*/*").header("User-Agent", b"other").wait(3);
    again.send().await.replays(&first);
    let rotated = app.shopper().await;
    assert_ne!(rotated.token, shopper.token);
    rotated.post("/v1/orders", "K", &body).await.replays(&first);
    app.finish().await;
}

#[tokio::test]
async fn another_request_is_told_what_differs_and_never_what_it_was() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let body = json!({ "lines": [{ "sku": "enamel-mug", "quantity": 1 }], "note": "at the gate" });
    let first = shopper.post("/v1/orders", "K", &body).await.expect(201);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = body.clone();
        change(&mut changed);
        changed.to_string()
    };
    let quantity = with(&|body| body["lines"][0]["quantity"] = json!(5));
    differs(sent(&shopper, &quantity).await, &["body"], &["/lines/0/quantity"]);
    let note = with(&|body| body["note"] = json!("after"));
    let document = differs(sent(&shopper, &note).await, &["body"], &["/note"]);
    assert!(!document.to_string().contains("gate"), "{document}");
    let null = with(&|body| body["note"] = Value::Null);
    differs(sent(&shopper, &null).await, &["body"], &["/note"]);
    let gone = with(&|body| drop(body.as_object_mut().unwrap().remove("note")));
    differs(sent(&shopper, &gone).await, &["body"], &["/note"]);
    let more = with(&|body| {
        body["lines"].as_array_mut().unwrap().push(json!({ "sku": "order-book", "quantity": 1 }));
    });
    differs(sent(&shopper, &more).await, &["body"], &["/lines/1/quantity", "/lines/1/sku"]);
    let text = with(&|body| body["lines"][0]["quantity"] = json!("1"));
    differs(sent(&shopper, &text).await, &["body"], &["/lines/0/quantity"]);
    let query = shopper.request("POST", "/v1/orders?a=1").key("K").json(&body).send().await;
    differs(query, &["query"], &[]);
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 1);
    shopper.post("/v1/orders", "K", &body).await.replays(&first);
    app.finish().await;
}

#[tokio::test]
async fn the_path_counts_as_it_was_sent_not_as_a_template() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let (one, other) = (shopper.order("K1").await, shopper.order("K2").await);
    let path = |order: &str| format!("/v1/orders/{order}/cancel");
    let first = shopper.post_empty(&path(&one), "K").await.expect(200);
    differs(shopper.post_empty(&path(&other), "K").await, &["path"], &[]);
    let status = shopper.get(&format!("/v1/orders/{other}")).await.text("status");
    assert_eq!(status, "pending", "the other order is untouched");
    shopper.post_empty(&path(&one), "K").await.replays(&first);

    let (one, other) = (shopper.order("K3").await, shopper.order("K4").await);
    let paid = shopper.pay(&one, "P", "pm_card_ok").await.expect(201);
    differs(shopper.pay(&other, "P", "pm_card_ok").await, &["path"], &[]);
    assert_eq!(app.captures(&other).await, 0);
    shopper.pay(&one, "P", "pm_card_ok").await.replays(&paid);
    app.finish().await;
}

#[tokio::test]
async fn a_body_where_none_belongs_is_a_difference() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let path = format!("/v1/orders/{}/cancel", shopper.order("K1").await);
    let first = shopper.post_empty(&path, "K").await.expect(200);
    let bodied = shopper.post(&path, "K", &json!({ "why": "no" })).await;
    differs(bodied, &["body", "content_type"], &["/why"]);
    let empty = shopper.request("POST", &path).key("K").header("Content-Length", b"0");
    empty.send().await.replays(&first);
    app.finish().await;
}

#[tokio::test]
async fn an_ambiguous_document_is_refused_and_the_clean_one_is_no_replay_of_it() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    for ambiguous in [
        r#"{"lines":[{"sku":"enamel-mug","quantity":1,"quantity":50}]}"#,
        r#"{"lines":[{"sku":"enamel-mug","quantity":50,"quantity":50}]}"#,
        r#"{"lines":[],"lines":[{"sku":"enamel-mug","quantity":50}]}"#,
        r#"{"lines":[{"sku":"enamel-mug","quantity":50,"\u0071uantity":1}]}"#,
    ] {
        sent(&shopper, ambiguous).await.problem(400, "malformed_json");
    }
    let clean =
        sent(&shopper, r#"{"lines":[{"sku":"enamel-mug","quantity":50}]}"#).await.expect(201);
    assert!(!clean.is_replay());
    assert_eq!(clean.json()["lines"][0]["quantity"], 50);
    app.finish().await;
}

#[tokio::test]
async fn more_leaves_than_are_marked_still_tell_two_requests_apart() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let lines = vec![("enamel-mug", 1); 99];
    let first = shopper.post("/v1/orders", "K", &basket(&lines)).await.expect(201);
    let mut other = basket(&lines);
    other["lines"][98]["quantity"] = json!(2);
    let document = shopper.post("/v1/orders", "K", &other).await;
    assert_eq!(document.problem(422, "idempotency_key_reused").json()["differs"], json!(["body"]));
    let many: Vec<Value> = (0..1000).map(|n| json!(n)).collect();
    let many = shopper.post("/v1/orders", "K", &json!({ "lines": many })).await;
    many.problem(422, "idempotency_key_reused");
    shopper.post("/v1/orders", "K", &basket(&lines)).await.replays(&first);
    app.finish().await;
}
