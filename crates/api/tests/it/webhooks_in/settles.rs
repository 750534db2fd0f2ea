//! What events settle that nobody else has.

use std::sync::Arc;

use api::provider::client::{ChargeRequest, RefundRequest};
use api::provider::provider_key;
use domain::{Currency, Money};
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _};
use time::format_description::well_known::Rfc3339;
use tracing::Level;

use super::{Sender, event};
use crate::app::{Caller, Response, TestApp, eventually, together};
use crate::log;

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
async fn a_refund_made_at_the_provider_is_written_down_once() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    let charge = sender.charge(&order).await;
    let refund = sender.refund_at_the_provider(&charge, "r1", 100).await;
    let mut strange = refund.clone();
    strange["data"]["reference"] = json!("ord_11111111111111111111111111111111");
    assert_eq!(sender.outcome("e0", &strange).await, "anomaly: order differs");
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
async fn a_refund_made_at_the_provider_while_one_of_ours_is_open_is_not_lost() {
    let app = TestApp::with(|options| options.provider_timeout_ms(300).lease_ms(2000)).await;
    let sender = Sender::on(app);
    sender.app.traffic.expect_failures();
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    let payment = shopper.pay(&order, "pay", "pm_card_ok").await.expect(201).text("id");
    let charge = sender.charge(&order).await;
    let theirs = sender.refund_at_the_provider(&charge, "r1", 100).await;

    // Ours asks for everything, holds all of it back, dies before it is sent, and will be refused.
    let refunds = format!("/v1/payments/{payment}/refunds");
    let everything = json!({ "amount": charge["amount"] });
    let ours = shopper.request("POST", &refunds).key("all").json(&everything);
    ours.header("x-payonce-fault", b"refund_before_send:panic").send().await.expect(500);
    sender.send("e1", &theirs).await.problem(503, "busy");
    assert_eq!(sender.app.number("select count(*) from provider_event").await, 0);

    eventually("ours has failed", async || sender.app.recover().await.1 == 1).await;
    assert_eq!(sender.outcome("e1", &theirs).await, "applied");
    assert_eq!(sender.order_status(&order).await, "partially_refunded");
    let back = "select sum(amount) from refund where status = 'succeeded'";
    assert_eq!(sender.app.number(back).await, 100);
    sender.finish().await;
}

#[tokio::test]
async fn what_an_event_settled_before_its_own_request_is_still_the_first_answer() {
    let sender = Sender::on(TestApp::with(|options| options.webhooks()).await);
    let shopper = sender.app.new_account().await;
    for round in 0..4 {
        let order = shopper.order(&format!("order-{round}")).await;
        let key = format!("pay-{round}");
        let first = shopper.pay(&order, &key, "pm_card_lost_answer").await.expect(201);
        assert!(!first.is_replay(), "nobody was told before: {first:?}");
        let refunds = format!("/v1/payments/{}/refunds", first.text("id"));
        let key = format!("refund-{round}");
        let first = shopper.post(&refunds, &key, &json!({})).await.expect(201);
        assert!(!first.is_replay(), "nobody was told before: {first:?}");
        assert!(shopper.post(&refunds, &key, &json!({})).await.expect(201).is_replay());
    }
    let applied = "select count(*) from provider_event where outcome = 'applied'";
    eventually("events settled some", async || sender.app.number(applied).await > 0).await;
    sender.finish().await;
}

#[tokio::test]
async fn a_charge_under_a_key_that_was_given_back_is_shown_and_goes_back_once() {
    let (sender, shopper, order, succeeded) = given_back().await;
    assert_eq!(sender.outcome("e1", &succeeded).await, "applied");
    assert_eq!(sender.outcome("e2", &succeeded).await, "ignored: known already");
    sender.app.recover().await;
    let back = "select sum(amount) from refund where status = 'succeeded'";
    assert_eq!(sender.app.number(back).await, 500);
    assert_eq!(sender.order_status(&order).await, "pending");
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    sender.finish().await;
}

/// The provider took nothing, it said, and made the refund: the repeat is told, and no error for ever.
#[tokio::test]
async fn a_refund_under_a_key_that_was_given_back_is_shown_to_its_repeat() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    let payment = shopper.pay(&order, "pay", "pm_card_ok").await.expect(201).text("id");
    let charge = sender.charge(&order).await;
    let refunds = format!("/v1/payments/{payment}/refunds");
    let scope = shopper.account().scope();
    let key = provider_key(scope.as_bytes(), "K", "POST /v1/payments/{id}/refunds");
    let made = sender.refund_at_the_provider(&charge, &key, 100).await;
    assert_eq!(sender.outcome("e1", &made).await, "applied");
    let part = json!({ "amount": { "amount": 100, "currency": "USD" } });
    let told = shopper.post(&refunds, "K", &part).await.problem(409, "invalid_transition");
    shopper.get(&format!("/v1/refunds/{}", told.text("refund_id"))).await.expect(200);
    shopper.post(&refunds, "K", &part).await.replays(&told);
    assert_eq!(sender.app.number("select sum(amount) from refund").await, 100);
    sender.finish().await;
}

#[tokio::test]
async fn a_charge_of_nothing_is_an_anomaly() {
    let (sender, _, _, succeeded) = given_back().await;
    for amount in [0, -500] {
        let mut told = succeeded.clone();
        told["data"]["amount"]["amount"] = json!(amount);
        let outcome = sender.outcome(&format!("e{amount}"), &told).await;
        assert_eq!(outcome, "anomaly: a charge of nothing");
    }
    assert_eq!(sender.outcome("e500", &succeeded).await, "applied");
    sender.app.recover().await;
    sender.finish().await;
}

