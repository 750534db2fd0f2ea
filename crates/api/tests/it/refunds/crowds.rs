//! The same refund again and again, and refunds beside other wishes.

use serde_json::json;

use super::{HUNDRED, paid, refund, refunded, shop, status, usd};
use crate::app::{TestApp, eventually, together};

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

/// Whoever holds a lock for longer than anybody waits for one delays the outcome, and no more.
#[tokio::test]
async fn a_refund_that_meets_a_lock_while_it_settles_waits_it_out() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let (order, payment) = paid(&shopper, &[("enamel-mug", 1)], "pm_card_ok").await;
    app.provider(json!({ "latency_ms": 500 })).await;
    let asking = {
        let (shopper, payment) = (shopper.clone(), payment.clone());
        tokio::spawn(async move { refund(&shopper, &payment, "refund", &json!({})).await })
    };
    eventually("the refund is on its way", async || {
        app.number("select count(*) from refund where status = 'processing'").await == 1
    })
    .await;
    let mut stranger = app.database.connect().await;
    for statement in ["begin", r#"select 1 from "order" for update"#] {
        sqlx::query(statement).execute(&mut stranger).await.unwrap();
    }
    let given_up = "select count(*) from pg_stat_activity
                    where datname = current_database() and wait_event_type = 'Lock'";
    eventually("the settling waits", async || app.number(given_up).await == 1).await;
    // Longer than `lock_timeout`, so that the first try has failed.
    tokio::time::sleep(std::time::Duration::from_millis(5500)).await;
    sqlx::query("rollback").execute(&mut stranger).await.unwrap();
    let answer = asking.await.unwrap().expect(201);
    assert_eq!(answer.text("status"), "succeeded");
    assert_eq!(status(&shopper, &order).await, "refunded");
    let sent = app.provider_calls().await;
    let sent = sent.iter().filter(|call| call["method"] == "POST" && call["path"] == "/refunds");
    assert_eq!(sent.count(), 1);
    app.finish().await;
}
