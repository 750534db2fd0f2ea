//! Stock moves by differences with a reason: never below zero, never twice, always accounted for.

use serde_json::{Value, json};

use crate::app::{Caller, Response, TestApp, basket, together};

const MUG: &str = "/v1/products/enamel-mug/stock-movements";

async fn moved(caller: &Caller, key: &str, delta: i64) -> Response {
    caller.post(MUG, key, &json!({ "delta": delta, "reason": "Counted." })).await
}

/// What there was at first and all that moved since.
async fn accounted_for(app: &TestApp, sku: &str) -> i64 {
    app.number(format!(
        "select initial_stock + coalesce((select sum(delta) from stock_change
                                          where product_id = product.id), 0)
         from product where sku = '{sku}'"
    ))
    .await
}

#[tokio::test]
async fn a_movement_says_what_is_in_stock_after_it_and_is_made_once() {
    let app = TestApp::start().await;
    let merchant = app.merchant().await;
    app.set_stock("enamel-mug", 100).await;
    let body = json!({ "delta": -3, "reason": "Broken on the way." });
    let made = merchant.post(MUG, "k", &body).await.expect(201);
    let movement = made.json();
    assert_eq!(movement["sku"], "enamel-mug");
    assert_eq!(movement["delta"], -3);
    assert_eq!(movement["reason"], "Broken on the way.");
    assert_eq!(movement["stock_after"], 97);
    assert!(made.text("id").starts_with("stm_") && !made.text("created_at").is_empty());

    merchant.post(MUG, "k", &body).await.replays(&made);
    let other = json!({ "delta": -4, "reason": "Broken on the way." });
    let reused = merchant.post(MUG, "k", &other).await.problem(422, "idempotency_key_reused");
    assert_eq!(reused.json()["pointers"], json!(["/delta"]));
    assert_eq!(app.stock("enamel-mug").await, 97);
    app.finish().await;
}

#[tokio::test]
async fn twenty_copies_of_a_movement_move_once() {
    let app = TestApp::start().await;
    let merchant = app.merchant().await;
    app.set_stock("enamel-mug", 100).await;
    let copies = (0..20).map(|_| {
        let merchant = merchant.clone();
        async move { moved(&merchant, "same", 7).await.expect(201) }
    });
    let answers = together(copies).await;
    assert!(answers.iter().all(|answer| answer.body == answers[0].body));
    assert_eq!(app.stock("enamel-mug").await, 107);
    app.finish().await;
}

#[tokio::test]
async fn stock_never_goes_below_zero() {
    let app = TestApp::start().await;
    let merchant = app.merchant().await;
    app.set_stock("enamel-mug", 100).await;
    let asked = (0..20).map(|number| {
        let merchant = merchant.clone();
        async move { moved(&merchant, &format!("m{number}"), -30).await }
    });
    let answers = together(asked).await;
    let (made, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == 201);
    assert_eq!(made.len(), 3);
    for refused in refused {
        assert_eq!(refused.problem(409, "out_of_stock").json()["available"], 10);
    }
    assert_eq!(app.stock("enamel-mug").await, 10);

    let refused = moved(&merchant, "late", -11).await.problem(409, "out_of_stock");
    moved(&merchant, "delivery", 1).await.expect(201);
    // A refusal is final under its key: what comes later does not change it.
    moved(&merchant, "late", -11).await.replays(&refused);
    moved(&merchant, "new", -11).await.expect(201);
    assert_eq!(app.stock("enamel-mug").await, 0);
    app.finish().await;
}

#[tokio::test]
async fn orders_and_corrections_side_by_side_account_for_every_piece() {
    let app = TestApp::start().await;
    let (shopper, merchant) = (app.shopper().await, app.merchant().await);
    app.set_stock("enamel-mug", 40).await;
    let mixed = (0..40).map(|number| {
        let (shopper, merchant) = (shopper.clone(), merchant.clone());
        async move {
            let key = format!("k{number}");
            match number % 4 {
                0 => moved(&merchant, &key, -3).await,
                1 => moved(&merchant, &key, 2).await,
                _ => shopper.post("/v1/orders", &key, &basket(&[("enamel-mug", 2)])).await,
            }
        }
    });
    for answer in together(mixed).await {
        match answer.status {
            201 => {}
            _ => drop(answer.problem(409, "out_of_stock")),
        }
    }
    let stock = app.stock("enamel-mug").await;
    assert!(stock >= 0);
    assert_eq!(accounted_for(&app, "enamel-mug").await, stock);
    app.finish().await;
}

#[tokio::test]
async fn only_the_merchant_moves_stock() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    moved(&shopper, "k", 5).await.problem(403, "forbidden");
    let anonymous = app.anonymous();
    moved(&anonymous, "k", 5).await.problem(401, "unauthenticated");
    assert_eq!(app.number("select count(*) from stock_movement").await, 0);
    assert_eq!(app.number("select count(*) from idempotency_record").await, 0);
    app.finish().await;
}

#[tokio::test]
async fn a_product_that_is_not_there_is_refused_for_good() {
    let app = TestApp::start().await;
    let merchant = app.merchant().await;
    let body = json!({ "delta": 5, "reason": "Counted." });
    let path = "/v1/products/no-such-thing/stock-movements";
    let refused = merchant.post(path, "k", &body).await.problem(404, "not_found");
    merchant.post(path, "k", &body).await.replays(&refused);
    // What cannot be a SKU at all is not an answer of the operation.
    let malformed = "/v1/products/no%20such%20thing/stock-movements";
    let refused = merchant.post(malformed, "m", &body).await.problem(404, "not_found");
    assert!(!refused.is_replay());
    assert!(!merchant.post(malformed, "m", &body).await.is_replay());
    app.finish().await;
}

#[tokio::test]
async fn a_movement_of_nothing_or_without_a_reason_is_refused() {
    let app = TestApp::start().await;
    let merchant = app.merchant().await;
    let with = |delta: Value, reason: &str| json!({ "delta": delta, "reason": reason });
    for (body, pointer) in [
        (with(json!(0), "Counted."), "/delta"),
        (with(json!(1_000_001), "Counted."), "/delta"),
        (with(json!(-1_000_001), "Counted."), "/delta"),
        (with(json!(1.5), "Counted."), "/delta"),
        (with(json!("5"), "Counted."), "/delta"),
        (with(json!(5), ""), "/reason"),
        (with(json!(5), &"é".repeat(201)), "/reason"),
        (json!({ "delta": 5 }), ""),
        (json!({ "delta": 5, "reason": "Counted.", "stock": 5 }), ""),
    ] {
        let refused = merchant.post(MUG, "k", &body).await.problem(422, "validation_failed");
        let found = refused.json()["errors"][0]["pointer"].as_str().unwrap().to_owned();
        assert!(found.starts_with(pointer), "{body} {refused:?}");
    }
    let longest = with(json!(1_000_000), &"é".repeat(200));
    merchant.post(MUG, "k", &longest).await.expect(201);
    app.finish().await;
}
