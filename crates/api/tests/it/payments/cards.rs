//! What each card and each wish to pay comes to.

use serde_json::{Value, json};

use super::status;
use crate::app::{TestApp, eventually, together};

#[tokio::test]
async fn every_card_ends_as_it_should() {
    let app = TestApp::with(|options| options.provider_timeout_ms(2500)).await;
    let shopper = app.shopper().await;
    let mut paying = Vec::new();
    for (card, answer, captures) in [
        ("ok", 201, 1),
        ("slow", 201, 1),
        ("lost_answer", 201, 1),
        ("reset", 201, 1),
        ("key_in_use", 201, 1),
        ("declined", 402, 0),
        ("insufficient_funds", 402, 0),
    ] {
        paying.push((card, answer, captures, shopper.order(card).await));
    }
    together(paying.into_iter().map(|(card, answer, captures, order)| {
        let shopper = shopper.clone();
        async move {
            let key = format!("pay-{card}");
            let first = shopper.pay(&order, &key, &format!("pm_card_{card}")).await.expect(answer);
            assert!(!first.is_replay());
            shopper.pay(&order, &key, &format!("pm_card_{card}")).await.replays(&first);
            let shown = shopper.get(&format!("/v1/orders/{order}")).await.text("status");
            assert_eq!(shown == "paid", captures == 1, "{card}");
            if answer == 201 {
                let document = first.json();
                assert_eq!(document["status"], "succeeded");
                assert_eq!(document["order_id"], *order);
                assert_eq!(document["refunded"]["amount"], 0);
                let path = format!("/v1/payments/{}", first.text("id"));
                assert_eq!(first.header("location"), Some(&*path));
                assert_eq!(shopper.get(&path).await.json(), document);
            } else {
                let payment = first.text("payment_id");
                let shown = shopper.get(&format!("/v1/payments/{payment}")).await.text("status");
                assert_eq!(shown, "declined");
            }
        }
    }))
    .await;
    assert_eq!(
        app.number("select count(*) from provider.charge where status = 'succeeded'").await,
        5
    );
    app.finish().await;
}

#[tokio::test]
async fn a_payment_is_checked_before_anything_is_sent() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let path = format!("/v1/orders/{order}/payments");
    let with = |amount: Value| json!({ "payment_method": "pm_card_ok", "amount": amount });
    for (body, pointer) in [
        (json!({}), ""),
        (json!({ "payment_method": "4242424242424242" }), "/payment_method"),
        (json!({ "payment_method": "pm_card_unheard_of" }), "/payment_method"),
        (json!({ "payment_method": 1 }), "/payment_method"),
        (with(json!({ "amount": 1799, "currency": "USD" })), "/amount"),
        (with(json!({ "amount": 1801, "currency": "USD" })), "/amount"),
        (with(json!({ "amount": 0, "currency": "USD" })), "/amount"),
        (with(json!({ "amount": -1800, "currency": "USD" })), "/amount"),
        (with(json!({ "amount": 1800, "currency": "EUR" })), "/amount"),
        (with(json!(1800)), "/amount"),
        (json!({ "payment_method": "pm_card_ok", "status": "succeeded" }), "/status"),
    ] {
        let refused =
            shopper.post(&path, "P", &body).await.problem(422, "validation_failed").json();
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{body}: {refused}");
        assert!(!refused.to_string().contains("4242"), "{refused}");
    }
    assert!(app.provider_charges(&order).await.is_empty());
    let exact = with(json!({ "amount": 1800, "currency": "USD" }));
    shopper.post(&path, "P", &exact).await.expect(201);
    app.finish().await;
}

