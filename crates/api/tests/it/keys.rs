//! The key: what is one, what is none, and that every route agrees.

use serde_json::json;

use crate::app::{Caller, TestApp, basket, together};
use crate::raw;

const ORDERS: &str = "/v1/orders";

async fn order_under(caller: &Caller, key: &[u8]) -> crate::app::Response {
    let body = basket(&[("enamel-mug", 1)]);
    caller.request("POST", ORDERS).header("Idempotency-Key", key).json(&body).send().await
}

fn random_key(length: usize) -> String {
    let charset = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..length).map(|_| char::from(charset[rand::random_range(0..charset.len())])).collect()
}

#[tokio::test]
async fn a_key_is_1_to_255_bytes_of_visible_ascii_and_nothing_is_cut_off() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let longest = random_key(255);
    let almost = format!("{}~", &longest[..254]);
    let odd = "!#$%&'()*+-./:<=>?@[]^_`{|}~";
    let keys = ["k", odd, &random_key(50), &random_key(51), &random_key(128), &longest, &almost];
    for key in keys {
        let first = order_under(&shopper, key.as_bytes()).await.expect(201);
        assert!(!first.is_replay(), "{key}");
        order_under(&shopper, key.as_bytes()).await.replays(&first);
    }
    let stored = app.number("select count(distinct key) from idempotency_record").await;
    assert_eq!(stored, i64::try_from(keys.len()).unwrap());
    app.finish().await;
}

#[tokio::test]
async fn anything_else_is_refused_and_has_no_effect() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let long: Vec<String> = [256, 257, 3000, 8000].map(random_key).into();
    let mut invalid: Vec<&[u8]> = vec![
        b"",
        b" ",
        b"\t",
        b"a b",
        b"a\tb",
        b"a,b",
        b"a;b",
        b"abc;v=1",
        b"\"abc\";v=1",
        b"\"abc",
        b"abc\"",
        b"\"",
        b"\"\"",
        b"\"a\"b\"",
        b"\"a\\\"b\"",
        b"a\\b",
        b"\" abc\"",
        b"\"a c\"",
        b"\"a\", \"b\"",
        "\u{e9}".as_bytes(),
        "\u{1f511}".as_bytes(),
        b"\xff",
        b"a\xa0",
    ];
    invalid.extend(long.iter().map(String::as_bytes));
    for key in invalid {
        let refused = order_under(&shopper, key).await.problem(400, "idempotency_key_invalid");
        let document = refused.json();
        assert_eq!(
            (&document["retryable"], &document["safe_new_key"]),
            (&json!(false), &json!(true))
        );
    }
    let multibyte = "\u{20ac}".repeat(255);
    order_under(&shopper, multibyte.as_bytes()).await.problem(400, "idempotency_key_invalid");
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 0);
    assert_eq!(app.number("select count(*) from idempotency_record").await, 0);
    app.finish().await;
}

#[tokio::test]
async fn quotes_and_white_space_around_a_key_are_not_part_of_it() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let first = order_under(&shopper, b"abc").await.expect(201);
    for form in [&b"\"abc\""[..], b" abc ", b"\t\"abc\" "] {
        order_under(&shopper, form).await.replays(&first);
    }
    for other in [&b"ABC"[..], b"abc.", b"'abc'", b"%61bc"] {
        assert_ne!(order_under(&shopper, other).await.expect(201).text("id"), first.text("id"));
    }
    let longest = random_key(255);
    let first = order_under(&shopper, longest.as_bytes()).await.expect(201);
    order_under(&shopper, format!("\"{longest}\"").as_bytes()).await.replays(&first);
    app.finish().await;
}

#[tokio::test]
async fn a_key_that_is_sent_twice_is_refused_even_with_one_value() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let token = format!("Authorization: Bearer {}", shopper.token.as_ref().unwrap());
    let body = basket(&[("enamel-mug", 1)]).to_string();
    for (one, other) in [("K", "K"), ("K", "L"), ("K", ""), ("K", "\"K\"")] {
        let (one, other) = (format!("Idempotency-Key: {one}"), format!("idempotency-key: {other}"));
        let headers = [&*token, "Content-Type: application/json", &one, &other];
        let bytes = raw::request("POST /v1/orders", &headers, &body);
        let refused = raw::send(shopper.address, &bytes).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body.contains("idempotency_key_invalid"), "{refused:?}");
    }
    let first = order_under(&shopper, b"K").await.expect(201);
    assert!(!first.is_replay(), "the doubled header left nothing behind");
    app.finish().await;
}

#[tokio::test]
async fn the_name_of_the_header_is_compared_without_case() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let first = order_under(&shopper, b"K").await.expect(201);
    let token = format!("Authorization: Bearer {}", shopper.token.as_ref().unwrap());
    let body = basket(&[("enamel-mug", 1)]).to_string();
    for line in ["idempotency-key: K", "IDEMPOTENCY-KEY:K", "iDEMPOTENCY-kEY:   K  "] {
        let headers = [&*token, "Content-Type: application/json", line];
        let again =
            raw::send(shopper.address, &raw::request("POST /v1/orders", &headers, &body)).await;
        assert_eq!((again.status, again.body.as_bytes()), (201, &*first.body), "{again:?}");
        assert!(again.head.contains("idempotency-replayed: true"), "{again:?}");
    }
    app.finish().await;
}

