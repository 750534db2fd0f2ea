//! Payments: one key, at most one charge, and the truth when nobody knows yet.

use std::time::{Duration, Instant};

use api::payments::recover;
use serde_json::{Value, json};

use crate::app::{Response, TestApp, basket, eventually, together};
use crate::raw;

fn count(answers: &[Response], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

async fn status(app: &TestApp, order: &str) -> (String, Option<String>) {
    let mut conn = app.database.connect().await;
    let id = uuid::Uuid::parse_str(order.trim_start_matches("ord_")).unwrap();
    sqlx::query_as(
        r#"select o.status, p.status from "order" o
           left join payment p on p.id = o.live_payment_id where o.id = $1"#,
    )
    .bind(id)
    .fetch_one(&mut conn)
    .await
    .unwrap()
}

#[tokio::test]
async fn every_card_ends_as_it_should() {
    let app = TestApp::with(|options| options.provider_timeout_ms(2500)).await;
    let shopper = app.shopper().await;
    let mut paying = Vec::new();
    for (card, answer, captures) in [
        ("ok", 201, 1),
        ("slow", 201, 1),
        ("lost_answer", 201, 1),
        ("reset", 201, 1),
        ("key_in_use", 201, 1),
        ("declined", 402, 0),
        ("insufficient_funds", 402, 0),
    ] {
        paying.push((card, answer, captures, shopper.order(card).await));
    }
    together(paying.into_iter().map(|(card, answer, captures, order)| {
        let shopper = shopper.clone();
        async move {
            let key = format!("pay-{card}");
            let first = shopper.pay(&order, &key, &format!("pm_card_{card}")).await.expect(answer);
            assert!(!first.is_replay());
            shopper.pay(&order, &key, &format!("pm_card_{card}")).await.replays(&first);
            let shown = shopper.get(&format!("/v1/orders/{order}")).await.text("status");
            assert_eq!(shown == "paid", captures == 1, "{card}");
            if answer == 201 {
                let document = first.json();
                assert_eq!(document["status"], "succeeded");
                assert_eq!(document["order_id"], *order);
                assert_eq!(document["refunded"]["amount"], 0);
                let path = format!("/v1/payments/{}", first.text("id"));
                assert_eq!(first.header("location"), Some(&*path));
                assert_eq!(shopper.get(&path).await.json(), document);
            } else {
                let payment = first.text("payment_id");
                let shown = shopper.get(&format!("/v1/payments/{payment}")).await.text("status");
                assert_eq!(shown, "declined");
            }
        }
    }))
    .await;
    assert_eq!(
        app.number("select count(*) from provider.charge where status = 'succeeded'").await,
        5
    );
    app.finish().await;
}

#[tokio::test]
async fn a_payment_is_checked_before_anything_is_sent() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let path = format!("/v1/orders/{order}/payments");
    let with = |amount: Value| json!({ "payment_method": "pm_card_ok", "amount": amount });
    for (body, pointer) in [
        (json!({}), ""),
        (json!({ "payment_method": "4242424242424242" }), "/payment_method"),
        (json!({ "payment_method": "pm_card_unheard_of" }), "/payment_method"),
        (json!({ "payment_method": 1 }), "/payment_method"),
        (with(json!({ "amount": 1799, "currency": "USD" })), "/amount"),
        (with(json!({ "amount": 1801, "currency": "USD" })), "/amount"),
        (with(json!({ "amount": 0, "currency": "USD" })), "/amount"),
        (with(json!({ "amount": -1800, "currency": "USD" })), "/amount"),
        (with(json!({ "amount": 1800, "currency": "EUR" })), "/amount"),
        (with(json!(1800)), "/amount"),
        (json!({ "payment_method": "pm_card_ok", "status": "succeeded" }), "/status"),
    ] {
        let refused =
            shopper.post(&path, "P", &body).await.problem(422, "validation_failed").json();
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{body}: {refused}");
        assert!(!refused.to_string().contains("4242"), "{refused}");
    }
    assert!(app.provider_charges(&order).await.is_empty());
    let exact = with(json!({ "amount": 1800, "currency": "USD" }));
    shopper.post(&path, "P", &exact).await.expect(201);
    app.finish().await;
}

