//! How much goes back, and with which goods.

use serde_json::{Value, json};

use super::{HUNDRED, add_product, paid, refund, refunded, shop, status, usd};
use crate::app::{Caller, Response, TestApp, together};

/// Sends the same request until the crowd at this one order lets it through to an answer of its
/// own: a lock that was not had in time is no answer.
async fn insist(caller: &Caller, payment: &str, key: &str, body: &Value) -> Response {
    let mut answer = refund(caller, payment, key, body).await;
    for _ in 0..50 {
        let crowded = ["busy", "outcome_unknown", "request_in_progress"];
        if answer.status < 400 || !crowded.contains(&answer.text("code").as_str()) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        answer = refund(caller, payment, key, body).await;
    }
    answer
}

/// What many refunds of one amount on $100.00 come to, each under a key of its own.
async fn all_at_once(count: usize, amount: i64) -> usize {
    let app = shop().await;
    let shopper = app.shopper().await;
    app.traffic.expect_failures();
    let (order, payment) = paid(&shopper, HUNDRED, "pm_card_ok").await;
    let asked = (0..count).map(|number| {
        let (shopper, payment) = (shopper.clone(), payment.clone());
        async move { insist(&shopper, &payment, &format!("r{number}"), &usd(amount)).await }
    });
    let mut made = 0;
    for response in together(asked).await {
        match response.status {
            201 => made += 1,
            409 => drop(response.problem(409, "refund_in_progress")),
            _ => drop(response.problem(422, "refund_too_large")),
        }
    }
    let sum = i64::try_from(made).unwrap() * amount;
    assert_eq!(refunded(&shopper, &payment).await, sum);
    // What is left goes back as well, to the cent.
    let rest = refund(&shopper, &payment, "rest", &json!({})).await;
    if sum < 10_000 {
        assert_eq!(rest.expect(201).json()["amount"], usd(10_000 - sum)["amount"]);
    } else {
        rest.problem(422, "refund_too_large");
    }
    assert_eq!(status(&shopper, &order).await, "refunded");
    app.finish().await;
    made
}

#[tokio::test]
async fn of_two_refunds_of_sixty_on_a_hundred_one_is_made() {
    assert_eq!(all_at_once(2, 6000).await, 1);
}

#[tokio::test]
async fn of_ten_refunds_of_twenty_on_a_hundred_five_are_made() {
    assert_eq!(all_at_once(10, 2000).await, 5);
}

#[tokio::test]
async fn of_fifty_refunds_of_three_on_a_hundred_thirty_three_are_made() {
    assert_eq!(all_at_once(50, 300).await, 33);
}

#[tokio::test]
async fn line_by_line_the_parts_sum_to_what_was_paid() {
    let app = TestApp::start().await;
    for (sku, price) in [("stamp", 5), ("envelope", 15), ("ink", 1793)] {
        add_product(&app, sku, price).await;
    }
    let shopper = app.shopper().await;
    let lines = &[("stamp", 7), ("envelope", 3), ("ink", 10)];
    let (order, payment) = paid(&shopper, lines, "pm_card_ok").await;
    for (number, amount) in [35, 45].into_iter().enumerate() {
        refund(&shopper, &payment, &format!("line {number}").replace(' ', "-"), &usd(amount))
            .await
            .expect(201);
        assert_eq!(status(&shopper, &order).await, "partially_refunded");
    }
    let last = refund(&shopper, &payment, "last", &usd(17_930)).await.expect(201);
    assert_eq!(last.header("location"), Some(format!("/v1/refunds/{}", last.text("id")).as_str()));
    assert_eq!(status(&shopper, &order).await, "refunded");
    assert_eq!(refunded(&shopper, &payment).await, 18_010);
    refund(&shopper, &payment, "more", &usd(1)).await.problem(422, "refund_too_large");
    app.finish().await;
}

#[tokio::test]
async fn without_an_amount_what_remains_goes_back() {
    let app = shop().await;
    let shopper = app.shopper().await;
    let (_, payment) = paid(&shopper, HUNDRED, "pm_card_ok").await;
    refund(&shopper, &payment, "part", &usd(1)).await.expect(201);
    let path = format!("/v1/payments/{payment}/refunds");
    // Not even a body is needed.
    let rest = shopper.post_empty(&path, "rest").await.expect(201);
    assert_eq!(rest.json()["amount"], usd(9999)["amount"]);
    assert_eq!(rest.json()["restock"], false);
    shopper.post_empty(&path, "rest").await.replays(&rest);
    app.finish().await;
}

