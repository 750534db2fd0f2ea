//! What each payment method token does, and what one provider key guarantees.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use api::provider::client::Answer;
use domain::{ChargeOutcome, DeclineCode};
use serde_json::{Value, json};

use super::{Provider, charge, charge_json, eventually};

#[tokio::test]
async fn the_same_key_gets_the_same_charge_byte_for_byte() {
    let provider = Provider::start().await;
    let body = charge_json("k1", 1999, "pm_card_ok");
    let (first, charged) = provider.post("/charges", &body).await;
    let (second, again) = provider.post("/charges", &body).await;
    assert_eq!((first, second), (201, 200));
    assert_eq!(charged, again);
    let charged: Value = serde_json::from_str(&charged).unwrap();
    assert_eq!(charged["status"], "succeeded");
    assert_eq!(charged["amount"], json!({ "amount": 1999, "currency": "USD" }));
    assert_eq!(charged["refunded"], json!({ "amount": 0, "currency": "USD" }));
    assert!(charged["id"].as_str().unwrap().starts_with("ch_"));
}

#[tokio::test]
async fn a_decline_is_a_result_and_stands_in_the_books() {
    let provider = Provider::start().await;
    for (card, code) in [
        ("pm_card_declined", DeclineCode::CardDeclined),
        ("pm_card_insufficient_funds", DeclineCode::InsufficientFunds),
    ] {
        let request = charge(card, 500, card);
        let first = provider.client.charge(&request).await;
        let Answer::Settled(ChargeOutcome::Declined { code: given, .. }) = &first else {
            panic!("{first:?}");
        };
        assert_eq!(*given, code);
        assert_eq!(provider.client.charge(&request).await, first);
        assert_eq!(provider.found(card).await.outcome.map(Answer::Settled), Some(first));
    }
}

#[tokio::test]
async fn a_slow_charge_is_pending_until_it_is_made() {
    let provider = Provider::start().await;
    let request = charge("k1", 100, "pm_card_slow");
    let started = Instant::now();
    let (client, sent) = (provider.client.clone(), request.clone());
    let slow = tokio::spawn(async move { client.charge(&sent).await });
    let pending =
        eventually("the charge", async || provider.client.find_charge("k1").await.unwrap()).await;
    assert_eq!(pending.outcome, None);
    let retry_after = Duration::from_secs(1);
    assert_eq!(provider.client.charge(&request).await, Answer::Pending { retry_after });
    let answer = slow.await.unwrap();
    assert!(matches!(answer, Answer::Settled(ChargeOutcome::Succeeded { .. })), "{answer:?}");
    assert!(started.elapsed() >= Duration::from_secs(2));
}

#[tokio::test]
async fn a_lost_answer_is_charged_and_known_under_its_key() {
    let provider = Provider::start().await;
    let request = charge("k1", 100, "pm_card_lost_answer");
    let lost = provider.impatient().charge(&request).await;
    assert_eq!(lost, Answer::Lost { reason: "no answer in time".to_owned() });
    let outcome = provider.found("k1").await.outcome;
    assert!(matches!(outcome, Some(ChargeOutcome::Succeeded { .. })), "{outcome:?}");
    assert_eq!(provider.client.charge(&request).await, Answer::Settled(outcome.unwrap()));
}