#[tokio::test]
async fn twenty_copies_are_one_charge_every_time() {
    let app = TestApp::start().await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    for round in 0..6 {
        let order = shopper.order(&format!("K{round}")).await;
        let key = format!("P{round}");
        let copies = (0..20).map(|copy| {
            let caller = if copy % 2 == 0 { shopper.clone() } else { shopper.on(&second) };
            let (order, key) = (order.clone(), key.clone());
            async move { caller.pay(&order, &key, "pm_card_ok").await }
        });
        let answers = together(copies).await;
        for answer in &answers {
            answer.clone().expect(201).equals(&answers[0]);
        }
        assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
        assert_eq!(app.provider_charges(&order).await.len(), 1);
    }
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn many_keys_for_one_order_are_one_capture() {
    let app = TestApp::start().await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    for card in ["pm_card_ok", "pm_card_slow"] {
        let order = shopper.order(card).await;
        let attempts = (0..10).map(|attempt| {
            let caller = if attempt % 2 == 0 { shopper.clone() } else { shopper.on(&second) };
            let (order, key) = (order.clone(), format!("{card}{attempt}"));
            async move { caller.pay(&order, &key, card).await }
        });
        let answers = together(attempts).await;
        assert_eq!(count(&answers, 201), 1, "{answers:?}");
        let paid = answers.iter().find(|answer| answer.status == 201).unwrap().text("id");
        for refused in answers.iter().filter(|answer| answer.status != 201) {
            let document = refused.clone().expect(409).json();
            let code = document["code"].as_str().unwrap();
            assert!(["payment_in_progress", "order_already_paid"].contains(&code), "{document}");
            assert_eq!(document["payment_id"], *paid, "the existing payment is named");
            assert_eq!(refused.header("location"), Some(&*format!("/v1/payments/{paid}")));
        }
        shopper.pay(&order, &format!("{card}-late"), card).await.problem(409, "order_already_paid");
        assert_eq!(app.provider_charges(&order).await.len(), 1);
    }
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn a_passing_refusal_leaves_its_key_free() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let slow = tokio::spawn({
        let (shopper, order) = (shopper.clone(), order.clone());
        async move { shopper.pay(&order, "slow", "pm_card_slow").await }
    });
    eventually("the charge is under way", async || !app.provider_charges(&order).await.is_empty())
        .await;
    let wait = shopper.pay(&order, "other", "pm_card_ok").await.problem(409, "payment_in_progress");
    assert!(wait.header("retry-after").is_some());
    let cancel = format!("/v1/orders/{order}/cancel");
    shopper.post_empty(&cancel, "cancel").await.problem(409, "payment_in_progress");
    slow.await.unwrap().expect(201);
    // Executed now, not replayed: the first answers were not stored.
    let late = shopper.pay(&order, "other", "pm_card_ok").await.problem(409, "order_already_paid");
    assert!(!late.is_replay());
    shopper.post_empty(&cancel, "cancel").await.problem(409, "invalid_transition");
    app.finish().await;
}

#[tokio::test]
async fn after_a_decline_another_card_needs_another_key() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let declined =
        shopper.pay(&order, "K1", "pm_card_declined").await.problem(402, "card_declined");
    let reused =
        shopper.pay(&order, "K1", "pm_card_ok").await.problem(422, "idempotency_key_reused");
    assert_eq!(reused.json()["pointers"], json!(["/payment_method"]));
    assert_eq!(reused.json()["safe_new_key"], true);
    assert_eq!(status(&app, &order).await, ("pending".to_owned(), None));
    shopper.pay(&order, "K2", "pm_card_ok").await.expect(201);
    shopper.pay(&order, "K1", "pm_card_declined").await.replays(&declined);
    assert_eq!(app.captures(&order).await, 1);
    let receipts = "select count(*) from mail where kind = 'receipt'";
    assert_eq!(app.number(receipts).await, 1);
    assert_eq!(app.number("select count(*) from event where kind = 'order.paid'").await, 1);
    app.finish().await;
}

