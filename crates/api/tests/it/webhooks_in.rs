//! Events of the provider: signed by whom we know, taken in once, whatever their order.

use std::sync::Arc;
use std::time::Duration;

use api::provider::client::{Answer, ChargeRequest, ProviderClient, RefundRequest};
use api::webhooks::signature::{self, Secret};
use domain::{Currency, Money, RefundOutcome};
use serde_json::{Value, json};

use crate::app::{Caller, Response, TestApp, eventually, together};

/// Someone who sends events as the provider would, or nearly.
struct Sender {
    app: Arc<TestApp>,
    secret: Secret,
    /// More patient than the shop's own client.
    provider: ProviderClient,
}

impl Sender {
    async fn new() -> Self {
        Self::on(TestApp::start().await)
    }

    fn on(app: TestApp) -> Self {
        let secret = app.options.webhook_secrets()[0].clone();
        let provider = app.provider_client(Duration::from_secs(20));
        Self { app: Arc::new(app), secret, provider }
    }

    fn now(&self) -> i64 {
        self.app.app().clock.now().unix_timestamp()
    }

    async fn send(&self, id: &str, event: &Value) -> Response {
        self.send_bytes(id, event.to_string().as_bytes()).await
    }

    async fn send_bytes(&self, id: &str, body: &[u8]) -> Response {
        let timestamp = self.now();
        let signature = signature::sign(&self.secret, id, timestamp, body);
        self.send_signed(id, &timestamp.to_string(), &signature, body).await
    }

    async fn send_signed(
        &self,
        id: &str,
        timestamp: &str,
        signature: &str,
        body: &[u8],
    ) -> Response {
        let nobody = self.app.anonymous();
        nobody
            .request("POST", "/v1/webhooks/provider")
            .header("webhook-id", id.as_bytes())
            .header("webhook-timestamp", timestamp.as_bytes())
            .header("webhook-signature", signature.as_bytes())
            .body("application/json", body)
            .send()
            .await
    }

    async fn outcome(&self, id: &str, event: &Value) -> String {
        self.send(id, event).await.expect(200).text("outcome")
    }

    /// The one charge of an order as the provider has it in its books.
    async fn charge(&self, order: &str) -> Value {
        let charges = self.app.provider_charges(order).await;
        let key = &charges.last().expect("a charge").provider_key;
        let found = self.provider.find_charge(key).await.unwrap().expect("a charge");
        json!({
            "id": found.id, "provider_key": found.provider_key, "reference": found.reference,
            "amount": found.amount, "status": charges.last().unwrap().status,
            "refunded": found.refunded, "created_at": "2026-01-02T03:04:05Z",
        })
    }

    /// Gives part of a charge back at the provider, without us, and returns what it would tell.
    async fn refund_at_the_provider(&self, charge: &Value, key: &str, amount: i64) -> Value {
        let text = |member: &str| charge[member].as_str().unwrap().to_owned();
        let request = RefundRequest {
            provider_key: key.to_owned(),
            charge: text("provider_key"),
            amount: Money::new(amount, Currency::Usd),
            reference: text("reference"),
        };
        let answer = self.provider.refund(&request).await;
        let Answer::Settled(RefundOutcome::Succeeded { provider_refund_id }) = answer else {
            panic!("no refund: {answer:?}")
        };
        let refund = json!({
            "id": provider_refund_id, "provider_key": key, "charge_id": charge["id"],
            "reference": charge["reference"], "amount": request.amount, "status": "succeeded",
            "created_at": "2026-01-02T03:04:05Z",
        });
        json!({ "type": "refund.succeeded", "data": refund })
    }