#[tokio::test]
async fn a_reset_arrives_as_a_reset_and_the_charge_is_made() {
    let provider = Provider::start().await;
    let body = charge_json("k1", 100, "pm_card_reset").to_string();
    let address = provider.running.address();
    let read = tokio::task::spawn_blocking(move || {
        let mut socket = TcpStream::connect(address).unwrap();
        let head = "POST /charges HTTP/1.1\r\nhost: provider\r\ncontent-type: application/json\r\n";
        write!(socket, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        socket.read(&mut [0; 64]).map_err(|error| error.kind())
    });
    assert_eq!(read.await.unwrap(), Err(ErrorKind::ConnectionReset));
    assert!(matches!(provider.found("k1").await.outcome, Some(ChargeOutcome::Succeeded { .. })));
}

#[tokio::test]
async fn a_card_that_is_down_leaves_nothing_behind() {
    let provider = Provider::start().await;
    let answer = provider.client.charge(&charge("k1", 100, "pm_card_down")).await;
    assert!(matches!(answer, Answer::NotSent { .. }), "{answer:?}");
    assert_eq!(provider.client.find_charge("k1").await, Ok(None));
    provider.charged("k1", 100, "pm_card_ok").await;
}

#[tokio::test]
async fn a_key_in_use_is_answered_when_it_is_asked_again() {
    let provider = Provider::start().await;
    let request = charge("k1", 100, "pm_card_key_in_use");
    let first = provider.client.charge(&request).await;
    assert!(matches!(first, Answer::Pending { .. }), "{first:?}");
    let second = provider.client.charge(&request).await;
    assert!(matches!(second, Answer::Settled(ChargeOutcome::Succeeded { .. })), "{second:?}");
}

#[tokio::test]
async fn an_unknown_payment_method_is_refused_and_not_recorded() {
    let provider = Provider::start().await;
    let answer = provider.client.charge(&charge("k1", 100, "pm_card_of_tomorrow")).await;
    assert_eq!(answer, Answer::Refused { reason: "no such payment method".to_owned() });
    assert_eq!(provider.client.find_charge("k1").await, Ok(None));
}

#[tokio::test]
async fn a_key_belongs_to_the_first_body_it_came_with() {
    let provider = Provider::start().await;
    provider.charged("k1", 100, "pm_card_ok").await;
    for other in [
        charge_json("k1", 101, "pm_card_ok"),
        charge_json("k1", 100, "pm_card_declined"),
        json!({ "provider_key": "k1", "reference": "ord_other", "payment_method": "pm_card_ok",
            "amount": { "amount": 100, "currency": "USD" } }),
        json!({ "provider_key": "k1", "reference": "ord_k1", "payment_method": "pm_card_ok",
            "amount": { "amount": 100, "currency": "EUR" } }),
    ] {
        let (status, body) = provider.post("/charges", &other).await;
        assert_eq!(status, 422);
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["code"], "key_reused");
    }
}

