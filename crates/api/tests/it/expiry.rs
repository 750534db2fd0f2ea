//! The end of a key's day: what was made is not made again, and what was refused may be tried anew.

use std::time::Duration;

use idempotency::postgres;
use serde_json::json;

use crate::app::{TestApp, basket, eventually, together};

const ORDERS: &str = "/v1/orders";
const ALIVE: &str = "select count(*) from idempotency_record where expires_at > clock_timestamp()";

async fn expired(app: &TestApp) {
    eventually("all keys expire", async || app.number(ALIVE).await == 0).await;
}

async fn sweep(app: &TestApp) -> u64 {
    let mut conn = app.database.connect().await;
    postgres::sweep(&mut conn, 1000).await.unwrap()
}

#[tokio::test]
async fn a_key_that_made_something_never_makes_it_again() {
    let app = TestApp::with(|options| options.retention_ms(1500)).await;
    let shopper = app.shopper().await;
    let body = basket(&[("enamel-mug", 1)]);
    let order = shopper.post(ORDERS, "O", &body).await.expect(201).text("id");
    let paid = shopper.pay(&order, "P", "pm_card_ok").await.expect(201).text("id");
    let declined = shopper.order("O2").await;
    let refused =
        shopper.pay(&declined, "D", "pm_card_declined").await.expect(402).text("payment_id");
    let account = json!({ "email": "new@payonce.test", "password": "a password of some length" });
    let made = app.anonymous().post("/v1/accounts", "A", &account).await.expect(201).text("id");
    expired(&app).await;
    let late = async || {
        let (order_path, payment) = (format!("/v1/orders/{order}"), format!("/v1/payments/{paid}"));
        let anybody = app.anonymous();
        for (answer, resource) in [
            (shopper.post(ORDERS, "O", &body).await, order_path.clone()),
            (shopper.pay(&order, "P", "pm_card_ok").await, payment),
            (
                shopper.pay(&declined, "D", "pm_card_declined").await,
                format!("/v1/payments/{refused}"),
            ),
            (anybody.post("/v1/accounts", "A", &account).await, format!("/v1/accounts/{made}")),
            // Another request under the key is no better.
            (shopper.post(ORDERS, "O", &basket(&[("enamel-mug", 2)])).await, order_path.clone()),
            (shopper.post(ORDERS, "O", &json!({ "lines": [] })).await, order_path),
        ] {
            let answer = answer.problem(409, "idempotency_key_expired");
            assert_eq!(answer.json()["resource"], resource, "{answer:?}");
            assert_eq!(answer.json()["safe_new_key"], false);
            assert_eq!(answer.header("location"), Some(&*resource));
        }
    };
    late().await;
    assert!(sweep(&app).await > 0);
    late().await;
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 2);
    assert_eq!(app.number("select count(*) from provider.charge").await, 2);
    shopper.pay(&order, "another", "pm_card_ok").await.problem(409, "order_already_paid");
    app.finish().await;
}

#[tokio::test]
async fn a_late_retry_is_not_told_that_nothing_was_ordered() {
    let app = TestApp::with(|options| options.retention_ms(500)).await;
    let shopper = app.shopper().await;
    app.set_stock("night-lamp", 1).await;
    let lamp = basket(&[("night-lamp", 1)]);
    let mut mug = basket(&[("enamel-mug", 1)]);
    mug["expected_total"] = json!({ "amount": 1800, "currency": "USD" });
    let orders = [
        shopper.post(ORDERS, "lamp", &lamp).await.expect(201).text("id"),
        shopper.post(ORDERS, "mug", &mug).await.expect(201).text("id"),
    ];
    app.execute("update product set price = price + 100 where sku = 'enamel-mug'").await;
    expired(&app).await;
    sweep(&app).await;
    // By now the goods are gone and the price is another, so both would be refused.
    for (key, body, order) in [("lamp", &lamp, &orders[0]), ("mug", &mug, &orders[1])] {
        let late = shopper.post(ORDERS, key, body).await.problem(409, "idempotency_key_expired");
        assert_eq!(late.json()["resource"], format!("/v1/orders/{order}"));
    }
    app.finish().await;
}

