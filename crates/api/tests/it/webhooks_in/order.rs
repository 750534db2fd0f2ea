//! Events in every order, against the answer, and too late.

use std::sync::Arc;

use serde_json::json;

use super::{Sender, event};
use crate::app::{TestApp, eventually, together};

/// All orders of these things.
fn permutations<T: Clone>(things: &[T]) -> Vec<Vec<T>> {
    if things.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for at in 0..things.len() {
        let mut rest = things.to_vec();
        let first = rest.remove(at);
        for mut tail in permutations(&rest) {
            tail.insert(0, first.clone());
            all.push(tail);
        }
    }
    all
}

#[tokio::test]
async fn every_order_of_events_against_the_answer_ends_the_same() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    // A charge is pending, then succeeds; a decline and a cancellation contradict it late.
    let statuses = ["pending", "succeeded", "declined", "cancelled"];
    for (round, order_of_events) in permutations(&statuses).into_iter().enumerate() {
        let order = shopper.order(&format!("order-{round}")).await;
        let paid = shopper.pay(&order, &format!("pay-{round}"), "pm_card_ok").await.expect(201);
        let charge = sender.charge(&order).await;
        for status in order_of_events {
            let event = event(status, &charge);
            let id = format!("{round}-{status}");
            let (once, twice) = tokio::join!(sender.send(&id, &event), sender.send(&id, &event));
            assert_eq!((once.status, twice.status), (200, 200));
        }
        assert_eq!(sender.order_status(&order).await, "paid");
        assert_eq!(sender.app.captures(&order).await, 1);
        let replayed = shopper.pay(&order, &format!("pay-{round}"), "pm_card_ok").await;
        replayed.replays(&paid);
    }
    assert_eq!(sender.app.number("select count(*) from mail").await, 24);
    assert_eq!(sender.app.number("select count(*) from provider_event").await, 24 * 4);
    sender.finish().await;
}

#[tokio::test]
async fn every_order_of_charge_and_refunds_against_the_answer_ends_the_same() {
    let app =
        TestApp::with(|options| options.provider_timeout_ms(400).lease_ms(2500).connections(30));
    let sender = Arc::new(Sender::on(app.await));
    sender.app.traffic.expect_failures();
    let shopper = sender.app.new_account().await;
    sender.app.provider(json!({ "latency_ms": 3500 })).await;
    let orders = together((0..24).map(|round| {
        let shopper = shopper.clone();
        async move {
            let order = shopper.order(&format!("order-{round}")).await;
            shopper.pay(&order, &format!("pay-{round}"), "pm_card_ok").await;
            order
        }
    }))
    .await;
    sender.app.provider(json!({ "latency_ms": 0 })).await;
    for (round, (order, way)) in orders.iter().zip(permutations(&[0, 1, 2, 3])).enumerate() {
        eventually("it is charged", async || sender.app.captures(order).await == 1).await;
        let charge = sender.charge(order).await;
        let one = sender.refund_at_the_provider(&charge, &format!("r{round}-1"), 1).await;
        let other = sender.refund_at_the_provider(&charge, &format!("r{round}-2"), 2).await;
        let events = [event("pending", &charge), event("succeeded", &charge), one, other];
        let told = way.into_iter().flat_map(|n| [(n, events[n].clone()), (n, events[n].clone())]);
        let told = told.map(|(n, event)| {
            let sender = Arc::clone(&sender);
            async move { sender.insist(&format!("{round}-{n}"), &event).await }
        });
        let key = format!("pay-{round}");
        let repeat = shopper.pay(order, &key, "pm_card_ok");
        let (_, repeated) = tokio::join!(together(told), repeat);
        assert!([201, 409].contains(&repeated.status), "{repeated:?}");
        assert_eq!(sender.order_status(order).await, "partially_refunded");
        shopper.pay(order, &key, "pm_card_ok").await.expect(201);
    }
    let anomalies = "select count(*) from provider_event where outcome like 'anomaly%'";
    assert_eq!(sender.app.number(anomalies).await, 0);
    assert_eq!(sender.app.number("select count(*) from refund").await, 48);
    assert_eq!(sender.app.number("select count(*) from mail where kind = 'receipt'").await, 24);
    let Ok(sender) = Arc::try_unwrap(sender) else { panic!("somebody still sends") };
    sender.finish().await;
}