#[tokio::test]
async fn goods_go_back_once_with_the_refund_that_takes_the_remainder() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let before = app.stock("enamel-mug").await;
    let (order, payment) = paid(&shopper, &[("enamel-mug", 2)], "pm_card_ok").await;
    let part = json!({ "amount": { "amount": 1800, "currency": "USD" }, "restock": true });
    refund(&shopper, &payment, "part", &part).await.problem(422, "validation_failed");
    refund(&shopper, &payment, "half", &usd(1800)).await.expect(201);
    assert_eq!(app.stock("enamel-mug").await, before - 2);

    let rest = json!({ "restock": true, "reason": "Both came broken." });
    let made = refund(&shopper, &payment, "rest", &rest).await.expect(201);
    assert_eq!(made.json()["restock"], true);
    assert_eq!(app.stock("enamel-mug").await, before);
    refund(&shopper, &payment, "rest", &rest).await.replays(&made);
    refund(&shopper, &payment, "again", &rest).await.problem(422, "validation_failed");

    for key in ["cancel", "cancel-again"] {
        let cancel = shopper.post_empty(&format!("/v1/orders/{order}/cancel"), key).await;
        assert_eq!(cancel.problem(409, "invalid_transition").text("state"), "refunded");
    }
    assert_eq!(app.stock("enamel-mug").await, before);
    app.finish().await;
}

#[tokio::test]
async fn what_is_no_amount_of_the_payment_is_refused_and_frees_its_key() {
    let app = shop().await;
    let shopper = app.shopper().await;
    let (_, payment) = paid(&shopper, HUNDRED, "pm_card_ok").await;
    let invalid = [
        (json!({ "amount": { "amount": -1, "currency": "USD" } }), "/amount/amount"),
        (json!({ "amount": { "amount": 0, "currency": "USD" } }), "/amount/amount"),
        (json!({ "amount": { "amount": 0.001, "currency": "USD" } }), "/amount/amount"),
        (json!({ "amount": { "amount": 100, "currency": "EUR" } }), "/amount/currency"),
        (json!({ "amount": { "amount": 100, "currency": "usd" } }), "/amount/currency"),
        (json!({ "amount": { "amount": 100, "currency": "XXX" } }), "/amount/currency"),
        (json!({ "amount": 100 }), "/amount"),
        (json!({ "reason": "é".repeat(201) }), "/reason"),
        (json!({ "refund": "all" }), ""),
    ];
    for (body, pointer) in invalid {
        let refused = refund(&shopper, &payment, "same", &body).await;
        let refused = refused.problem(422, "validation_failed").json();
        let found = refused["errors"][0]["pointer"].as_str().unwrap();
        assert!(found.starts_with(pointer), "{refused}");
    }
    let huge = r#"{"amount":{"amount":9223372036854775807,"currency":"USD"}}"#;
    let path = format!("/v1/payments/{payment}/refunds");
    let huge = shopper.request("POST", &path).key("same").body("application/json", huge);
    huge.send().await.problem(400, "malformed_json");

    let reason = "é".repeat(200);
    let body = json!({ "amount": { "amount": 100, "currency": "USD" }, "reason": reason });
    let made = refund(&shopper, &payment, "same", &body).await.expect(201);
    assert_eq!(made.text("reason"), reason);
    app.finish().await;
}

#[tokio::test]
async fn more_than_was_paid_is_refused_for_good() {
    let app = shop().await;
    let shopper = app.shopper().await;
    let (_, payment) = paid(&shopper, HUNDRED, "pm_card_ok").await;
    let refused = refund(&shopper, &payment, "much", &usd(10_001)).await;
    let refused = refused.problem(422, "refund_too_large");
    assert_eq!(refused.json()["remaining"], usd(10_000)["amount"]);
    refund(&shopper, &payment, "much", &usd(10_001)).await.replays(&refused);
    refund(&shopper, &payment, "much", &usd(10_000)).await.problem(422, "idempotency_key_reused");
    assert_eq!(refunded(&shopper, &payment).await, 0);
    app.finish().await;
}

#[tokio::test]
async fn what_was_not_captured_is_not_refunded() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    let declined = shopper.pay(&order, "pay", "pm_card_declined").await.expect(402);
    let payment = declined.text("payment_id");
    let refused = refund(&shopper, &payment, "refund", &json!({})).await;
    assert_eq!(refused.problem(409, "invalid_transition").text("state"), "declined");
    let calls = app.provider_calls().await;
    assert!(calls.iter().all(|call| call["path"] != "/refunds"), "{calls:?}");
    app.finish().await;
}
