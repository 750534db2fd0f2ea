//! Refunds: never more than was paid, however many ask, and whoever dies in between.

use serde_json::{Value, json};

use crate::app::{Caller, Response, TestApp, eventually, together};

/// $100.00 in three lines.
const HUNDRED: &[(&str, i64)] = &[("signing-pen", 1), ("enamel-mug", 1), ("brush", 1)];

/// A shop that also sells a brush for $18.00.
async fn shop() -> TestApp {
    let app = TestApp::start().await;
    add_product(&app, "brush", 1800).await;
    app
}

/// A shop that asks for an answer for two seconds, of a provider that can take four.
async fn impatient() -> TestApp {
    TestApp::with(|options| options.lease_ms(2500).provider_timeout_ms(1000)).await
}

async fn add_product(app: &TestApp, sku: &str, price: i64) {
    app.execute(format!(
        "insert into product (sku, name, description, price, currency, initial_stock, stock)
         values ('{sku}', '{sku}', '', {price}, 'USD', 100, 100)"
    ))
    .await;
    let mut conn = app.app().db.connection().await.unwrap();
    app.app().catalogue.reload(&mut conn).await.unwrap();
    conn.done();
}

/// An order that is paid; gives its id and the payment's.
async fn paid(caller: &Caller, lines: &[(&str, i64)], card: &str) -> (String, String) {
    let order = caller.ordered("order", lines).await;
    let order = order["id"].as_str().unwrap().to_owned();
    let payment = caller.pay(&order, "pay", card).await.expect(201).text("id");
    (order, payment)
}

async fn refund(caller: &Caller, payment: &str, key: &str, body: &Value) -> Response {
    caller.post(&format!("/v1/payments/{payment}/refunds"), key, body).await
}

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

fn usd(amount: i64) -> Value {
    json!({ "amount": { "amount": amount, "currency": "USD" } })
}

async fn refunded(caller: &Caller, payment: &str) -> i64 {
    let payment = caller.get(&format!("/v1/payments/{payment}")).await.expect(200).json();
    payment["refunded"]["amount"].as_i64().unwrap()
}