#[tokio::test]
async fn what_is_not_there_is_not_paid() {
    let app = TestApp::start().await;
    let (shopper, other) = (app.shopper().await, app.new_account().await);
    let order = other.order("K").await;
    for id in [&*order, "ord_00000000000000000000000000000000", "ord_1", "1", "%00", "ord_X"] {
        shopper.pay(id, "K", "pm_card_ok").await.problem(404, "not_found");
    }
    // Not the merchant either: it may see the order, but it is not the one who pays.
    app.merchant().await.pay(&order, "K", "pm_card_ok").await.problem(404, "not_found");
    let paid = other.pay(&order, "P", "pm_card_ok").await.expect(201).text("id");
    for id in [&*paid, "pay_00000000000000000000000000000000", "pay_1", "%F0%9F"] {
        shopper.get(&format!("/v1/payments/{id}")).await.problem(404, "not_found");
    }
    let keys = app.number("select count(*) from idempotency_record where key = 'K'").await;
    assert_eq!(keys, 1, "only the order was stored under its key");
    app.finish().await;
}

#[tokio::test]
async fn a_duplicate_waits_for_the_first_as_long_as_it_likes() {
    let app = TestApp::start().await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let path = format!("/v1/orders/{order}/payments");
    let body = json!({ "payment_method": "pm_card_slow" });
    // Four seconds with the card's own two, so that there is time to come second.
    app.provider(json!({ "latency_ms": 2000 })).await;
    let first = tokio::spawn({
        let (shopper, path, body) = (shopper.clone(), path.clone(), body.clone());
        async move { shopper.post(&path, "P", &body).await }
    });
    eventually("the charge is under way", async || !app.provider_charges(&order).await.is_empty())
        .await;
    let other = json!({ "payment_method": "pm_card_ok" });
    for caller in [shopper.clone(), shopper.on(&second)] {
        let started = Instant::now();
        let request = || caller.request("POST", &path).key("P");
        let unwilling =
            request().json(&body).wait(0).send().await.problem(409, "request_in_progress");
        assert_eq!(unwilling.header("preference-applied"), Some("wait=0"));
        request().json(&other).send().await.problem(422, "idempotency_key_reused");
        assert!(started.elapsed() < Duration::from_millis(3500), "{:?}", started.elapsed());
    }
    let waiting = [shopper.clone(), shopper.on(&second)].into_iter().flat_map(|caller| {
        ["wait=30", "wait=99", "wait=soon", "return=minimal"].map(|prefer| {
            let (caller, path, body) = (caller.clone(), path.clone(), body.clone());
            async move {
                let request = caller.request("POST", &path).key("P").json(&body);
                let answer = request.header("Prefer", prefer.as_bytes()).send().await;
                let applied = prefer.starts_with("wait=3") || prefer.starts_with("wait=9");
                assert_eq!(
                    answer.header("preference-applied"),
                    applied.then_some("wait=30"),
                    "{prefer}"
                );
                answer
            }
        })
    });
    let answers = together(waiting).await;
    let first = first.await.unwrap().expect(201);
    assert!(!first.is_replay());
    for answer in answers {
        answer.replays(&first);
    }
    assert_eq!(app.provider_charges(&order).await.len(), 1);
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn a_wish_to_wait_does_not_hurry_the_first_request() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    for round in 0..5 {
        let request = shopper.request("POST", "/v1/orders").key(&format!("K{round}"));
        let order = request.json(&basket(&[("enamel-mug", 1)])).wait(0).send().await.expect(201);
        assert_eq!(order.header("preference-applied"), Some("wait=0"));
        let path = format!("/v1/orders/{}/payments", order.text("id"));
        let request = shopper.request("POST", &path).key(&format!("P{round}")).wait(0);
        request.json(&json!({ "payment_method": "pm_card_ok" })).send().await.expect(201);
    }
    app.finish().await;
}

