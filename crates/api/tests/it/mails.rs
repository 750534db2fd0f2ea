//! Mails: one for each receipt, whoever sends it and however often it is tried.

pub(crate) mod sink;
mod workers;

use std::time::{Duration, Instant};

use api::courier;
use api::mail::deliver;
use sink::{Manner, Sink};

use crate::app::{Options, TestApp, together};

/// Paid orders, as the order path leaves them.
async fn pay_orders(app: &TestApp, count: usize) {
    app.set_stock("enamel-mug", 1000).await;
    let shopper = app.new_account().await;
    for batch in (0..count).collect::<Vec<_>>().chunks(20) {
        let orders = batch.iter().map(|number| {
            let (shopper, number) = (shopper.clone(), *number);
            async move {
                let order = shopper.order(&format!("o{number}")).await;
                shopper.pay(&order, &format!("p{number}"), "pm_card_ok").await.expect(201);
            }
        });
        together(orders).await;
    }
}

#[tokio::test]
async fn without_a_mail_server_mails_are_in_the_mailbox() {
    let app = TestApp::start().await;
    pay_orders(&app, 3).await;
    let counts = deliver::run_once(app.app()).await.unwrap();
    assert_eq!(counts, courier::Counts { taken: 3, delivered: 3 });
    assert_eq!(app.number("select count(*) from mail where state = 'sent'").await, 3);
    assert_eq!(deliver::run_once(app.app()).await.unwrap().taken, 0);
    app.finish().await;
}

#[tokio::test]
async fn a_dead_mail_server_delays_no_request_and_in_the_end_the_mail_is_dead() {
    let sink = Sink::open(Manner::Hangs).await;
    let app = TestApp::with(|options: Options| options.smtp(&sink.url()).jobs()).await;
    let shopper = app.new_account().await;
    let begun = Instant::now();
    let order = shopper.order("order").await;
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    app.finish().await;

    let refusing = Sink::open(Manner::Refuses).await;
    let app = TestApp::with(|options: Options| options.smtp(&refusing.url())).await;
    pay_orders(&app, 1).await;
    let mut attempts = 0;
    while app.number("select count(*) from mail where state = 'queued'").await > 0 {
        attempts += deliver::run_once(app.app()).await.unwrap().taken;
        app.execute("update mail set next_attempt_at = clock_timestamp()").await;
        assert!(attempts < 50, "it is given up some day");
    }
    assert_eq!(attempts, 11);
    assert_eq!(app.number("select count(*) from mail where state = 'dead'").await, 1);
    app.finish().await;
}

/// The first tries are undone after all their effects were written: nothing of them has left.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_undone_sent_nothing() {
    let app = TestApp::start().await;
    let (shopper, merchant) = (app.new_account().await, app.merchant().await);
    let endpoint = serde_json::json!({ "url": "http://127.0.0.1:9/", "events": ["order.paid"] });
    merchant.post("/v1/webhook-endpoints", "hook", &endpoint).await.expect(201);
    let order = shopper.order("order").await;
    let path = format!("/v1/orders/{order}/payments");
    let body = serde_json::json!({ "payment_method": "pm_card_ok" });
    let undone = b"before_settle_commit:serialization:3";
    let request = shopper.request("POST", &path).key("pay").json(&body);
    request.header("x-payonce-fault", undone).send().await.expect(201);
    for table in ["mail", "event", "delivery"] {
        assert_eq!(app.number(format!("select count(*) from {table}")).await, 1, "{table}");
    }
    let calls = app.provider_calls().await;
    assert_eq!(calls.iter().filter(|call| call["path"] == "/charges").count(), 1);
    app.finish().await;
}
