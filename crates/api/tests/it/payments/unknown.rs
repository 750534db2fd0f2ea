//! Answers that are lost, leases that run out, and who settles then.

use std::time::Duration;

use api::payments::recover;
use serde_json::json;

use super::status;
use crate::app::{Response, TestApp, eventually, together};

/// A charge that the provider has begun and does not finish: nobody can know its outcome.
async fn unknown_payment(app: &TestApp) -> (String, Response) {
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    app.provider(json!({ "latency_ms": 4000 })).await;
    let answer = shopper.pay(&order, "P", "pm_card_ok").await.problem(409, "outcome_unknown");
    (order, answer)
}

#[tokio::test]
async fn an_outcome_that_nobody_knows_is_called_so_until_the_provider_tells() {
    let app = TestApp::with(|options| options.lease_ms(1500).provider_timeout_ms(300)).await;
    let shopper = app.shopper().await;
    let (order, answer) = unknown_payment(&app).await;
    let payment = answer.json()["resource"].as_str().unwrap().to_owned();
    assert_eq!(answer.header("location"), Some(&*payment));
    assert_eq!(answer.json()["safe_new_key"], false);
    assert_eq!(shopper.get(&payment).await.text("status"), "unknown");
    assert_eq!(status(&app, &order).await, ("pending".to_owned(), Some("unknown".to_owned())));
    shopper.pay(&order, "other", "pm_card_ok").await.problem(409, "payment_in_progress");
    let cancel = format!("/v1/orders/{order}/cancel");
    shopper.post_empty(&cancel, "C").await.problem(409, "payment_in_progress");
    app.execute(r#"update "order" set reserved_until = clock_timestamp() - interval '1 hour'"#)
        .await;
    assert_eq!(api::orders::expire::run_once(app.app()).await.unwrap(), 0);
    app.provider(json!({ "latency_ms": 0 })).await;
    eventually("the payment is settled", async || {
        app.recover().await;
        shopper.get(&payment).await.text("status") == "succeeded"
    })
    .await;
    let told = shopper.pay(&order, "P", "pm_card_ok").await.expect(201);
    assert!(told.is_replay(), "recovery stored the reply to the original request");
    assert_eq!(told.json()["status"], "succeeded");
    assert_eq!(status(&app, &order).await.0, "paid");
    assert_eq!(app.provider_charges(&order).await.len(), 1);
    app.finish().await;
}

/// How often the provider was called about charges.
async fn charge_calls(app: &TestApp, method: &str) -> usize {
    let calls = app.provider_calls().await;
    calls.iter().filter(|call| call["method"] == method && call["path"] == "/charges").count()
}

/// It may have charged: only its word that it has nothing would be a reason to send again.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_been_charged_is_not_sent_again_to_a_provider_that_says_nothing() {
    let app = TestApp::with(|options| options.provider_timeout_ms(1000)).await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let calls = async |method: &str| charge_calls(&app, method).await;
    let told = tokio::join!(shopper.pay(&order, "P", "pm_card_lost_answer"), async {
        eventually("it was sent", async || calls("POST").await == 1).await;
        app.provider(json!({ "down": true })).await;
    });
    told.0.problem(409, "outcome_unknown");
    assert_eq!(calls("POST").await, 1);
    assert!(calls("GET").await > 1, "it was asked for, and not only once");
    app.provider(json!({ "down": false })).await;
    eventually("the payment is settled", async || {
        app.recover().await;
        shopper.pay(&order, "P", "pm_card_lost_answer").await.status == 201
    })
    .await;
    assert_eq!(calls("POST").await, 1);
    assert_eq!(app.provider_charges(&order).await.len(), 1);
    app.finish().await;
}