async fn status(caller: &Caller, order: &str) -> String {
    caller.get(&format!("/v1/orders/{order}")).await.expect(200).text("status")
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

#[tokio::test]
async fn twenty_copies_of_a_refund_make_one() {
    let app = shop().await;
    let shopper = app.shopper().await;
    let (_, payment) = paid(&shopper, HUNDRED, "pm_card_ok").await;
    let copies = (0..20).map(|_| {
        let (shopper, payment) = (shopper.clone(), payment.clone());
        async move { refund(&shopper, &payment, "same", &usd(2500)).await.expect(201) }
    });
    let answers = together(copies).await;
    assert!(answers.iter().all(|answer| answer.body == answers[0].body));
    assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
    refund(&shopper, &payment, "same", &usd(2501)).await.problem(422, "idempotency_key_reused");
    assert_eq!(refunded(&shopper, &payment).await, 2500);
    assert_eq!(app.number("select count(*) from refund").await, 1);
    assert_eq!(app.number("select count(*) from mail where kind = 'refund_notice'").await, 1);
    assert_eq!(app.number("select count(*) from event where kind = 'refund.succeeded'").await, 1);
    app.finish().await;
}

#[tokio::test]
async fn a_stranger_sees_no_payment_and_the_merchant_refunds_any() {
    let app = shop().await;
    let (shopper, stranger) = (app.shopper().await, app.new_account().await);
    let merchant = app.merchant().await;
    let (_, payment) = paid(&shopper, HUNDRED, "pm_card_ok").await;
    refund(&stranger, &payment, "k", &usd(100)).await.problem(404, "not_found");
    refund(&shopper, "pay_none", "k", &usd(100)).await.problem(404, "not_found");
    let made = refund(&merchant, &payment, "k", &usd(100)).await.expect(201);
    let path = format!("/v1/refunds/{}", made.text("id"));
    for who in [&shopper, &merchant] {
        assert_eq!(who.get(&path).await.expect(200).json(), made.json());
    }
    stranger.get(&path).await.problem(404, "not_found");
    // The merchant's key and the shopper's are two.
    refund(&shopper, &payment, "k", &usd(100)).await.expect(201);
    assert_eq!(refunded(&shopper, &payment).await, 200);
    app.finish().await;
}

#[tokio::test]
async fn the_same_key_and_body_on_another_payment_are_another_request() {
    let app = shop().await;
    let shopper = app.shopper().await;
    let (_, first) = paid(&shopper, HUNDRED, "pm_card_ok").await;
    let other = shopper.ordered("other", HUNDRED).await;
    let other = shopper.pay(other["id"].as_str().unwrap(), "other-pay", "pm_card_ok").await;
    refund(&shopper, &first, "k", &usd(500)).await.expect(201);
    let reused = refund(&shopper, &other.expect(201).text("id"), "k", &usd(500)).await;
    reused.problem(422, "idempotency_key_reused");
    app.finish().await;
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

#[tokio::test]
async fn a_refund_and_a_cancellation_at_once_move_the_money_once() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let before = app.stock("enamel-mug").await;
    for round in 0..10 {
        let order = shopper.order(&format!("order-{round}")).await;
        let payment = shopper.pay(&order, &format!("pay-{round}"), "pm_card_ok").await;
        let payment = payment.expect(201).text("id");
        let (refunds, cancels) = (shopper.clone(), shopper.clone());
        let restock = json!({ "restock": true });
        let cancel = format!("/v1/orders/{order}/cancel");
        let (refund_key, cancel_key) = (format!("refund-{round}"), format!("cancel-{round}"));
        let (made, cancelled) = tokio::join!(
            refund(&refunds, &payment, &refund_key, &restock),
            cancels.post_empty(&cancel, &cancel_key),
        );
        made.expect(201);
        cancelled.problem(409, "invalid_transition");
        assert_eq!(status(&shopper, &order).await, "refunded");
        assert_eq!(app.stock("enamel-mug").await, before);
    }
    app.finish().await;
}

#[tokio::test]
async fn thirty_operations_on_one_order_at_once_end_in_known_answers() {
    let app = shop().await;
    let shopper = app.shopper().await;
    app.traffic.expect_failures();
    let (order, payment) = paid(&shopper, HUNDRED, "pm_card_ok").await;
    let mixed = (0..30).map(|number| {
        let (shopper, order, payment) = (shopper.clone(), order.clone(), payment.clone());
        async move {
            let key = format!("mixed-{number}");
            match number % 3 {
                0 => shopper.pay(&order, &key, "pm_card_ok").await,
                1 => refund(&shopper, &payment, &key, &usd(1700)).await,
                _ => shopper.post_empty(&format!("/v1/orders/{order}/cancel"), &key).await,
            }
        }
    });
    for answer in together(mixed).await {
        assert!(matches!(answer.status, 201 | 409 | 422 | 503), "{answer:?}");
        if answer.status == 503 {
            answer.problem(503, "busy");
        }
    }
    assert!(refunded(&shopper, &payment).await <= 10_000);
    app.finish().await;
}

#[tokio::test]
async fn an_order_has_one_receipt_however_often_it_is_asked_for() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    let path = format!("/v1/orders/{order}/receipts");
    let refused = shopper.post_empty(&path, "early").await.problem(409, "invalid_transition");
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    shopper.post_empty(&path, "early").await.replays(&refused);

    let first = shopper.post_empty(&path, "r0").await.expect(202);
    assert_eq!(first.text("order_id"), order);
    let more = (1..10).map(|number| {
        let (shopper, path) = (shopper.clone(), path.clone());
        async move { shopper.post_empty(&path, &format!("r{number}")).await.expect(202) }
    });
    for answer in together(more).await {
        assert_eq!(answer.json(), first.json());
    }
    shopper.post_empty(&path, "r0").await.replays(&first);
    app.new_account().await.post_empty(&path, "r0").await.problem(404, "not_found");
    assert_eq!(app.number("select count(*) from mail where kind = 'receipt'").await, 1);
    app.finish().await;
}

#[tokio::test]
async fn an_order_without_an_address_has_no_receipt() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    app.execute(r#"update "order" set email = null"#).await;
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    let path = format!("/v1/orders/{order}/receipts");
    shopper.post_empty(&path, "receipt").await.problem(422, "validation_failed");
    app.finish().await;
}