    /// As the provider does: again and again until it is taken in.
    async fn insist(&self, id: &str, event: &Value) {
        for _ in 0..500 {
            if self.send(id, event).await.status == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{id} was never taken in");
    }

    async fn order_status(&self, order: &str) -> String {
        let merchant = self.app.merchant().await;
        merchant.get(&format!("/v1/orders/{order}")).await.expect(200).text("status")
    }

    async fn finish(self) {
        let Ok(app) = Arc::try_unwrap(self.app) else { panic!("somebody still has the shop") };
        app.finish().await;
    }
}

fn event(status: &str, charge: &Value) -> Value {
    let mut charge = charge.clone();
    charge["status"] = json!(status);
    json!({ "id": "evt", "type": format!("charge.{status}"), "data": charge })
}

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
async fn strangers_are_turned_away_before_anything_is_parsed() {
    let sender = Sender::new().await;
    let (body, now) = (&b"not even JSON"[..], sender.now());
    let good = |at: i64| signature::sign(&sender.secret, "e1", at, body);
    let other = signature::sign(&Secret::new(vec![9; 32]), "e1", now, body);
    for (timestamp, signature) in [
        (now.to_string(), other),
        (now.to_string(), "v1,".to_owned()),
        (now.to_string(), String::new()),
        ((now - 360).to_string(), good(now - 360)),
        ((now - 86_400).to_string(), good(now - 86_400)),
        ((now + 600).to_string(), good(now + 600)),
        ("abc".to_owned(), good(now)),
        ("-1".to_owned(), good(-1)),
        (i64::MAX.to_string(), good(i64::MAX)),
        (i64::MIN.to_string(), good(i64::MIN)),
    ] {
        let refused = sender.send_signed("e1", &timestamp, &signature, body).await;
        refused.problem(401, "unauthenticated");
    }
    let nobody = sender.app.anonymous();
    let bare = nobody.request("POST", "/v1/webhooks/provider").body("application/json", body);
    bare.send().await.problem(401, "unauthenticated");
    let doubled = nobody
        .request("POST", "/v1/webhooks/provider")
        .header("webhook-id", b"e1")
        .header("webhook-id", b"e1")
        .header("webhook-timestamp", now.to_string().as_bytes())
        .header("webhook-signature", good(now).as_bytes())
        .body("application/json", body);
    doubled.send().await.problem(401, "unauthenticated");
    sender.send_bytes("e1", body).await.problem(400, "malformed_json");
    sender.send_bytes("e1", &vec![b' '; 65_537]).await.problem(413, "body_too_large");
    assert_eq!(sender.app.number("select count(*) from provider_event").await, 0);
    sender.finish().await;
}

#[tokio::test]
async fn the_bytes_count_and_not_their_meaning() {
    let sender = Sender::new().await;
    let bodies: [&[u8]; 4] = [
        b"{ \"type\" :\t\"x.y\" ,\r\n \"data\":{ } }\n\n",
        b"{\"data\":{\"b\":1.0,\"a\":1e2},\"type\":\"x.y\"}",
        b"{\"type\":\"x.y\",\"data\":{\"url\":\"https:\\/\\/a\\/b\"}}",
        "{\"type\":\"x.y\",\"data\":{\"name\":\"Zoë\"},\"more\":[null]}".as_bytes(),
    ];
    for (number, body) in bodies.into_iter().enumerate() {
        let taken = sender.send_bytes(&format!("e{number}"), body).await.expect(200);
        assert_eq!(taken.text("outcome"), "ignored: unknown type");
        let mut changed = body.to_vec();
        *changed.last_mut().unwrap() ^= 1;
        let signature = signature::sign(&sender.secret, "e", sender.now(), body);
        let now = sender.now().to_string();
        sender.send_signed("e", &now, &signature, &changed).await.problem(401, "unauthenticated");
    }
    sender.finish().await;
}

#[tokio::test]
async fn twenty_copies_of_an_event_at_once_are_one_effect() {
    let (sender, shopper, order) = lost_answer().await;
    let succeeded = event("succeeded", &sender.charge(&order).await);
    let sender = Arc::new(sender);
    let copies = (0..20).map(|_| {
        let (sender, succeeded) = (Arc::clone(&sender), succeeded.clone());
        async move { sender.outcome("e1", &succeeded).await }
    });
    let outcomes = together(copies).await;
    let applied = outcomes.iter().filter(|outcome| *outcome == "applied").count();
    let repeated = outcomes.iter().filter(|outcome| *outcome == "repeated").count();
    assert_eq!((applied, repeated), (1, 19), "{outcomes:?}");
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    assert_eq!(sender.app.number("select count(*) from mail").await, 1);
    let Ok(sender) = Arc::try_unwrap(sender) else { panic!("somebody still sends") };
    sender.finish().await;
}

#[tokio::test]
async fn an_event_that_no_column_can_hold_is_refused_and_not_tried_for_ever() {
    let sender = Sender::new().await;
    for body in [&br#"{"type":"x.y","data":{"name":"\u0000"}}"#[..], br#"{"type":"\ud800"}"#] {
        sender.send_bytes("e1", body).await.problem(400, "malformed_json");
    }
    assert_eq!(sender.app.number("select count(*) from provider_event").await, 0);
    sender.finish().await;
}

#[tokio::test]
async fn what_is_not_known_is_ignored_and_remembered() {
    let sender = Sender::new().await;
    for (id, event) in [
        ("e1", json!({ "type": "payout.paid", "data": { "id": "po_1" } })),
        ("e2", json!({ "type": "charge.disputed", "data": {} })),
        ("e3", json!({ "type": "", "data": null })),
        ("e4", json!({})),
    ] {
        assert!(sender.outcome(id, &event).await.starts_with("ignored"), "{event}");
        assert_eq!(sender.outcome(id, &event).await, "repeated");
    }
    let unreadable = json!({ "type": "charge.succeeded", "data": {} });
    assert!(sender.outcome("e5", &unreadable).await.starts_with("anomaly"));
    assert_eq!(sender.app.number("select count(*) from provider_event").await, 5);
    sender.finish().await;
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

/// An order whose charge was made while its answer, and every question after it, was lost.
async fn lost_answer() -> (Sender, Caller, String) {
    let app = TestApp::with(|options| options.provider_timeout_ms(300).lease_ms(2000)).await;
    let sender = Sender::on(app);
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    sender.app.provider(json!({ "latency_ms": 2500 })).await;
    shopper.pay(&order, "pay", "pm_card_ok").await.problem(409, "outcome_unknown");
    sender.app.provider(json!({ "latency_ms": 0 })).await;
    eventually("the charge is made", async || sender.app.captures(&order).await == 1).await;
    (sender, shopper, order)
}

#[tokio::test]
async fn an_event_settles_what_a_lost_answer_left_open_and_stores_its_reply() {
    let (sender, shopper, order) = lost_answer().await;
    let succeeded = event("succeeded", &sender.charge(&order).await);
    assert_eq!(sender.outcome("e1", &succeeded).await, "applied");
    assert_eq!(sender.order_status(&order).await, "paid");
    let told = shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    assert!(told.is_replay(), "{told:?}");
    assert_eq!(sender.app.captures(&order).await, 1);
    assert_eq!(sender.outcome("e2", &succeeded).await, "ignored: known already");
    sender.finish().await;
}

#[tokio::test]
async fn an_event_whose_work_failed_is_worked_on_when_it_comes_again() {
    let (sender, shopper, order) = lost_answer().await;
    sender.app.traffic.expect_failures();
    let succeeded = event("succeeded", &sender.charge(&order).await);
    let fails = "create function fails() returns trigger language plpgsql as
                 $$ begin raise exception 'an injected fault'; end $$";
    sender.app.execute(fails).await;
    for fault in [
        "create trigger fault after insert on provider_event for each row execute function fails()",
        "create trigger fault before insert on mail for each row execute function fails()",
        "create constraint trigger fault after insert on provider_event
         deferrable initially deferred for each row execute function fails()",
    ] {
        sender.app.execute(fault).await;
        assert_eq!(sender.send("e1", &succeeded).await.status, 500, "{fault}");
        assert_eq!(sender.app.number("select count(*) from provider_event").await, 0);
        assert_eq!(sender.order_status(&order).await, "pending");
        let table = if fault.contains("on mail") { "mail" } else { "provider_event" };
        sender.app.execute(format!("drop trigger fault on {table}")).await;
    }
    assert_eq!(sender.outcome("e1", &succeeded).await, "applied");
    assert_eq!(sender.outcome("e1", &succeeded).await, "repeated");
    assert_eq!(sender.order_status(&order).await, "paid");
    assert!(shopper.pay(&order, "pay", "pm_card_ok").await.expect(201).is_replay());
    assert_eq!(sender.app.number("select count(*) from mail").await, 1);
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
async fn a_refund_made_at_the_provider_is_written_down_once() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    let charge = sender.charge(&order).await;
    let refund = sender.refund_at_the_provider(&charge, "r1", 100).await;
    assert_eq!(sender.outcome("e1", &refund).await, "applied");
    assert_eq!(sender.outcome("e2", &refund).await, "ignored: known already");
    let mut renamed = refund.clone();
    renamed["data"]["provider_key"] = json!("another");
    assert_eq!(sender.outcome("e3", &renamed).await, "ignored: known already");
    let mut too_much = refund.clone();
    too_much["data"]["id"] = json!("re_2");
    too_much["data"]["provider_key"] = json!("r2");
    too_much["data"]["amount"]["amount"] = charge["amount"]["amount"].clone();
    assert_eq!(sender.outcome("e4", &too_much).await, "anomaly: more than was captured");
    assert_eq!(sender.order_status(&order).await, "partially_refunded");
    assert_eq!(sender.app.number("select count(*) from refund").await, 1);
    sender.finish().await;
}

#[tokio::test]
async fn a_charge_under_a_key_that_was_given_back_is_shown_and_goes_back_once() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    let request = ChargeRequest {
        provider_key: "given-back".to_owned(),
        reference: order.clone(),
        amount: Money::new(500, Currency::Usd),
        payment_method: "pm_card_ok".to_owned(),
    };
    sender.provider.charge(&request).await;
    let succeeded = event("succeeded", &sender.charge(&order).await);
    assert_eq!(sender.outcome("e1", &succeeded).await, "applied");
    assert_eq!(sender.outcome("e2", &succeeded).await, "ignored: known already");
    sender.app.recover().await;
    let back = "select sum(amount) from refund where status = 'succeeded'";
    assert_eq!(sender.app.number(back).await, 500);
    assert_eq!(sender.order_status(&order).await, "pending");
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
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
async fn an_event_that_does_not_fit_our_payment_is_an_anomaly_and_no_payment() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    shopper.pay(&order, "pay", "pm_card_declined").await.problem(402, "card_declined");
    let charge = sender.charge(&order).await;
    let changed = |member: &str, value: Value| {
        let mut charge = charge.clone();
        charge[member] = value;
        event("succeeded", &charge)
    };
    let one_cent = json!({ "amount": 1, "currency": "USD" });
    let other_currency = json!({ "amount": charge["amount"]["amount"], "currency": "EUR" });
    let strange = [
        ("amount", one_cent, "anomaly: amount or currency differs"),
        ("amount", other_currency, "anomaly: amount or currency differs"),
        ("amount", json!(null), "anomaly: amount or currency differs"),
        ("amount", json!({ "amount": 1, "currency": "XXX" }), "anomaly: the charge cannot be read"),
        ("reference", json!("ord_other"), "anomaly: order differs"),
        ("id", json!("ch_other"), "anomaly: charge differs"),
        ("id", charge["id"].clone(), "anomaly: charged after the end"),
    ];
    for (number, (member, value, expected)) in strange.into_iter().enumerate() {
        let outcome = sender.outcome(&format!("e{number}"), &changed(member, value)).await;
        assert_eq!(outcome, expected, "{member}");
    }
    let mut stranger = changed("provider_key", json!("pk_other"));
    stranger["data"]["reference"] = json!("ord_other");
    assert_eq!(sender.outcome("stranger", &stranger).await, "anomaly: no such payment");
    assert_eq!(sender.order_status(&order).await, "pending");
    sender.finish().await;
}