#[tokio::test]
async fn many_duplicates_slow_nobody_else_down() {
    let app = TestApp::with(|options| options.connections(5)).await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let copies: Vec<_> = (0..300)
        .map(|copy| {
            let caller = if copy % 2 == 0 { shopper.clone() } else { shopper.on(&second) };
            let order = order.clone();
            tokio::spawn(async move { caller.pay(&order, "P", "pm_card_slow").await })
        })
        .collect();
    eventually("the charge is under way", async || !app.provider_charges(&order).await.is_empty())
        .await;
    for round in 0..5 {
        shopper.order(&format!("O{round}")).await;
        shopper.on(&second).get("/healthz").await.expect(200);
    }
    for server in [app.app(), &second.app] {
        let (in_use, _, most) = server.db.usage();
        assert!(in_use < most, "waiting holds no connection: {in_use} of {most}");
    }
    let mut answers = Vec::new();
    for copy in copies {
        answers.push(copy.await.unwrap());
    }
    assert_eq!(count(&answers, 201), 300);
    assert_eq!(app.captures(&order).await, 1);
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn a_client_that_hangs_up_stops_nothing() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let token = format!("Authorization: Bearer {}", shopper.token.as_ref().unwrap());
    let body = json!({ "payment_method": "pm_card_slow" }).to_string();
    let mut hung_up = Vec::new();
    for after in [0, 100, 500, 1900, 2050] {
        hung_up.push((after, shopper.order(&format!("K{after}")).await));
    }
    let orders: Vec<String> = hung_up.iter().map(|(_, order)| order.clone()).collect();
    together(hung_up.into_iter().map(|(after, order)| {
        let (shopper, token, body) = (shopper.clone(), token.clone(), body.clone());
        async move {
            let key = format!("Idempotency-Key: P{after}");
            let headers = [&*token, &*key, "Content-Type: application/json"];
            let bytes = raw::request(&format!("POST /v1/orders/{order}/payments"), &headers, &body);
            raw::send_and_reset(shopper.address, &bytes, Duration::from_millis(after)).await;
            shopper.pay(&order, &format!("P{after}"), "pm_card_slow").await.expect(201);
        }
    }))
    .await;
    for order in orders {
        assert_eq!(app.provider_charges(&order).await.len(), 1);
    }
    assert_eq!(app.stock("enamel-mug").await, 395);
    app.finish().await;
}

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

#[tokio::test]
async fn a_provider_that_is_not_there_frees_the_key_and_the_order() {
    let app = TestApp::start().await;
    app.traffic.expect_failures();
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    app.provider(json!({ "down": true })).await;
    let copies = (0..5).map(|_| {
        let (shopper, order) = (shopper.clone(), order.clone());
        async move { shopper.pay(&order, "P", "pm_card_ok").await }
    });
    for answer in together(copies).await {
        let answer = answer.problem(503, "provider_unavailable");
        assert_eq!(answer.json()["safe_new_key"], true);
    }
    assert_eq!(status(&app, &order).await, ("pending".to_owned(), None));
    shopper.pay(&order, "down", "pm_card_down").await.problem(503, "provider_unavailable");
    app.provider(json!({ "down": false })).await;
    shopper.pay(&order, "Q", "pm_card_ok").await.expect(201);
    shopper.pay(&order, "P", "pm_card_ok").await.problem(409, "order_already_paid");
    assert_eq!(app.captures(&order).await, 1);
    app.finish().await;
}

#[tokio::test]
async fn a_payment_and_a_cancellation_at_once_have_one_winner() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    for round in 0..15 {
        let order = shopper.order(&format!("K{round}")).await;
        let (pay, cancel) = (format!("P{round}"), format!("C{round}"));
        let path = format!("/v1/orders/{order}/cancel");
        let (paid, cancelled) = tokio::join!(
            shopper.pay(&order, &pay, "pm_card_ok"),
            shopper.post_empty(&path, &cancel)
        );
        let shown = shopper.get(&format!("/v1/orders/{order}")).await.text("status");
        match (paid.status, cancelled.status) {
            (201, 409) => assert_eq!((&*shown, app.captures(&order).await), ("paid", 1)),
            (409, 200) => assert_eq!((&*shown, app.captures(&order).await), ("cancelled", 0)),
            _ => panic!("{paid:?} {cancelled:?}"),
        }
    }
    app.finish().await;
}