#[tokio::test]
async fn reading_ignores_a_key() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    for key in ["K", "another", "a,b", ""] {
        for path in
            [&*format!("/v1/orders/{order}"), "/v1/orders", "/v1/products", "/v1/accounts/me"]
        {
            let read = shopper.request("GET", path).key(key).send().await.expect(200);
            assert!(!read.is_replay() && read.header("idempotency-key-expires").is_none());
        }
        for method in ["HEAD", "OPTIONS"] {
            let asked = shopper.request(method, ORDERS).key(key).send().await;
            assert_ne!(asked.status, 400, "{method}: {asked:?}");
        }
    }
    app.finish().await;
}

#[tokio::test]
async fn what_is_refused_before_the_look_up_leaves_the_key_free() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = |caller: &Caller| caller.request("POST", ORDERS).key("K");
    let good = basket(&[("enamel-mug", 1)]);
    order(&app.anonymous()).json(&good).send().await.problem(401, "unauthenticated");
    order(&shopper.bearing("nonsense")).json(&good).send().await.problem(401, "unauthenticated");
    order(&shopper).body("application/json", "{").send().await.problem(400, "malformed_json");
    order(&shopper).send().await.problem(400, "malformed_json");
    let typed = order(&shopper).body("text/plain", good.to_string());
    typed.send().await.problem(415, "unsupported_media_type");
    let large = format!("{{\"note\":\"{}\"}}", "x".repeat(70_000));
    order(&shopper).body("application/json", large).send().await.problem(413, "body_too_large");
    let wrong = json!({ "lines": [{ "sku": "enamel-mug", "quantity": 0 }] });
    order(&shopper).json(&wrong).send().await.problem(422, "validation_failed");
    order(&shopper).json(&json!({ "lines": 1 })).send().await.problem(422, "validation_failed");
    let first = order(&shopper).json(&good).send().await.expect(201);
    assert!(!first.is_replay());
    app.finish().await;
}

#[tokio::test]
async fn the_checks_come_in_their_order() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let anonymous = app.anonymous();
    let bad_key = |caller: &Caller, path: &str| caller.request("POST", path).key("a,b");
    bad_key(&anonymous, "/v1/nowhere").send().await.problem(404, "not_found");
    let method = anonymous.request("PUT", ORDERS).key("a,b").send().await;
    method.problem(405, "method_not_allowed");
    bad_key(&anonymous, ORDERS)
        .body("text/plain", "{")
        .send()
        .await
        .problem(401, "unauthenticated");
    let keyed = bad_key(&shopper, ORDERS).body("text/plain", "x".repeat(70_000));
    keyed.send().await.problem(400, "idempotency_key_invalid");
    let missing = shopper.request("POST", ORDERS).body("text/plain", "{").send().await;
    missing.problem(400, "idempotency_key_missing");

    // A key that is known comes before ownership and validation.
    order_under(&shopper, b"K").await.expect(201);
    let invalid = shopper.post(ORDERS, "K", &json!({ "lines": [] })).await;
    invalid.problem(422, "idempotency_key_reused");
    let unknown = json!({ "lines": [{ "sku": "no-such-thing", "quantity": 1 }] });
    shopper.post(ORDERS, "K", &unknown).await.problem(422, "idempotency_key_reused");
    let stranger = app.new_account().await.order("S").await;
    shopper.pay(&stranger, "K", "pm_card_ok").await.problem(422, "idempotency_key_reused");
    shopper.pay(&stranger, "free", "no card").await.problem(404, "not_found");
    app.finish().await;
}

#[tokio::test]
async fn two_accounts_with_one_key_never_meet() {
    let app = TestApp::start().await;
    let (ada, bob) = (app.shopper().await, app.new_account().await);
    for round in 0..10 {
        let key = format!("K{round}");
        let orders = together([(&ada, 1), (&bob, 2)].map(|(caller, quantity)| {
            let (caller, key) = (caller.clone(), key.clone());
            async move { caller.post(ORDERS, &key, &basket(&[("enamel-mug", quantity)])).await }
        }))
        .await;
        let [first, second] = [0, 1].map(|at| orders[at].clone().expect(201));
        assert!(!first.is_replay() && !second.is_replay());
        assert_ne!(first.text("id"), second.text("id"));
    }
    let mine = ada.order("same").await;
    assert_ne!(bob.order("same").await, mine);
    bob.get(&format!("/v1/orders/{mine}")).await.problem(404, "not_found");
    app.finish().await;
}

#[tokio::test]
async fn one_key_on_another_route_is_refused_and_does_nothing_there() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let cancel = shopper.post_empty(&format!("/v1/orders/{order}/cancel"), "K").await;
    let document = cancel.problem(422, "idempotency_key_reused").json();
    assert!(document["differs"].as_array().unwrap().contains(&json!("path")), "{document}");
    let status = shopper.get(&format!("/v1/orders/{order}")).await.text("status");
    assert_eq!(status, "pending");
    app.finish().await;
}