/// Money moved, but not as it was to: neither paid nor failed, and somebody has to look.
#[tokio::test(flavor = "multi_thread")]
async fn a_charge_of_another_amount_settles_nothing_until_it_is_put_right() {
    let app = TestApp::with(|options| options.provider_timeout_ms(1000)).await;
    app.traffic.expect_failures();
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let calls = async |method: &str| charge_calls(&app, method).await;
    let told = tokio::join!(shopper.pay(&order, "P", "pm_card_lost_answer"), async {
        eventually("it was sent", async || calls("POST").await == 1).await;
        app.execute("update provider.charge set amount = amount - 1").await;
    });
    told.0.problem(409, "outcome_unknown");
    let asked = calls("GET").await;
    eventually("it was asked for again", async || {
        app.recover().await;
        shopper.pay(&order, "P", "pm_card_lost_answer").await.problem(409, "outcome_unknown");
        calls("GET").await > asked + 1
    })
    .await;
    assert_eq!(shopper.get(&format!("/v1/orders/{order}")).await.text("status"), "pending");
    app.execute("update provider.charge set amount = amount + 1").await;
    eventually("the payment is settled", async || {
        app.recover().await;
        shopper.pay(&order, "P", "pm_card_lost_answer").await.status == 201
    })
    .await;
    assert_eq!(calls("POST").await, 1);
    app.finish().await;
}

#[tokio::test]
async fn with_its_lease_an_outcome_is_lost_for_whoever_waits() {
    let app = TestApp::start().await;
    app.traffic.expect_failures();
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let path = format!("/v1/orders/{order}/payments");
    let paying = || {
        let body = json!({ "payment_method": "pm_card_ok" });
        shopper.request("POST", &path).key("P").json(&body).header("prefer", b"wait=0")
    };
    paying().header("x-payonce-fault", b"before_send:panic").send().await.expect(500);
    paying().send().await.problem(409, "request_in_progress");

    // Somebody else goes on with it, and does not get far.
    let over = "update idempotency_record set lease_until = clock_timestamp(),
                       recover_at = clock_timestamp()
                where state = 'processing'";
    app.execute(over).await;
    let mut other = app.database.connect().await;
    let taken = idempotency::postgres::take_due(&mut other, Duration::from_mins(1)).await.unwrap();
    assert!(taken.is_some());
    // The first of those who wait looks now and then, for all of them.
    let is_lost = async || paying().send().await.text("code") == "outcome_unknown";
    eventually("it is known to be lost", is_lost).await;
    let told = paying().send().await.problem(409, "outcome_unknown");
    assert_eq!(told.header("location"), Some(told.text("resource").as_str()));
    let known = shopper.get("/v1/idempotency-keys/P").await.expect(200);
    assert_eq!(known.text("state"), "unknown");

    app.execute(over.replace("processing", "unknown")).await;
    eventually("recovery settles it", async || app.recover().await.1 == 1).await;
    assert!(shopper.pay(&order, "P", "pm_card_ok").await.expect(201).is_replay());
    assert_eq!(app.provider_charges(&order).await.len(), 1);
    app.finish().await;
}

