//! Refunds whose answer is lost, and money that went astray.

use serde_json::json;

use super::{HUNDRED, paid, refund, refunded, shop, status, usd};
use crate::app::{TestApp, eventually};

/// A shop that asks for an answer for two seconds, of a provider that can take four.
async fn impatient() -> TestApp {
    TestApp::with(|options| options.lease_ms(2500).provider_timeout_ms(1000)).await
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_and_the_money_goes_back_once() {
    let app = TestApp::with(|options| options.provider_timeout_ms(500)).await;
    let shopper = app.shopper().await;
    for card in ["pm_card_lost_answer", "pm_card_reset", "pm_card_key_in_use"] {
        let order = shopper.order(&format!("order-{card}")).await;
        let payment = shopper.pay(&order, &format!("pay-{card}"), card).await.expect(201);
        let payment = payment.text("id");
        refund(&shopper, &payment, &format!("refund-{card}"), &json!({})).await.expect(201);
        assert_eq!(refunded(&shopper, &payment).await, 1800, "{card}");
    }
    assert_eq!(app.number("select count(*) from provider.refund").await, 3);
    app.finish().await;
}

#[tokio::test]
async fn an_answer_that_stays_lost_is_found_out_later_under_the_same_key() {
    let app = impatient().await;
    let shopper = app.shopper().await;
    let (order, payment) = paid(&shopper, &[("enamel-mug", 1)], "pm_card_ok").await;
    app.provider(json!({ "latency_ms": 4000 })).await;
    let lost = refund(&shopper, &payment, "refund", &json!({})).await;
    let lost = lost.problem(409, "outcome_unknown");
    let path = lost.text("resource");
    assert_eq!(shopper.get(&path).await.expect(200).text("status"), "unknown");
    refund(&shopper, &payment, "second", &usd(1)).await.problem(409, "refund_in_progress");

    app.provider(json!({ "latency_ms": 0 })).await;
    eventually("recovery settles it", async || app.recover().await.1 == 1).await;
    assert_eq!(shopper.get(&path).await.expect(200).text("status"), "succeeded");
    let told = refund(&shopper, &payment, "refund", &json!({})).await.expect(201);
    assert!(told.is_replay());
    assert_eq!(format!("/v1/refunds/{}", told.text("id")), path);
    assert_eq!(app.number("select count(*) from provider.refund").await, 1);
    assert_eq!(status(&shopper, &order).await, "refunded");
    app.finish().await;
}

#[tokio::test]
async fn a_provider_that_takes_nothing_frees_key_and_room() {
    let app = shop().await;
    let shopper = app.shopper().await;
    app.traffic.expect_failures();
    let (_, payment) = paid(&shopper, HUNDRED, "pm_card_ok").await;
    app.provider(json!({ "down": true })).await;
    refund(&shopper, &payment, "refund", &json!({})).await.problem(503, "provider_unavailable");
    assert_eq!(app.number("select count(*) from refund").await, 0);
    app.provider(json!({ "down": false })).await;
    let made = refund(&shopper, &payment, "refund", &json!({})).await.expect(201);
    assert!(!made.is_replay());
    assert_eq!(refunded(&shopper, &payment).await, 10_000);
    app.finish().await;
}

#[tokio::test]
async fn money_that_the_order_cannot_take_goes_back_by_itself_once() {
    let app = impatient().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    app.provider(json!({ "latency_ms": 4000 })).await;
    let lost = shopper.pay(&order, "pay", "pm_card_ok").await.problem(409, "outcome_unknown");
    let payment = lost.text("payment_id");
    // As if the payment had been given up: the order forgets it, and is cancelled.
    app.execute(r#"update "order" set live_payment_id = null"#).await;
    shopper.post_empty(&format!("/v1/orders/{order}/cancel"), "cancel").await.expect(200);

    app.provider(json!({ "latency_ms": 0 })).await;
    eventually("the money is back", async || {
        app.recover().await;
        refunded(&shopper, &payment).await == 1800
    })
    .await;
    assert_eq!(status(&shopper, &order).await, "cancelled");
    assert_eq!(app.captures(&order).await, 1);
    assert_eq!(app.number("select count(*) from refund where status = 'succeeded'").await, 1);
    assert_eq!(app.number("select count(*) from provider.refund").await, 1);
    let told = shopper.pay(&order, "pay", "pm_card_ok").await;
    assert!(told.problem(409, "invalid_transition").is_replay());
    refund(&shopper, &payment, "again", &json!({})).await.problem(422, "refund_too_large");
    app.finish().await;
}
