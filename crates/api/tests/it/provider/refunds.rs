//! Refunds: never more than was charged, and as lossy as the card they go back to.

use api::provider::client::Answer;
use domain::{RefundOutcome, RefundStatus};
use serde_json::{Value, json};

use super::{Provider, charge, refund_of, usd};

fn status(answer: &Answer<RefundOutcome>) -> RefundStatus {
    match answer {
        Answer::Settled(outcome) => outcome.status(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_same_key_refunds_once() {
    let provider = Provider::start().await;
    let charged = provider.charged("k1", 100, "pm_card_ok").await;
    let request = refund_of(&charged, "r1", 60);
    let first = provider.client.refund(&request).await;
    assert_eq!(status(&first), RefundStatus::Succeeded);
    assert_eq!(provider.client.refund(&request).await, first);
    assert_eq!(provider.found("k1").await.refunded, Some(usd(60)));
    let found = provider.client.find_refund("r1").await.unwrap().unwrap();
    assert_eq!(found.charge_id, Some(provider.found("k1").await.id));
    assert_eq!(found.outcome.map(Answer::Settled), Some(first));
}

#[tokio::test]
async fn two_refunds_at_once_never_exceed_the_charge() {
    let provider = Provider::start().await;
    for round in 0..20 {
        let charged = provider.charged(&format!("k{round}"), 100, "pm_card_ok").await;
        let one = refund_of(&charged, &format!("a{round}"), 60);
        let other = refund_of(&charged, &format!("b{round}"), 60);
        let (one, other) =
            tokio::join!(provider.client.refund(&one), provider.client.refund(&other));
        let mut statuses = [status(&one), status(&other)];
        statuses.sort_unstable();
        assert_eq!(statuses, [RefundStatus::Succeeded, RefundStatus::Failed]);
        assert_eq!(provider.found(&charged.provider_key).await.refunded, Some(usd(60)));
    }
}

#[tokio::test]
async fn a_refund_that_failed_fails_again_with_the_same_reason() {
    let provider = Provider::start().await;
    let charged = provider.charged("k1", 100, "pm_card_ok").await;
    let body = json!(refund_of(&charged, "r1", 101));
    let (first, answer) = provider.post("/refunds", &body).await;
    let (second, again) = provider.post("/refunds", &body).await;
    assert_eq!((first, second), (409, 409));
    assert_eq!(answer, again);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        (&answer["code"], &answer["refund"]["status"]),
        (&json!("refund_too_large"), &json!("failed"))
    );
    assert_eq!(provider.found("k1").await.refunded, Some(usd(0)));
}

#[tokio::test]
async fn only_a_charge_that_succeeded_can_be_refunded_and_in_its_own_currency() {
    let provider = Provider::start().await;
    let declined = charge("k1", 100, "pm_card_declined");
    provider.client.charge(&declined).await;
    let charged = provider.charged("k2", 100, "pm_card_ok").await;
    let mut euros = json!(refund_of(&charged, "r3", 50));
    euros["amount"]["currency"] = json!("EUR");
    for (body, code) in [
        (json!(refund_of(&declined, "r1", 50)), "charge_not_refundable"),
        (json!(refund_of(&charge("k9", 1, "pm_card_ok"), "r2", 50)), "no_such_charge"),
        (euros, "currency_mismatch"),
    ] {
        let (status, answer) = provider.post("/refunds", &body).await;
        assert_eq!(status, 409);
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap()["code"], code);
    }
}

#[tokio::test]
async fn a_refund_answer_is_lost_the_way_the_card_loses_it() {
    let provider = Provider::start().await;
    for card in ["pm_card_lost_answer", "pm_card_reset", "pm_card_key_in_use"] {
        let request = charge(card, 100, card);
        provider.impatient().charge(&request).await;
        let refund = refund_of(&request, &format!("r_{card}"), 40);
        let first = provider.impatient().refund(&refund).await;
        match card {
            "pm_card_key_in_use" => assert!(matches!(first, Answer::Pending { .. }), "{first:?}"),
            _ => assert!(matches!(first, Answer::Lost { .. }), "{card} {first:?}"),
        }
        assert_eq!(status(&provider.client.refund(&refund).await), RefundStatus::Succeeded);
        assert_eq!(provider.found(card).await.refunded, Some(usd(40)));
    }
}

#[tokio::test]
async fn a_refund_cancelled_before_it_came_has_failed_for_ever() {
    let provider = Provider::start().await;
    let charged = provider.charged("k1", 100, "pm_card_ok").await;
    assert_eq!(
        status(&provider.client.cancel_refund(&refund_of(&charged, "r1", 40)).await),
        RefundStatus::Failed
    );
    let refused = provider.client.refund(&refund_of(&charged, "r1", 40)).await;
    assert_eq!(status(&refused), RefundStatus::Failed);
    assert_eq!(provider.found("k1").await.refunded, Some(usd(0)));
}

#[tokio::test]
async fn a_refund_that_was_made_keeps_its_outcome_when_it_is_cancelled() {
    let provider = Provider::start().await;
    let charged = provider.charged("k1", 100, "pm_card_ok").await;
    let made = provider.client.refund(&refund_of(&charged, "r1", 40)).await;
    assert_eq!(provider.client.cancel_refund(&refund_of(&charged, "r1", 40)).await, made);
}
