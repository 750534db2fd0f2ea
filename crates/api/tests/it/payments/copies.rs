//! The same payment asked for again and again, by many, and beside other wishes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::AssertSqlSafe;

use super::count;
use crate::app::{TestApp, basket, eventually, together};
use crate::process::Meeting;
use crate::raw;

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

/// Whose key was given back was told that a new key is safe: nobody who waited for that may pay.
#[tokio::test]
async fn a_copy_of_a_payment_that_reached_nobody_is_told_the_same() {
    let app = TestApp::start().await;
    app.traffic.expect_failures();
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    app.provider(json!({ "down": true })).await;
    let meeting = Meeting::new().await;
    let fault = format!("before_release:{}", meeting.action());
    let paying = shopper.request("POST", &format!("/v1/orders/{order}/payments")).key("P");
    let paying = paying.json(&json!({ "payment_method": "pm_card_ok" }));
    let first = tokio::spawn(paying.header("x-payonce-fault", fault.as_bytes()).send());
    let here = meeting.arrived().await.unwrap();
    app.provider(json!({ "down": false })).await;
    let copy = {
        let (there, order) = (shopper.on(&second), order.clone());
        tokio::spawn(async move { there.pay(&order, "P", "pm_card_ok").await })
    };
    let waits = async || !second.app.flights.is_empty();
    eventually("the copy waits", waits).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(here);
    let (first, copy) = (first.await.unwrap(), copy.await.unwrap());
    first.problem(503, "provider_unavailable");
    copy.problem(503, "provider_unavailable");
    assert!(app.provider_charges(&order).await.is_empty());
    shopper.on(&second).pay(&order, "P", "pm_card_ok").await.expect(201);
    assert_eq!(app.captures(&order).await, 1);
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
async fn whoever_pays_while_another_payment_comes_and_goes_is_told_yes_or_no() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    shopper.pay(&order, "first", "pm_card_declined").await.problem(402, "card_declined");
    let over = AtomicBool::new(false);
    let comes_and_goes = async {
        let mut conn = app.database.connect().await;
        while !over.load(Ordering::Relaxed) {
            let first = "(select id from payment order by id limit 1)";
            for statement in [
                format!(
                    r#"update "order" set live_payment_id = {first} where live_payment_id is null"#
                ),
                format!(
                    r#"update "order" set live_payment_id = null where live_payment_id = {first}"#
                ),
            ] {
                sqlx::query(AssertSqlSafe(statement)).execute(&mut conn).await.unwrap();
            }
        }
    };
    let payments = async {
        let mut declined = 0;
        for round in 0..20 {
            let payments = (0..8).map(|payer| {
                let (shopper, order) = (shopper.clone(), order.clone());
                let key = format!("{payer}-{round}");
                async move { shopper.pay(&order, &key, "pm_card_declined").await }
            });
            for answer in together(payments).await {
                if answer.status == 402 {
                    declined += 1;
                } else {
                    answer.problem(409, "payment_in_progress");
                }
            }
        }
        over.store(true, Ordering::Relaxed);
        declined
    };
    let ((), declined) = tokio::join!(comes_and_goes, payments);
    assert!(declined > 0);
    let made = app.number("select count(*) from payment where status = 'declined'").await;
    assert_eq!(made, declined + 1);
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
