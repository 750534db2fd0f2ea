//! Who is believed, and what is not understood.

use api::webhooks::signature::{self, Secret};
use serde_json::{Value, json};

use super::{Sender, event};

#[tokio::test]
async fn strangers_are_turned_away_before_anything_is_parsed() {
    let sender = Sender::new().await;
    let (body, now) = (&b"not even JSON"[..], sender.now());
    let good = |at: i64| signature::sign(&sender.secret, "e1", at, body);
    let other = signature::sign(&Secret::new(vec![9; 32]), "e1", now, body);
    for (timestamp, signature) in [
        (now.to_string(), other),
        (now.to_string(), "v1,".to_owned()),
        (now.to_string(), String::new()),
        ((now - 360).to_string(), good(now - 360)),
        ((now - 86_400).to_string(), good(now - 86_400)),
        ((now + 600).to_string(), good(now + 600)),
        ("abc".to_owned(), good(now)),
        ("-1".to_owned(), good(-1)),
        (i64::MAX.to_string(), good(i64::MAX)),
        (i64::MIN.to_string(), good(i64::MIN)),
    ] {
        let refused = sender.send_signed("e1", &timestamp, &signature, body).await;
        refused.problem(401, "unauthenticated");
    }
    let nobody = sender.app.anonymous();
    let bare = nobody.request("POST", "/v1/webhooks/provider").body("application/json", body);
    bare.send().await.problem(401, "unauthenticated");
    let doubled = nobody
        .request("POST", "/v1/webhooks/provider")
        .header("webhook-id", b"e1")
        .header("webhook-id", b"e1")
        .header("webhook-timestamp", now.to_string().as_bytes())
        .header("webhook-signature", good(now).as_bytes())
        .body("application/json", body);
    doubled.send().await.problem(401, "unauthenticated");
    sender.send_bytes("e1", body).await.problem(400, "malformed_json");
    sender.send_bytes("e1", &vec![b' '; 65_537]).await.problem(413, "body_too_large");
    assert_eq!(sender.app.number("select count(*) from provider_event").await, 0);
    sender.finish().await;
}

#[tokio::test]
async fn the_bytes_count_and_not_their_meaning() {
    let sender = Sender::new().await;
    let bodies: [&[u8]; 4] = [
        b"{ \"type\" :\t\"x.y\" ,\r\n \"data\":{ } }\n\n",
        b"{\"data\":{\"b\":1.0,\"a\":1e2},\"type\":\"x.y\"}",
        b"{\"type\":\"x.y\",\"data\":{\"url\":\"https:\\/\\/a\\/b\"}}",
        "{\"type\":\"x.y\",\"data\":{\"name\":\"Zoë\"},\"more\":[null]}".as_bytes(),
    ];
    for (number, body) in bodies.into_iter().enumerate() {
        let taken = sender.send_bytes(&format!("e{number}"), body).await.expect(200);
        assert_eq!(taken.text("outcome"), "ignored: unknown type");
        let mut changed = body.to_vec();
        *changed.last_mut().unwrap() ^= 1;
        let signature = signature::sign(&sender.secret, "e", sender.now(), body);
        let now = sender.now().to_string();
        sender.send_signed("e", &now, &signature, &changed).await.problem(401, "unauthenticated");
    }
    sender.finish().await;
}

#[tokio::test]
async fn what_is_not_known_is_ignored_and_remembered() {
    let sender = Sender::new().await;
    for (id, event) in [
        ("e1", json!({ "type": "payout.paid", "data": { "id": "po_1" } })),
        ("e2", json!({ "type": "charge.disputed", "data": {} })),
        ("e3", json!({ "type": "", "data": null })),
        ("e4", json!({})),
    ] {
        assert!(sender.outcome(id, &event).await.starts_with("ignored"), "{event}");
        assert_eq!(sender.outcome(id, &event).await, "repeated");
    }
    let unreadable = json!({ "type": "charge.succeeded", "data": {} });
    assert!(sender.outcome("e5", &unreadable).await.starts_with("anomaly"));
    assert_eq!(sender.app.number("select count(*) from provider_event").await, 5);
    sender.finish().await;
}

#[tokio::test]
async fn an_event_that_does_not_fit_our_payment_is_an_anomaly_and_no_payment() {
    let sender = Sender::new().await;
    let shopper = sender.app.new_account().await;
    let order = shopper.order("order").await;
    shopper.pay(&order, "pay", "pm_card_declined").await.problem(402, "card_declined");
    let charge = sender.charge(&order).await;
    let changed = |member: &str, value: Value| {
        let mut charge = charge.clone();
        charge[member] = value;
        event("succeeded", &charge)
    };
    let one_cent = json!({ "amount": 1, "currency": "USD" });
    let other_currency = json!({ "amount": charge["amount"]["amount"], "currency": "EUR" });
    let strange = [
        ("amount", one_cent, "anomaly: amount or currency differs"),
        ("amount", other_currency, "anomaly: amount or currency differs"),
        ("amount", json!(null), "anomaly: amount or currency differs"),
        ("amount", json!({ "amount": 1, "currency": "XXX" }), "anomaly: the charge cannot be read"),
        ("reference", json!("ord_other"), "anomaly: order differs"),
        ("id", json!("ch_other"), "anomaly: charge differs"),
        ("id", charge["id"].clone(), "anomaly: charged after the end"),
    ];
    for (number, (member, value, expected)) in strange.into_iter().enumerate() {
        let outcome = sender.outcome(&format!("e{number}"), &changed(member, value)).await;
        assert_eq!(outcome, expected, "{member}");
    }
    let mut stranger = changed("provider_key", json!("pk_other"));
    stranger["data"]["reference"] = json!("ord_other");
    assert_eq!(sender.outcome("stranger", &stranger).await, "anomaly: no such payment");
    assert_eq!(sender.order_status(&order).await, "pending");
    sender.finish().await;
}

#[tokio::test]
async fn an_event_that_no_column_can_hold_is_refused_and_not_tried_for_ever() {
    let sender = Sender::new().await;
    for body in [&br#"{"type":"x.y","data":{"name":"\u0000"}}"#[..], br#"{"type":"\ud800"}"#] {
        sender.send_bytes("e1", body).await.problem(400, "malformed_json");
    }
    assert_eq!(sender.app.number("select count(*) from provider_event").await, 0);
    sender.finish().await;
}
