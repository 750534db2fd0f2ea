//! Mails: one for each receipt, whoever sends it and however often it is tried.

pub(crate) mod sink;

use std::time::{Duration, Instant};

use api::courier;
use api::mail::deliver;
use sink::{Manner, Sink};

use crate::app::{Options, TestApp, eventually, together};

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
async fn five_hundred_orders_give_five_hundred_mails_though_a_worker_dies() {
    let sink = Sink::open(Manner::Takes).await;
    let app = TestApp::with(|options: Options| options.smtp(&sink.url()).connections(8)).await;
    pay_orders(&app, 500).await;
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(app.second_server().await);
    }
    let workers: Vec<_> =
        replicas.iter().map(|replica| courier::start::<deliver::Mails>(&replica.app)).collect();
    eventually("some mails are out", async || sink.mails().len() > 100).await;
    // As a kill would: whatever it carries is cut off where it is.
    workers[0].abort();
    let sent = "select count(*) from mail where state = 'sent'";
    eventually("the others send the rest", async || app.number(sent).await >= 492).await;
    app.execute(
        "update mail set next_attempt_at = clock_timestamp(), lease_until = clock_timestamp()
         where state = 'queued'",
    )
    .await;
    eventually("what the dead one carried is sent too", async || app.number(sent).await == 500)
        .await;
    for worker in &workers {
        worker.abort();
    }
    let mails = sink.mails();
    let mut ids: Vec<_> = mails.iter().map(|mail| mail.header("Message-ID")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 500);
    assert!(mails.len() <= 508, "{} mails: at most those under way are repeated", mails.len());
    for replica in replicas {
        replica.stop().await;
    }
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
