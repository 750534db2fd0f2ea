//! Failures after the point of no return, and refusals that are over when their cause is.

use std::time::Duration;

use serde_json::json;

use crate::app::{Caller, Response, TestApp, basket, eventually};
use crate::metrics;
use crate::process::Meeting;

const ACTIONS: [&str; 2] = ["error", "panic"];

async fn due_now(app: &TestApp) {
    let statement = "update idempotency_record set recover_at = clock_timestamp()
                     where recover_at is not null";
    app.execute(statement).await;
}

/// Sends a request that fails at a point, then the same again until it is answered.
async fn failed_then_done(
    caller: &Caller,
    (path, key): (&str, &str),
    body: &serde_json::Value,
    fault: &str,
) {
    let armed = caller.request("POST", path).key(key).json(body);
    let failed = armed.header("x-payonce-fault", fault.as_bytes()).send().await;
    let told = failed.problem(500, "internal").json();
    assert_eq!(told["retryable"], true, "{fault}");
    assert_eq!(told["safe_new_key"], false, "{fault}");
    eventually("a retry is answered", async || caller.post(path, key, body).await.status == 201)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_after_the_charge_costs_no_second_one() {
    let app = TestApp::with(|options| options.lease_ms(800)).await;
    app.traffic.expect_failures();
    let shopper = app.shopper().await;
    for point in ["after_send", "answered", "before_settle_commit", "settle_committed"] {
        for action in ACTIONS {
            let key = format!("{point}-{action}");
            let order = shopper.order(&format!("order-{key}")).await;
            let path = format!("/v1/orders/{order}/payments");
            let card = json!({ "payment_method": "pm_card_ok" });
            let fault = format!("{point}:{action}");
            failed_then_done(&shopper, (&path, &key), &card, &fault).await;
            assert_eq!(app.captures(&order).await, 1, "{fault}");
            let shown = shopper.get(&format!("/v1/orders/{order}")).await.text("status");
            assert_eq!(shown, "paid", "{fault}");
        }
    }
    let receipts = "select count(*) from mail where kind = 'receipt'";
    assert_eq!(app.number(receipts).await, 8);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_after_the_refund_costs_no_second_one() {
    let app = TestApp::with(|options| options.lease_ms(800)).await;
    app.traffic.expect_failures();
    let shopper = app.shopper().await;
    let points = [
        "refund_after_send",
        "refund_answered",
        "refund_before_settle_commit",
        "refund_settle_committed",
    ];
    for point in points {
        for action in ACTIONS {
            let key = format!("{point}-{action}");
            let order = shopper.order(&format!("order-{key}")).await;
            let paid = shopper.pay(&order, &format!("pay-{key}"), "pm_card_ok").await.expect(201);
            let path = format!("/v1/payments/{}/refunds", paid.text("id"));
            let fault = format!("{point}:{action}");
            failed_then_done(&shopper, (&path, &key), &json!({}), &fault).await;
        }
    }
    let refunds = "select count(*) from provider.refund where status = 'succeeded'";
    assert_eq!(app.number(refunds).await, 8);
    let notices = "select count(*) from mail where kind = 'refund_notice'";
    assert_eq!(app.number(notices).await, 8);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_is_being_settled_is_not_refunded_yet() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    let meeting = Meeting::new().await;
    let fault = format!("before_settle_commit:{}", meeting.action());
    let path = format!("/v1/orders/{order}/payments");
    let paying = shopper.request("POST", &path).key("pay");
    let paying = paying.json(&json!({ "payment_method": "pm_card_ok" }));
    let paying = tokio::spawn(paying.header("x-payonce-fault", fault.as_bytes()).send());
    let here = meeting.arrived().await.unwrap();
    let mut conn = app.database.connect().await;
    let payment: String =
        sqlx::query_scalar("select 'pay_' || replace(id::text, '-', '') from payment")
            .fetch_one(&mut conn)
            .await
            .unwrap();
    let refunds = format!("/v1/payments/{payment}/refunds");
    // The charge is made and its transaction is open: whoever refunds now waits for it.
    let early = tokio::spawn({
        let (shopper, refunds) = (shopper.clone(), refunds.clone());
        async move { shopper.post_empty(&refunds, "early").await }
    });
    let waiting = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
                   where not l.granted and a.datname = current_database()";
    eventually("the refund waits for the charge", async || app.number(waiting).await > 0).await;
    drop(here);
    paying.await.unwrap().expect(201);
    early.await.unwrap().expect(201);
    let of_the_order = format!(
        "select count(*) from refund r join payment p on p.id = r.payment_id
         where p.order_id = replace('{order}', 'ord_', '')::uuid"
    );
    assert_eq!(app.number(of_the_order).await, 1);
    assert_eq!(app.number("select sum(amount) from ledger_posting").await, 0);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_stays_unknown_raises_an_alarm_and_is_never_given_up() {
    const ALARMS: &str = "payonce_unknown_outcome_alarms_total";
    let app = TestApp::with(|options| options.lease_ms(1500).provider_timeout_ms(300)).await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    app.provider(json!({ "latency_ms": 4000 })).await;
    shopper.pay(&order, "pay", "pm_card_ok").await.problem(409, "outcome_unknown");
    app.provider(json!({ "down": true })).await;
    let alarms = metrics::value(&metrics::page(&app).await, ALARMS);
    let mut rounds = 0;
    while metrics::value(&metrics::page(&app).await, ALARMS) <= alarms {
        // Pauses grow; nobody wants to wait for them here.
        due_now(&app).await;
        assert_eq!(app.recover().await.1, 0, "nobody can know");
        rounds += 1;
        assert!(rounds < 30, "no alarm");
    }
    assert!(rounds > 3, "an alarm after {rounds} attempts wakes somebody for nothing");
    let told = shopper.get("/v1/idempotency-keys/pay").await.expect(200).json();
    assert_eq!(told["state"], "unknown");
    assert_eq!(shopper.get(&format!("/v1/orders/{order}")).await.text("status"), "pending");

    app.provider(json!({ "down": false, "latency_ms": 0 })).await;
    eventually("it is known after all", async || {
        due_now(&app).await;
        app.recover().await;
        shopper.get(&format!("/v1/orders/{order}")).await.text("status") == "paid"
    })
    .await;
    assert!(shopper.pay(&order, "pay", "pm_card_ok").await.expect(201).is_replay());
    assert_eq!(app.captures(&order).await, 1);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_passes_is_not_remembered() {
    let app = TestApp::with(crate::app::Options::limited).await;
    app.traffic.expect_failures();
    let shopper = app.new_account().await;
    let body = basket(&[("enamel-mug", 1)]);
    let known = shopper.post("/v1/orders", "known", &body).await.expect(201);

    let (limited, refused) = refused_for_its_rate(&app, &shopper).await;
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    shopper.post("/v1/orders", "known", &body).await.replays(&known);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let first = shopper.post("/v1/orders", &limited, &body).await.expect(201);
    assert!(!first.is_replay());

    let mut stranger = app.database.connect().await;
    for statement in ["begin", "select 1 from product where sku = 'enamel-mug' for update"] {
        sqlx::query(statement).execute(&mut stranger).await.unwrap();
    }
    let busy = shopper.post("/v1/orders", "busy", &body).await.problem(503, "busy");
    assert!(busy.header("retry-after").is_some());
    sqlx::query("rollback").execute(&mut stranger).await.unwrap();
    assert!(!shopper.post("/v1/orders", "busy", &body).await.expect(201).is_replay());

    let (path, wish) =
        ("/v1/products/enamel-mug/stock-movements", json!({ "delta": 1, "reason": "found" }));
    shopper.post(path, "role", &wish).await.problem(403, "forbidden");
    app.execute("update account set role = 'merchant'").await;
    eventually("the role is known", async || shopper.post(path, "role", &wish).await.status == 201)
        .await;
    app.finish().await;
}

/// An order that its account's budget refused, with its key. The budget fills again while a
/// request is on its way, so the first may still get through.
async fn refused_for_its_rate(app: &TestApp, shopper: &Caller) -> (String, Response) {
    let body = basket(&[("enamel-mug", 1)]);
    for number in 0..50 {
        let key = format!("limited-{number}");
        while app.app().budgets.execute(&shopper.account().scope()).is_ok() {}
        let response = shopper.post("/v1/orders", &key, &body).await;
        if response.status != 201 {
            return (key, response.problem(429, "rate_limited"));
        }
    }
    panic!("fifty orders found the budget filled again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_is_called_safe_only_where_the_key_could_be_read() {
    let app = TestApp::start().await;
    app.traffic.expect_failures();
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    let cancel = format!("/v1/orders/{order}/cancel");
    let done = shopper.post_empty(&cancel, "cancel").await.expect(200);
    let mug = basket(&[("enamel-mug", 1)]);
    let made = shopper.post("/v1/orders", "mug", &mug).await.expect(201);
    let elsewhere = shopper.on(&second);
    elsewhere.get("/v1/accounts/me").await.expect(200);
    let held = async |lock: &'static str| {
        let mut conn = app.database.connect().await;
        sqlx::raw_sql("begin").execute(&mut conn).await.unwrap();
        sqlx::raw_sql(lock).execute(&mut conn).await.unwrap();
        conn
    };
    let records = held("lock table idempotency_record in access exclusive mode").await;
    let (cancelled, ordered, asked) = tokio::join!(
        elsewhere.post_empty(&cancel, "cancel"),
        elsewhere.post("/v1/orders", "mug", &mug),
        elsewhere.get("/v1/idempotency-keys/mug")
    );
    drop(records);
    for answer in [cancelled, ordered, asked] {
        let told = answer.problem(503, "busy").json();
        assert_eq!((&told["retryable"], &told["safe_new_key"]), (&json!(true), &json!(false)));
    }
    elsewhere.post_empty(&cancel, "cancel").await.replays(&done);
    elsewhere.post("/v1/orders", "mug", &mug).await.replays(&made);
    let goods = held("select from product for update").await;
    let told = elsewhere.post("/v1/orders", "bell", &mug).await.problem(503, "busy").json();
    drop(goods);
    assert_eq!(told["safe_new_key"], true, "the key was read, and nothing was done under it");
    elsewhere.post("/v1/orders", "bell", &mug).await.expect(201);
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 3);
    second.stop().await;
    app.finish().await;
}