#[tokio::test]
async fn a_retry_finds_out_what_became_of_a_lost_answer() {
    let app = TestApp::with(|options| options.lease_ms(1500).provider_timeout_ms(300)).await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let (order, _) = unknown_payment(&app).await;
    app.provider(json!({ "latency_ms": 0 })).await;
    let pending = "select count(*) from provider.charge where status = 'pending'";
    eventually("the charge is made", async || app.number(pending).await == 0).await;
    let copies = (0..10).map(|copy| {
        let caller = if copy % 2 == 0 { shopper.clone() } else { shopper.on(&second) };
        let order = order.clone();
        async move { caller.pay(&order, "P", "pm_card_ok").await }
    });
    let answers = together(copies).await;
    for answer in &answers {
        answer.clone().expect(201).equals(&answers[0]);
    }
    let posts = app.provider_calls().await;
    let posts = posts.iter().filter(|call| call["method"] == "POST").count();
    assert!(posts >= 1, "{posts}");
    assert_eq!(app.provider_charges(&order).await.len(), 1);
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn whoever_takes_over_settles_and_the_late_owner_changes_nothing() {
    let app = TestApp::start().await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    app.provider(json!({ "latency_ms": 1200 })).await;
    let owner = tokio::spawn({
        let (shopper, order) = (shopper.clone(), order.clone());
        async move { shopper.pay(&order, "P", "pm_card_ok").await }
    });
    eventually("the charge is under way", async || !app.provider_charges(&order).await.is_empty())
        .await;
    app.provider(json!({ "latency_ms": 0 })).await;
    let over =
        "update idempotency_record set lease_until = clock_timestamp() - interval '1 second',
                recover_at = clock_timestamp() - interval '1 second' where state = 'processing'";
    assert_eq!(app.execute(over).await, 1);
    let elsewhere = shopper.on(&second);
    let (taken, retried) =
        tokio::join!(recover::run_once(&second.app), elsewhere.pay(&order, "P", "pm_card_ok"));
    taken.unwrap();
    let owner = owner.await.unwrap().expect(201);
    retried.expect(201).equals(&owner);
    shopper.pay(&order, "P", "pm_card_ok").await.replays(&owner);
    let fence = "select fence from idempotency_record where key = 'P'";
    assert_eq!(app.number(fence).await, 2, "one take-over, and the late owner took none");
    assert_eq!(app.provider_charges(&order).await.len(), 1);
    assert_eq!(app.number("select count(*) from mail").await, 1);
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn retries_around_the_end_of_the_lease_stay_one_charge() {
    let app = TestApp::with(|options| options.lease_ms(1000).provider_timeout_ms(300)).await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    app.provider(json!({ "latency_ms": 900 })).await;
    let mut orders = Vec::new();
    for n in 0..12 {
        orders.push(shopper.order(&format!("K{n}")).await);
    }
    let attempts = orders.iter().enumerate().flat_map(|(n, order)| {
        [0, 400, 800, 1000, 1200, 1600].map(|delay| {
            let caller = if delay % 800 == 0 { shopper.clone() } else { shopper.on(&second) };
            let (order, key) = (order.clone(), format!("P{n}"));
            async move {
                tokio::time::sleep(Duration::from_millis(delay)).await;
                caller.pay(&order, &key, "pm_card_ok").await
            }
        })
    });
    for answer in together(attempts).await {
        if answer.status != 201 {
            let document = answer.expect(409).json();
            let code = document["code"].as_str().unwrap();
            assert!(["outcome_unknown", "request_in_progress"].contains(&code), "{document}");
        }
    }
    app.provider(json!({ "latency_ms": 0 })).await;
    for (n, order) in orders.iter().enumerate() {
        let key = format!("P{n}");
        eventually("the key is settled", async || {
            shopper.pay(order, &key, "pm_card_ok").await.status == 201
        })
        .await;
        assert_eq!(app.provider_charges(order).await.len(), 1);
    }
    second.stop().await;
    app.finish().await;
}

/// Whoever asks more often than recovery looks takes the record over each time, and must not keep it
/// from the end that it alone can bring: the charge is called off.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_all_the_time_does_not_keep_recovery_away() {
    let app = TestApp::with(|options| options.lease_ms(800).jobs()).await;
    app.traffic.expect_failures();
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let path = format!("/v1/orders/{order}/payments");
    let ask = || {
        shopper.request("POST", &path).key("P").json(&json!({ "payment_method": "pm_card_down" }))
    };
    let broken = ask().header("x-payonce-fault", b"intent_committed:error").send().await;
    broken.problem(500, "internal");
    let ended = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let answer = ask().send().await;
            if answer.header("idempotency-key-expires").is_some() {
                return answer;
            }
            tokio::time::sleep(app.options.timing.recover_every / 2).await;
        }
    });
    let ended = ended.await.expect("the payment ends");
    ended.problem(409, "invalid_transition");
    assert_eq!(app.captures(&order).await, 0);
    shopper.pay(&order, "another", "pm_card_ok").await.expect(201);
    app.finish().await;
}