/// The key was given back, and a repeat of its request writes the payment down while the event is
/// about to.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_meets_a_repeat_of_its_request_is_asked_for_again() {
    let (sender, _, _, succeeded) = given_back().await;
    let written = r#"insert into payment (id, order_id, account_id, made_by, key, provider_key,
                                          status, amount, currency, payment_method, created_at)
                     select gen_random_uuid(), id, account_id, made_by, 'P', 'given-back',
                            'processing', total, currency, 'pm_card_ok', created_at
                     from "order""#;
    meets(&sender, &succeeded, written).await.problem(503, "busy");
    sender.app.execute("delete from payment").await;
    assert_eq!(sender.outcome("e1", &succeeded).await, "applied");
    sender.app.recover().await;
    sender.finish().await;
}

/// The same for a refund.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_event_that_meets_a_repeat_of_its_request_is_asked_for_again() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    let charge = sender.charge(&order).await;
    let made = sender.refund_at_the_provider(&charge, "given-back", 100).await;
    let written =
        "insert into refund (id, payment_id, account_id, made_by, key, provider_key, status,
                                       amount, currency, restock, created_at)
                   select gen_random_uuid(), id, account_id, made_by, 'R', 'given-back',
                          'processing', 100, currency, false, created_at
                   from payment";
    meets(&sender, &made, written).await.problem(503, "busy");
    sender.app.execute("delete from refund").await;
    assert_eq!(sender.outcome("e1", &made).await, "applied");
    sender.finish().await;
}

/// Sends the event `e1`; while it waits for its order, `written` is committed.
async fn meets(sender: &Sender, told: &Value, written: &'static str) -> Response {
    sender.app.traffic.expect_failures();
    let mut conn = sender.app.database.connect().await;
    let mut repeat = conn.begin().await.unwrap();
    repeat.execute(r#"select from "order" for update"#).await.unwrap();
    let answer = tokio::join!(sender.send("e1", told), async {
        let waiting = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'";
        eventually("it waits", async || sender.app.number(waiting).await == 1).await;
        repeat.execute(written).await.unwrap();
        repeat.commit().await.unwrap();
    });
    answer.0
}

/// The charge was made there by hand as well, and its own event is late.
#[tokio::test]
async fn a_refund_that_is_told_before_its_charge_is_asked_for_again_and_not_lost() {
    let (sender, _, _, succeeded) = given_back().await;
    sender.app.traffic.expect_failures();
    let mut back = sender.refund_at_the_provider(&succeeded["data"], "by-hand", 200).await;
    assert_eq!(sender.outcome("old", &back).await, "anomaly: no such charge");
    back["data"]["created_at"] = json!(sender.app.app().clock.now().format(&Rfc3339).unwrap());
    sender.send("e1", &back).await.problem(503, "busy");
    assert_eq!(sender.outcome("e2", &succeeded).await, "applied");
    sender.app.recover().await;
    assert_eq!(sender.outcome("e1", &back).await, "applied");
    let gone_back = "select sum(amount) from refund where status = 'succeeded'";
    assert_eq!(sender.app.number(gone_back).await, 200);
    sender.finish().await;
}

/// The provider says for good that it will not do it.
#[tokio::test]
async fn money_that_does_not_go_back_by_itself_raises_an_alarm_and_is_sent_by_hand() {
    let (sender, _, order, succeeded) = given_back().await;
    sender.app.traffic.expect_failures();
    assert_eq!(sender.outcome("e1", &succeeded).await, "applied");
    let mut conn = sender.app.database.connect().await;
    let (provider_key, payment): (String, String) = sqlx::query_as(
        "select provider_key, 'pay_' || replace(payment_id::text, '-', '') from refund",
    )
    .fetch_one(&mut conn)
    .await
    .unwrap();
    let request = RefundRequest {
        provider_key,
        charge: "given-back".to_owned(),
        amount: Money::new(500, Currency::Usd),
        reference: order.clone(),
    };
    sender.provider.cancel_refund(&request).await;
    sender.app.recover().await;
    let failed = "select count(*) from refund where status = 'failed'";
    assert_eq!(sender.app.number(failed).await, 1);
    let alarms = log::with(&order).into_iter().filter(|line| line.level == Level::ERROR);
    assert_eq!(alarms.filter(|line| line.text.contains("did not go back")).count(), 1);
    let merchant = sender.app.merchant().await;
    let path = format!("/v1/payments/{payment}/refunds");
    merchant.post(&path, "by-hand", &json!({})).await.expect(201);
    sender.finish().await;
}

/// Whoever comes second is told to come again, and finds it known.
#[tokio::test(flavor = "multi_thread")]
async fn events_that_tell_at_once_of_a_charge_that_nobody_knows_book_it_once() {
    let (sender, _, _, succeeded) = given_back().await;
    sender.app.traffic.expect_failures();
    let sender = Arc::new(sender);
    let events = (0..12).map(|number| {
        let (sender, succeeded) = (Arc::clone(&sender), succeeded.clone());
        async move { (number, sender.send(&format!("e{number}"), &succeeded).await) }
    });
    for (number, answer) in together(events).await {
        assert!(matches!(answer.status, 200 | 503), "{answer:?}");
        sender.insist(&format!("e{number}"), &succeeded).await;
    }
    sender.app.recover().await;
    assert_eq!(sender.app.number("select count(*) from payment").await, 1);
    let back = "select sum(amount) from refund where status = 'succeeded'";
    assert_eq!(sender.app.number(back).await, 500);
    let Ok(sender) = Arc::try_unwrap(sender) else { panic!("somebody still sends") };
    sender.finish().await;
}

/// The provider has a charge for an order, under a key that we have not any more; what it tells of it.
async fn given_back() -> (Sender, Caller, String, Value) {
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
    (sender, shopper, order, succeeded)
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
