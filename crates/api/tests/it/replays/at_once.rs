//! Many keys, or many requests under one key, that a server meets at once after it has forgotten them.

use serde_json::json;

use crate::app::{Caller, TestApp, together};

/// Keys that share a statement are told apart: by account, by key, and by whether they are known.
#[tokio::test]
async fn many_who_repeat_at_once_each_get_their_own_answer() {
    const KEYS: u32 = 40;
    let mut app = TestApp::start().await;
    let callers = [app.shopper().await, app.new_account().await];
    let ask = |caller: &Caller, number: u32, note: &str| {
        let (caller, note) = (caller.clone(), format!("{} {note}", caller.account().id));
        async move {
            let body = json!({ "lines": [{ "sku": "enamel-mug", "quantity": 1 }], "note": note });
            caller.post("/v1/orders", &format!("key-{number}"), &body).await
        }
    };
    let mut all = Vec::new();
    for caller in &callers {
        for number in 0..KEYS {
            let first = ask(caller, number, &number.to_string()).await.expect(201);
            all.push((caller, number, first));
        }
    }
    app.restart().await;
    let again =
        together(all.iter().map(|(caller, number, _)| ask(caller, *number, &number.to_string())));
    let other = together(
        callers.iter().flat_map(|caller| (0..KEYS).map(|number| ask(caller, number, "other"))),
    );
    let fresh = together((KEYS..KEYS + 10).map(|number| ask(&callers[0], number, "fresh")));
    let (again, other, fresh) = tokio::join!(again, other, fresh);
    for (again, (_, _, first)) in again.iter().zip(&all) {
        again.replays(first);
    }
    for other in other {
        other.problem(422, "idempotency_key_reused");
    }
    for fresh in fresh {
        assert!(!fresh.expect(201).is_replay());
    }
    assert_eq!(app.number(r#"select count(*) from "order""#).await, i64::from(2 * KEYS + 10));
    app.finish().await;
}

/// A server that has forgotten a key meets a wrong request under it and the right one at once: the
/// record decides which is which, not who came first.
#[tokio::test]
async fn a_retry_beside_a_wrong_request_gets_its_answer() {
    const KEYS: u32 = 40;
    let mut app = TestApp::start().await;
    let shopper = app.shopper().await;
    let ask = |number: u32, note: &str| {
        let (shopper, note) = (shopper.clone(), note.to_owned());
        async move {
            let body = json!({ "lines": [{ "sku": "enamel-mug", "quantity": 1 }], "note": note });
            shopper.post("/v1/orders", &format!("key-{number}"), &body).await
        }
    };
    let mut first = Vec::new();
    for number in 0..KEYS {
        first.push(ask(number, "right").await.expect(201));
    }
    app.restart().await;
    let all = (0..KEYS).flat_map(|number| ["wrong", "right"].map(|note| ask(number, note)));
    for (number, answer) in together(all).await.into_iter().enumerate() {
        match number % 2 {
            0 => drop(answer.problem(422, "idempotency_key_reused")),
            _ => answer.replays(&first[number / 2]),
        }
    }
    app.finish().await;
}
