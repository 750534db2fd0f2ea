//! The provider's books and its switches for tests.

use std::time::{Duration, Instant};

use api::provider::client::Answer;
use api::provider::mock;
use serde_json::json;

use super::{Provider, TestDatabase, charge, free_listener, refund_of};

#[tokio::test]
async fn the_books_are_read_page_by_page_without_a_gap() {
    let provider = Provider::start().await;
    for number in 0..5 {
        let charged = provider.charged(&format!("k{number}"), 100, "pm_card_ok").await;
        provider.client.refund(&refund_of(&charged, &format!("r{number}"), 10)).await;
    }
    for noun in ["charges", "refunds"] {
        let (mut after, mut ids) = (String::new(), Vec::new());
        loop {
            let page = provider.get(&format!("/{noun}?limit=2{after}")).await;
            let entries = page["data"].as_array().unwrap().clone();
            ids.extend(entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!(ids.len(), 5, "{noun}");
        assert!(ids.is_sorted_by(|a, b| a < b), "{noun}");
    }
    assert_eq!(provider.client.list_charges(None).await.unwrap().entries.len(), 5);
    assert_eq!(provider.client.list_refunds(None).await.unwrap().entries.len(), 5);
}

#[tokio::test]
async fn two_providers_that_start_together_share_one_schema() {
    let database = TestDatabase::empty().await;
    let starting: Vec<_> = (0..4)
        .map(|_| tokio::spawn(mock::serve(Provider::quiet(&database), free_listener())))
        .collect();
    for provider in starting {
        provider.await.unwrap().unwrap().stop().await;
    }
    Provider::start_on(database).await.charged("k1", 100, "pm_card_ok").await;
}

#[tokio::test]
async fn while_down_nothing_is_recorded_and_every_attempt_is_logged() {
    let provider = Provider::start().await;
    provider.control(json!({ "down": true })).await;
    let request = charge("k1", 100, "pm_card_ok");
    for _ in 0..3 {
        let answer = provider.client.charge(&request).await;
        assert!(matches!(answer, Answer::NotSent { .. }), "{answer:?}");
    }
    assert!(provider.client.find_charge("k1").await.is_err());
    provider.control(json!({ "down": false })).await;
    assert_eq!(provider.client.find_charge("k1").await, Ok(None));
    provider.charged("k1", 100, "pm_card_ok").await;
    let log = provider.get("/_log?provider_key=k1").await;
    let posts = log["data"].as_array().unwrap().iter().filter(|call| call["method"] == "POST");
    assert_eq!(posts.count(), 4);
}

#[tokio::test]
async fn latency_lies_between_the_charge_and_its_answer() {
    let provider = Provider::start().await;
    provider.control(json!({ "latency_ms": 1500 })).await;
    let started = Instant::now();
    let lost = provider.impatient().charge(&charge("k1", 100, "pm_card_ok")).await;
    assert!(matches!(lost, Answer::Lost { .. }), "{lost:?}");
    provider.control(json!({ "latency_ms": 0 })).await;
    let made = super::eventually("the charge", async || provider.found("k1").await.outcome).await;
    assert!(made.charge_id().is_some());
    assert!(started.elapsed() >= Duration::from_millis(1500));
}