#[tokio::test]
async fn a_passing_refusal_leaves_its_key_free() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let slow = tokio::spawn({
        let (shopper, order) = (shopper.clone(), order.clone());
        async move { shopper.pay(&order, "slow", "pm_card_slow").await }
    });
    eventually("the charge is under way", async || !app.provider_charges(&order).await.is_empty())
        .await;
    let wait = shopper.pay(&order, "other", "pm_card_ok").await.problem(409, "payment_in_progress");
    assert!(wait.header("retry-after").is_some());
    let cancel = format!("/v1/orders/{order}/cancel");
    shopper.post_empty(&cancel, "cancel").await.problem(409, "payment_in_progress");
    slow.await.unwrap().expect(201);
    // Executed now, not replayed: the first answers were not stored.
    let late = shopper.pay(&order, "other", "pm_card_ok").await.problem(409, "order_already_paid");
    assert!(!late.is_replay());
    shopper.post_empty(&cancel, "cancel").await.problem(409, "invalid_transition");
    app.finish().await;
}

#[tokio::test]
async fn after_a_decline_another_card_needs_another_key() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let declined =
        shopper.pay(&order, "K1", "pm_card_declined").await.problem(402, "card_declined");
    let reused =
        shopper.pay(&order, "K1", "pm_card_ok").await.problem(422, "idempotency_key_reused");
    assert_eq!(reused.json()["pointers"], json!(["/payment_method"]));
    assert_eq!(reused.json()["safe_new_key"], true);
    assert_eq!(status(&app, &order).await, ("pending".to_owned(), None));
    shopper.pay(&order, "K2", "pm_card_ok").await.expect(201);
    shopper.pay(&order, "K1", "pm_card_declined").await.replays(&declined);
    assert_eq!(app.captures(&order).await, 1);
    let receipts = "select count(*) from mail where kind = 'receipt'";
    assert_eq!(app.number(receipts).await, 1);
    assert_eq!(app.number("select count(*) from event where kind = 'order.paid'").await, 1);
    app.finish().await;
}

#[tokio::test]
async fn what_is_not_there_is_not_paid() {
    let app = TestApp::start().await;
    let (shopper, other) = (app.shopper().await, app.new_account().await);
    let order = other.order("K").await;
    for id in [&*order, "ord_00000000000000000000000000000000", "ord_1", "1", "%00", "ord_X"] {
        shopper.pay(id, "K", "pm_card_ok").await.problem(404, "not_found");
    }
    // Not the merchant either: it may see the order, but it is not the one who pays.
    app.merchant().await.pay(&order, "K", "pm_card_ok").await.problem(404, "not_found");
    let paid = other.pay(&order, "P", "pm_card_ok").await.expect(201).text("id");
    for id in [&*paid, "pay_00000000000000000000000000000000", "pay_1", "%F0%9F"] {
        shopper.get(&format!("/v1/payments/{id}")).await.problem(404, "not_found");
    }
    let keys = app.number("select count(*) from idempotency_record where key = 'K'").await;
    assert_eq!(keys, 1, "only the order was stored under its key");
    app.finish().await;
}

#[tokio::test]
async fn a_provider_that_is_not_there_frees_the_key_and_the_order() {
    let app = TestApp::start().await;
    app.traffic.expect_failures();
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    app.provider(json!({ "down": true })).await;
    let copies = (0..5).map(|_| {
        let (shopper, order) = (shopper.clone(), order.clone());
        async move { shopper.pay(&order, "P", "pm_card_ok").await }
    });
    for answer in together(copies).await {
        let answer = answer.problem(503, "provider_unavailable");
        assert_eq!(answer.json()["safe_new_key"], true);
    }
    assert_eq!(status(&app, &order).await, ("pending".to_owned(), None));
    shopper.pay(&order, "down", "pm_card_down").await.problem(503, "provider_unavailable");
    app.provider(json!({ "down": false })).await;
    shopper.pay(&order, "Q", "pm_card_ok").await.expect(201);
    shopper.pay(&order, "P", "pm_card_ok").await.problem(409, "order_already_paid");
    assert_eq!(app.captures(&order).await, 1);
    app.finish().await;
}
