//! Copies of a request whose execution cannot be seen yet: its commit takes its time, or others hold
//! the goods that it wants. Nobody is told that nothing was done.

use std::time::Duration;

use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::app::{Caller, TestApp, basket, eventually, together};
use crate::process::{Meeting, Proxy};

/// Commits of records take longer than anybody waits for a lock, as where a standby or a disk is
/// slow, if their keys begin with `slow`.
const SLOW_COMMITS: [&str; 2] = [
    "create function take_time() returns trigger language plpgsql as
     $$ begin perform pg_sleep(8); return null; end $$",
    "create constraint trigger take_time after insert on idempotency_record
     deferrable initially deferred for each row when (new.key like 'slow%')
     execute function take_time()",
];

async fn slow_commits(app: &TestApp) {
    for statement in SLOW_COMMITS {
        app.execute(statement).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_beside_a_slow_commit_is_not_told_that_nothing_was_done() {
    let app = TestApp::start().await;
    let second = app.second_server().await;
    let (shopper, merchant) = (app.shopper().await, app.merchant().await);
    let paid = shopper.order("paid").await;
    let payment = shopper.pay(&paid, "pay", "pm_card_ok").await.expect(201).text("id");
    let unpaid = shopper.order("unpaid").await;
    slow_commits(&app).await;
    let cent = json!({ "amount": { "amount": 1, "currency": "USD" } });
    let wishes = [
        (&shopper, "/v1/orders".to_owned(), basket(&[("enamel-mug", 1)])),
        (
            &shopper,
            format!("/v1/orders/{unpaid}/payments"),
            json!({ "payment_method": "pm_card_ok" }),
        ),
        (&shopper, format!("/v1/payments/{payment}/refunds"), cent),
        (
            &merchant,
            "/v1/products/order-book/stock-movements".to_owned(),
            json!({ "delta": 1, "reason": "found one" }),
        ),
    ];
    let asked = wishes.map(|(caller, path, body)| {
        let key = format!("slow{}", path.replace('/', "-"));
        let ask = move |caller: &Caller| caller.request("POST", &path).key(&key).json(&body);
        let first = ask(caller).send();
        let (patient, other) = (ask(&caller.on(&second)), ask(&caller.on(&second)));
        let other = other.header("prefer", b"wait=1");
        async move {
            let copies = async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                tokio::join!(patient.send(), other.send())
            };
            tokio::join!(first, copies)
        }
    });
    for (first, (patient, other)) in together(asked).await {
        patient.replays(&first.expect(201));
        let told = other.problem(409, "request_in_progress").json();
        assert_eq!(told["safe_new_key"], false);
    }
    assert_eq!(app.number("select sum(amount) from refund").await, 1);
    second.stop().await;
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_waits_for_the_same_goods_is_not_told_that_nothing_was_done() {
    let app = TestApp::start().await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    // The first gets one product after the other, the copy waits for the first one all the time.
    let goods = ["counter-bell", "enamel-mug", "order-book"];
    for (sku, until) in goods.into_iter().zip([4000, 8000, 11_500]) {
        let mut conn = app.database.connect().await;
        sqlx::raw_sql("begin").execute(&mut conn).await.unwrap();
        let lock = format!("select from product where sku = '{sku}' for update");
        sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut conn).await.unwrap();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(until)).await;
            drop(conn);
        });
    }
    let all = basket(&goods.map(|sku| (sku, 1)));
    let copy = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let copy = shopper.on(&second).request("POST", "/v1/orders").key("all").json(&all);
        copy.header("prefer", b"wait=1").send().await
    };
    let (first, copy) = tokio::join!(shopper.post("/v1/orders", "all", &all), copy);
    let told = copy.problem(409, "request_in_progress").json();
    assert_eq!(told["safe_new_key"], false);
    shopper.on(&second).post("/v1/orders", "all", &all).await.replays(&first.expect(201));
    second.stop().await;
    app.finish().await;
}

/// The database answers its commit so late that the server has given up and tries again.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_done_after_it_was_given_up_is_found() {
    let app = TestApp::start().await;
    let proxy = Proxy::before(app.database_port()).await;
    let server = app.server_behind(proxy.port()).await;
    let shopper = app.shopper().await;
    let there = shopper.on(&server);
    slow_commits(&app).await;
    let mug = basket(&[("enamel-mug", 1)]);
    there.post("/v1/orders", "another", &mug).await.expect(201);
    proxy.leave_next_commit();
    let told = there.post("/v1/orders", "slow", &mug).await.expect(201);
    assert_eq!(proxy.cut_no_more(), 1);
    assert!(told.is_replay(), "found, not made once more");
    shopper.post("/v1/orders", "slow", &mug).await.replays(&told);
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 2);
    server.stop().await;
    app.finish().await;
}