#[tokio::test]
async fn twenty_simultaneous_copies_are_one_charge() {
    let provider = Provider::start().await;
    let request = charge("k1", 100, "pm_card_ok");
    let copies: Vec<_> = (0..20)
        .map(|_| {
            let (client, request) = (provider.client.clone(), request.clone());
            tokio::spawn(async move { client.charge(&request).await })
        })
        .collect();
    let made = provider.client.clone();
    for copy in copies {
        match copy.await.unwrap() {
            Answer::Pending { .. } => {}
            Answer::Settled(outcome) => {
                assert_eq!(made.find_charge("k1").await.unwrap().unwrap().outcome, Some(outcome));
            }
            other => panic!("{other:?}"),
        }
    }
    let books = provider.get("/charges?reference=ord_k1").await;
    assert_eq!(books["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_cancelled_before_its_charge_is_refused_for_ever() {
    let provider = Provider::start().await;
    let cancelled = Answer::Settled(ChargeOutcome::Cancelled);
    assert_eq!(provider.client.cancel_charge(&charge("k1", 100, "pm_card_ok")).await, cancelled);
    let request = charge("k1", 100, "pm_card_ok");
    assert_eq!(provider.client.charge(&request).await, cancelled);
    let provider = provider.restart().await;
    assert_eq!(provider.client.charge(&request).await, cancelled);
    assert_eq!(provider.found("k1").await.outcome, Some(ChargeOutcome::Cancelled));
}

#[tokio::test]
async fn a_charge_that_was_made_keeps_its_outcome_when_it_is_cancelled() {
    let provider = Provider::start().await;
    provider.charged("k1", 100, "pm_card_ok").await;
    let outcome = provider.found("k1").await.outcome.unwrap();
    assert_eq!(
        provider.client.cancel_charge(&charge("k1", 100, "pm_card_ok")).await,
        Answer::Settled(outcome)
    );
}

#[tokio::test]
async fn a_cancel_waits_for_a_charge_under_way() {
    let provider = Provider::start().await;
    let (client, request) = (provider.client.clone(), charge("k1", 100, "pm_card_slow"));
    let slow = tokio::spawn(async move { client.charge(&request).await });
    eventually("the charge", async || provider.client.find_charge("k1").await.unwrap()).await;
    let cancelled = provider.client.cancel_charge(&charge("k1", 100, "pm_card_ok")).await;
    assert_eq!(cancelled, slow.await.unwrap());
    assert!(matches!(cancelled, Answer::Settled(ChargeOutcome::Succeeded { .. })));
}

#[tokio::test]
async fn a_charge_and_a_cancel_that_race_agree_on_the_outcome() {
    let provider = Provider::start().await;
    for round in 0..30 {
        let key = format!("k{round}");
        let request = charge(&key, 100, "pm_card_ok");
        let (charged, cancelled) =
            tokio::join!(provider.client.charge(&request), provider.client.cancel_charge(&request));
        assert_eq!(charged, cancelled, "{key}");
    }
}

#[tokio::test]
async fn a_caller_that_hangs_up_changes_nothing() {
    let provider = Provider::start().await;
    let (client, request) = (provider.client.clone(), charge("k1", 100, "pm_card_slow"));
    let caller = tokio::spawn(async move { client.charge(&request).await });
    eventually("the charge", async || provider.client.find_charge("k1").await.unwrap()).await;
    caller.abort();
    let outcome = eventually("its outcome", async || provider.found("k1").await.outcome).await;
    assert!(matches!(outcome, ChargeOutcome::Succeeded { .. }));
}

#[tokio::test]
async fn what_a_dead_process_left_pending_is_completed_at_the_next_start() {
    let provider = Provider::start().await;
    provider.running.stop().await;
    sqlx::query(
        "insert into provider.charge
            (provider_key, id, reference, amount, currency, payment_method, status)
        values ('k1', 'ch_1', 'ord_1', 100, 'USD', 'pm_card_lost_answer', 'pending'),
            ('k2', 'ch_2', 'ord_2', 100, 'USD', 'pm_card_declined', 'pending')",
    )
    .execute(&mut provider.database.connect().await)
    .await
    .unwrap();
    let provider = Provider::start_on(provider.database).await;
    assert!(matches!(provider.found("k1").await.outcome, Some(ChargeOutcome::Succeeded { .. })));
    assert!(matches!(provider.found("k2").await.outcome, Some(ChargeOutcome::Declined { .. })));
}

#[tokio::test]
async fn nonsense_is_refused_with_a_reason() {
    let provider = Provider::start().await;
    let mut wrong = Vec::new();
    for (member, value) in [
        ("provider_key", json!("")),
        ("provider_key", json!("k\u{0}1")),
        ("provider_key", json!("k".repeat(256))),
        ("reference", json!("")),
        ("amount", json!({ "amount": 0, "currency": "USD" })),
        ("amount", json!({ "amount": -1, "currency": "USD" })),
        ("amount", json!({ "amount": 1, "currency": "usd" })),
    ] {
        let mut body = charge_json("k1", 100, "pm_card_ok");
        body[member] = value;
        wrong.push((422, body));
    }
    wrong.push((400, json!({ "provider_key": "k1" })));
    wrong.push((400, json!("k1")));
    for (expected, body) in wrong {
        let (status, answer) = provider.post("/charges", &body).await;
        assert_eq!(status, expected, "{body} {answer}");
        assert!(serde_json::from_str::<Value>(&answer).unwrap()["message"].is_string());
    }
}