#[tokio::test]
async fn a_refusal_is_forgotten_after_its_day() {
    let app = TestApp::with(|options| options.retention_ms(500)).await;
    let shopper = app.shopper().await;
    app.set_stock("night-lamp", 1).await;
    let first = shopper.ordered("first", &[("night-lamp", 1)]).await;
    let body = basket(&[("night-lamp", 1)]);
    shopper.post(ORDERS, "K", &body).await.problem(409, "out_of_stock");
    let cancel = format!("/v1/orders/{}/cancel", first["id"].as_str().unwrap());
    shopper.post_empty(&cancel, "C").await.expect(200);
    expired(&app).await;
    let order = shopper.post(ORDERS, "K", &body).await.expect(201);
    assert!(!order.is_replay());
    // A cancellation is protected by the order's state.
    shopper.post_empty(&cancel, "C").await.problem(409, "invalid_transition");
    assert_eq!(app.stock("night-lamp").await, 0);
    app.finish().await;
}

#[tokio::test]
async fn memory_forgets_a_key_when_the_database_does() {
    let app = TestApp::with(|options| options.retention_ms(400)).await;
    let shopper = app.shopper().await;
    let body = basket(&[("enamel-mug", 1)]);
    let first = shopper.post(ORDERS, "K", &body).await.expect(201);
    shopper.post(ORDERS, "K", &body).await.replays(&first);
    expired(&app).await;
    eventually("the reply is not given any more", async || {
        shopper.post(ORDERS, "K", &body).await.status == 409
    })
    .await;
    app.finish().await;
}

#[tokio::test]
async fn what_is_under_way_never_expires_and_is_never_swept() {
    let app = TestApp::with(|options| options.retention_ms(1)).await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let paying = tokio::spawn({
        let (shopper, order) = (shopper.clone(), order.clone());
        async move { shopper.pay(&order, "P", "pm_card_slow").await }
    });
    let processing = "select count(*) from idempotency_record where state = 'processing'";
    eventually("the payment begins", async || app.number(processing).await == 1).await;
    expired(&app).await;
    sweep(&app).await;
    assert_eq!(app.number(processing).await, 1);
    paying.await.unwrap().expect(201);
    assert_eq!(app.captures(&order).await, 1);
    app.finish().await;
}

#[tokio::test]
async fn sweeping_while_duplicates_arrive_makes_nothing_twice() {
    let app = TestApp::with(|options| options.retention_ms(60)).await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    app.set_stock("night-lamp", 1).await;
    let sweeping = tokio::spawn({
        let url = app.database.url.clone();
        async move {
            let mut conn = api::db::connect(&url).await.unwrap();
            loop {
                postgres::sweep(&mut conn, 10).await.unwrap();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    });
    let duplicates = (0..240).map(|copy| {
        let caller = if copy % 2 == 0 { shopper.clone() } else { shopper.on(&second) };
        async move {
            tokio::time::sleep(Duration::from_millis(copy * 2)).await;
            let quantity = if copy % 10 == 9 { 2 } else { 1 };
            let key = format!("K{}", copy % 4);
            let body = match copy % 4 {
                0 => basket(&[("night-lamp", quantity)]),
                _ => basket(&[("enamel-mug", quantity)]),
            };
            caller.post(ORDERS, &key, &body).await
        }
    });
    for answer in together(duplicates).await {
        match answer.status {
            201 => {}
            409 => {
                let code = answer.text("code");
                assert!(
                    ["idempotency_key_expired", "out_of_stock"].contains(&&*code),
                    "{answer:?}"
                );
            }
            _ => drop(answer.problem(422, "idempotency_key_reused")),
        }
    }
    sweeping.abort();
    let orders = app.number(r#"select count(*) from "order""#).await;
    assert!(orders <= 4, "{orders} orders under four keys");
    second.stop().await;
    app.finish().await;
}