/// A copy that nobody could see, in the queue for a connection, does not begin after another one was
/// told that a new key is safe.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_waited_too_long_for_a_connection_does_not_begin_any_more() {
    let app = TestApp::with(|options| options.connections(2)).await;
    app.traffic.expect_failures();
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let there = shopper.on(&second);
    there.get("/v1/accounts/me").await.expect(200);
    let mut conn = app.database.connect().await;
    sqlx::raw_sql("begin; select from product for update").execute(&mut conn).await.unwrap();
    let mug = basket(&[("enamel-mug", 1)]);
    let fillers = ["one", "two"].map(|key| {
        let (there, mug) = (there.clone(), mug.clone());
        async move { there.post("/v1/orders", key, &mug).await }
    });
    let fillers = tokio::spawn(together(fillers));
    let all = "select count(*) from pg_stat_activity
               where datname = current_database() and wait_event_type = 'Lock'";
    eventually("all connections wait", async || app.number(all).await == 2).await;
    let queued = tokio::spawn({
        let (there, mug) = (there.clone(), mug.clone());
        async move { there.post("/v1/orders", "K", &mug).await }
    });
    eventually("the copy is there", async || second.app.flights.len() == 3).await;
    let told = shopper.post("/v1/orders", "K", &mug).await.problem(503, "busy").json();
    assert_eq!(told["safe_new_key"], true, "nobody is at it");
    drop(conn);
    queued.await.unwrap().problem(503, "busy");
    fillers.await.unwrap();
    let made = r#"select count(*) from "order" where key = 'K'"#;
    assert_eq!(app.number(made).await, 0);
    shopper.post("/v1/orders", "K", &mug).await.expect(201);
    second.stop().await;
    app.finish().await;
}

/// Whoever gives up at once cannot know whether an earlier copy is still in a queue.
#[tokio::test(flavor = "multi_thread")]
async fn who_gives_up_early_calls_no_new_key_safe() {
    let app = TestApp::start().await;
    app.traffic.expect_failures();
    let shopper = app.shopper().await;
    let mut conn = app.database.connect().await;
    sqlx::raw_sql("begin; select from product for update").execute(&mut conn).await.unwrap();
    let mug = basket(&[("enamel-mug", 1)]);
    let asked = tokio::spawn({
        let (shopper, mug) = (shopper.clone(), mug.clone());
        async move { shopper.post("/v1/orders", "K", &mug).await }
    });
    let cancelled = "select count(*) from (
                         select pg_cancel_backend(pid) from pg_stat_activity
                         where datname = current_database() and wait_event_type = 'Lock') as one";
    eventually("it was cancelled", async || app.number(cancelled).await == 1).await;
    let told = asked.await.unwrap().problem(503, "busy").json();
    assert_eq!((&told["retryable"], &told["safe_new_key"]), (&json!(true), &json!(false)));
    drop(conn);
    shopper.post("/v1/orders", "K", &mug).await.expect(201);
    app.finish().await;
}

/// Whether a key was given back is not known to its owner, but others see it, and are told that a new
/// key is safe: the owner does not begin again.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_gave_its_key_back_does_not_begin_again() {
    let app = TestApp::start().await;
    app.traffic.expect_failures();
    let proxy = Proxy::before(app.database_port()).await;
    let server = app.server_behind(proxy.port()).await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    app.provider(json!({ "down": true })).await;
    let meeting = Meeting::new().await;
    let fault = format!("before_release:{}", meeting.action());
    let path = format!("/v1/orders/{order}/payments");
    let ask = |caller: &Caller| {
        let card = json!({ "payment_method": "pm_card_ok" });
        caller.request("POST", &path).key("P").json(&card)
    };
    let first = ask(&shopper.on(&server)).header("x-payonce-fault", fault.as_bytes());
    let first = tokio::spawn(first.send());
    let here = meeting.arrived().await.unwrap();
    let copy = tokio::spawn(ask(&shopper).send());
    eventually("the copy waits", async || !app.app().flights.is_empty()).await;
    app.provider(json!({ "down": false })).await;
    proxy.cut_next_commit();
    drop(here);
    first.await.unwrap().problem(503, "provider_unavailable");
    assert_eq!(proxy.cut_no_more(), 1);
    copy.await.unwrap().problem(503, "provider_unavailable");
    assert!(app.provider_charges(&order).await.is_empty());
    ask(&shopper).send().await.expect(201);
    server.stop().await;
    app.finish().await;
}

/// Who asks what became of a key, because no answer came, is told that it is at work.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_at_work_is_processing_before_it_has_a_record() {
    let app = TestApp::start().await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let mut conn = app.database.connect().await;
    sqlx::raw_sql("begin; select from product for update").execute(&mut conn).await.unwrap();
    let mug = basket(&[("enamel-mug", 1)]);
    let asked = tokio::spawn({
        let (shopper, mug) = (shopper.clone(), mug.clone());
        async move { shopper.post("/v1/orders", "K", &mug).await }
    });
    let waiting = "select count(*) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'";
    eventually("the order waits", async || app.number(waiting).await == 1).await;
    for caller in [&shopper, &shopper.on(&second)] {
        let told = caller.get("/v1/idempotency-keys/K").await.expect(200);
        assert_eq!(told.text("state"), "processing");
        caller.get("/v1/idempotency-keys/other").await.problem(404, "not_found");
    }
    drop(conn);
    asked.await.unwrap().expect(201);
    let told = shopper.on(&second).get("/v1/idempotency-keys/K").await.expect(200);
    assert_eq!(told.text("state"), "completed");
    second.stop().await;
    app.finish().await;
}

/// Asking leaves no trace: who asks for a key that nobody uses does not meet others who ask.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_many_ask_for_is_still_unknown() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    for _ in 0..20 {
        let asking = (0..10).map(|_| {
            let shopper = shopper.clone();
            async move { shopper.get("/v1/idempotency-keys/K").await }
        });
        for answer in together(asking).await {
            answer.problem(404, "not_found");
        }
    }
    app.finish().await;
}