#[tokio::test]
async fn event_and_answer_race_and_both_are_right() {
    let sender = Sender::on(TestApp::with(|options| options.webhooks().connections(20)).await);
    let shopper = sender.app.new_account().await;
    let payments = (0..20).map(|round| {
        let shopper = shopper.clone();
        async move {
            let order = shopper.order(&format!("order-{round}")).await;
            let paid = shopper.pay(&order, &format!("pay-{round}"), "pm_card_ok").await;
            (round, order, paid)
        }
    });
    for (round, order, paid) in together(payments).await {
        // A provider that is slow today costs a second question, and nothing else.
        assert!([201, 409].contains(&paid.status), "{paid:?}");
        let key = format!("pay-{round}");
        let again = async || shopper.pay(&order, &key, "pm_card_ok").await.status == 201;
        eventually("the key has its answer", again).await;
    }
    let events = "select count(*) from provider_event where outcome <> 'received'";
    eventually("all events came", async || sender.app.number(events).await == 40).await;
    let paid = r#"select count(*) from "order" where status = 'paid'"#;
    assert_eq!(sender.app.number(paid).await, 20);
    assert_eq!(sender.app.number("select count(*) from mail").await, 20);
    let strange = "select count(*) from provider_event where outcome like 'anomaly%'";
    assert_eq!(sender.app.number(strange).await, 0);
    sender.finish().await;
}

#[tokio::test]
async fn a_late_decline_of_an_earlier_payment_changes_nothing() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    shopper.pay(&order, "k1", "pm_card_declined").await.problem(402, "card_declined");
    let declined = sender.charge(&order).await;
    shopper.pay(&order, "k2", "pm_card_ok").await.expect(201);
    assert_eq!(sender.outcome("e1", &event("declined", &declined)).await, "ignored: known already");
    assert_eq!(sender.outcome("e2", &event("cancelled", &declined)).await, "ignored: late");
    assert_eq!(sender.order_status(&order).await, "paid");
    assert_eq!(
        sender.app.stock("enamel-mug").await,
        sender.app.number("select initial_stock - 1 from product where sku = 'enamel-mug'").await
    );
    sender.finish().await;
}

#[tokio::test]
async fn no_late_event_moves_a_paid_order_back() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    let charge = sender.charge(&order).await;
    for (number, kind) in
        ["failed", "expired", "pending", "declined", "cancelled", "succeeded"].iter().enumerate()
    {
        let told = sender.outcome(&format!("e{number}"), &event(kind, &charge)).await;
        assert!(told != "applied", "{kind}: {told}");
    }
    assert_eq!(sender.order_status(&order).await, "paid");
    assert_eq!(sender.app.stock("enamel-mug").await, 399);
    assert_eq!(sender.app.number("select count(*) from mail").await, 1);
    assert_eq!(sender.app.number("select count(*) from event").await, 1);
    sender.finish().await;
}

#[tokio::test]
async fn one_receipt_and_one_notice_whatever_events_follow() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    let payment = shopper.pay(&order, "pay", "pm_card_ok").await.expect(201).text("id");
    let charge = sender.charge(&order).await;
    let back = sender.refund_at_the_provider(&charge, "made-there", 500).await;
    for number in 0..5 {
        sender.send(&format!("paid-{number}"), &event("succeeded", &charge)).await.expect(200);
        sender.send(&format!("back-{number}"), &back).await.expect(200);
    }
    let rest = format!("/v1/payments/{payment}/refunds");
    shopper.post_empty(&rest, "rest").await.expect(201);
    shopper.post_empty(&rest, "rest").await.expect(201);
    let mails = async |kind| {
        sender.app.number(format!("select count(*) from mail where kind = '{kind}'")).await
    };
    assert_eq!((mails("receipt").await, mails("refund_notice").await), (1, 2));
    sender.finish().await;
}

/// Sent back with the goods, cancelled, cancelled again, and paid once more by a late event.
#[tokio::test]
async fn goods_come_back_once_whatever_comes_after() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    sender.app.set_stock("night-lamp", 10).await;
    let order = shopper.ordered("order", &[("night-lamp", 2)]).await;
    let order = order["id"].as_str().unwrap().to_owned();
    let payment = shopper.pay(&order, "pay", "pm_card_ok").await.expect(201).text("id");
    let charge = sender.charge(&order).await;
    let refunds = format!("/v1/payments/{payment}/refunds");
    shopper.post(&refunds, "refund", &json!({ "restock": true })).await.expect(201);
    let cancel = format!("/v1/orders/{order}/cancel");
    for key in ["c1", "c1", "c2"] {
        shopper.post_empty(&cancel, key).await.problem(409, "invalid_transition");
    }
    sender.send("late", &event("succeeded", &charge)).await.expect(200);
    assert_eq!(sender.app.stock("night-lamp").await, 10);
    assert_eq!(sender.order_status(&order).await, "refunded");
    sender.finish().await;
}
