//! Refusals: the same document on every path, the right status, and a key that stays free.

use std::time::Duration;

use serde_json::json;

use crate::app::{TestApp, basket};
use crate::raw;

const ORDERS: &str = "/v1/orders";

#[tokio::test]
async fn a_document_that_is_not_unambiguous_json_is_malformed() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let order = r#"{"lines":[{"sku":"enamel-mug","quantity":1}],"note":"#;
    let noted: Vec<String> = [
        r#""\u0000""#,
        r#""a\u0000b""#,
        r#""\ud800""#,
        r#""\udfff\ud800""#,
        r#""\ud83dx""#,
        r#""\x41""#,
        "\"\u{1}\"",
        "9007199254740992",
        "-9007199254740992",
        "1e400",
        "1e16",
        "123456789012345678901234567890",
        "NaN",
        "Infinity",
        "01",
        "+1",
        ".5",
        "1.",
        "'a'",
        "tru",
    ]
    .map(|note| format!("{order}{note}}}"))
    .into();
    let mut documents: Vec<&[u8]> = vec![
        b"{",
        b"}",
        b"",
        b" ",
        b"nul",
        b"{\"lines\":[}",
        b"{\"lines\":[],}",
        b"{lines:[]}",
        b"{\"lines\":[]}{}",
        b"{\"lines\":[]} x",
        b"// c\n{}",
        b"\xef\xbb\xbf{}",
        b"{\"note\":\"\xff\"}",
        b"{\"note\":\"\xed\xa0\x80\"}",
        b"{\"\\u0000\":1}",
        b"[1,2",
        deep.as_bytes(),
    ];
    documents.extend(noted.iter().map(String::as_bytes));
    for document in documents {
        for path in [ORDERS, "/v1/orders/ord_1/payments", "/v1/accounts"] {
            let request = shopper.request("POST", path).key("K");
            let answer = request.body("application/json", document).send().await;
            let shown = String::from_utf8_lossy(&document[..document.len().min(60)]);
            assert_eq!(answer.status, 400, "{shown}: {answer:?}");
            answer.problem(400, "malformed_json");
        }
        let sign_in = shopper.request("POST", "/v1/sessions").body("application/json", document);
        sign_in.send().await.problem(400, "malformed_json");
    }
    shopper.order("K").await;
    app.finish().await;
}

#[tokio::test]
async fn a_body_may_have_64_kib_whether_its_length_is_declared_or_not() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let token = format!("Authorization: Bearer {}", shopper.token.as_ref().unwrap());
    let headers = [&*token, "Idempotency-Key: K", "Content-Type: application/json"];
    let padded = |length: usize| {
        let order = basket(&[("enamel-mug", 1)]).to_string();
        format!("{order}{}", " ".repeat(length - order.len()))
    };
    let too_large =
        shopper.request("POST", ORDERS).key("K").body("application/json", padded(65_537));
    too_large.send().await.problem(413, "body_too_large");
    for size in [7, 1000, 70_000] {
        let bytes = raw::chunked("POST /v1/orders", &headers, padded(65_537).as_bytes(), size);
        let refused = raw::send(shopper.address, &bytes).await;
        assert_eq!(refused.status, 413, "{refused:?}");
        assert!(refused.head.contains("application/problem+json"), "{refused:?}");
    }
    let endless = raw::chunked("POST /v1/orders", &headers, &vec![b' '; 20_000_000], 65_000);
    let refused = raw::send(shopper.address, &endless).await;
    assert!(refused.status == 413 || refused.status == 0, "{}", refused.status);
    let exact = shopper.request("POST", ORDERS).key("K").body("application/json", padded(65_536));
    let first = exact.send().await.expect(201);
    assert!(!first.is_replay(), "the refusals left the key free");
    let bytes = raw::chunked("POST /v1/orders", &headers, padded(65_536).as_bytes(), 1000);
    let again = raw::send(shopper.address, &bytes).await;
    assert_eq!(again.status, 201, "{again:?}");
    assert!(again.head.contains("idempotency-replayed: true"), "{again:?}");
    app.finish().await;
}

#[tokio::test]
async fn only_json_as_it_is_counts_as_json() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let body = basket(&[("enamel-mug", 1)]).to_string();
    for content_type in [
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/json2",
        "application/problem+json",
        "application/jsonx; charset=utf-8",
        "json",
        "",
        ";application/json",
    ] {
        let request = shopper.request("POST", ORDERS).key("K").body(content_type, body.clone());
        request.send().await.problem(415, "unsupported_media_type");
    }
    for encoding in ["gzip", "br", "identity, gzip"] {
        let request = shopper
            .request("POST", ORDERS)
            .key("K")
            .header("Content-Encoding", encoding.as_bytes());
        let request = request.body("application/json", body.clone());
        request.send().await.problem(415, "unsupported_media_type");
    }
    let token = format!("Authorization: Bearer {}", shopper.token.as_ref().unwrap());
    let untyped = raw::request("POST /v1/orders", &[&token, "Idempotency-Key: K"], &body);
    assert_eq!(raw::send(shopper.address, &untyped).await.status, 415);
    shopper.order("K").await;
    app.finish().await;
}

#[tokio::test]
async fn every_address_answers_with_a_problem() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    for path in [
        "/v1",
        "/v1/",
        "/v1/nowhere",
        "/v1/orders/",
        "/v1/orders/x/y/z",
        "/v1/orders/ord_1",
        "/v1/orders/ORD_00000000000000000000000000000000",
        "/v1/orders/%2e%2e",
        "/v1/orders/%00",
        "/v1/payments/ord_00000000000000000000000000000000",
        "/v1/payments/1",
        "/v1/products/no-such-thing",
        "/v1/products/%00",
        "/v1/products/%FF",
        "/v1/accounts/acc_1",
    ] {
        shopper.get(path).await.problem(404, "not_found");
    }
    for (method, path, allow) in [
        ("PUT", ORDERS, "GET, HEAD, POST"),
        ("DELETE", ORDERS, "GET, HEAD, POST"),
        ("PATCH", "/v1/orders/ord_1", "GET, HEAD"),
        ("POST", "/v1/products", "GET, HEAD"),
        ("GET", "/v1/sessions", "POST"),
        ("OPTIONS", "/v1/accounts", "POST"),
        ("PURGE", "/v1/orders/ord_1/payments", "POST"),
    ] {
        let refused = shopper.request(method, path).key("K").send().await;
        let refused = refused.problem(405, "method_not_allowed");
        let mut allowed: Vec<_> = refused.header("allow").unwrap().split(", ").collect();
        allowed.sort_unstable();
        assert_eq!(allowed.join(", "), allow, "{method} {path}");
    }
    for query in [
        "limit=0",
        "limit=101",
        "limit=-1",
        "limit=x",
        "limit=",
        "limit=1&limit=2",
        "limit=1.5",
        "limit=99999999999999999999",
        "cursor=x",
        "cursor=%00",
        "cursor=b3JkXzE",
        "offset=1",
    ] {
        shopper.get(&format!("/v1/orders?{query}")).await.problem(422, "validation_failed");
        shopper.get(&format!("/v1/products?{query}")).await.problem(422, "validation_failed");
    }
    let refused = app.anonymous().get("/v1/orders").await.problem(401, "unauthenticated");
    assert_eq!(refused.text("instance"), "/v1/orders");
    app.finish().await;
}

#[tokio::test]
async fn a_body_arrives_whole_however_it_is_sent() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let token = format!("Authorization: Bearer {}", shopper.token.as_ref().unwrap());
    let headers = [&*token, "Idempotency-Key: K", "Content-Type: application/json"];
    let body = basket(&[("enamel-mug", 1)]).to_string();
    let first = raw::send(shopper.address, &raw::request("POST /v1/orders", &headers, &body)).await;
    assert_eq!(first.status, 201, "{first:?}");
    let expecting = [&headers[..], &["Expect: 100-continue"]].concat();
    for bytes in [
        raw::chunked("POST /v1/orders", &headers, body.as_bytes(), 1),
        raw::chunked("POST /v1/orders", &headers, body.as_bytes(), 1000),
    ] {
        let again = raw::send(shopper.address, &bytes).await;
        assert_eq!(again.status, 201, "{again:?}");
        assert!(again.head.contains("idempotency-replayed: true"), "{again:?}");
    }
    let slow = raw::request("POST /v1/orders", &headers, &body);
    let again = raw::send_slowly(shopper.address, &slow, 40, Duration::from_millis(5)).await;
    assert_eq!((again.status, again.body), (201, first.body.clone()));
    let continued =
        raw::send(shopper.address, &raw::request("POST /v1/orders", &expecting, &body)).await;
    assert!(continued.body.ends_with(&first.body), "{continued:?}");
    app.finish().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_has_no_effect() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let token = format!("Authorization: Bearer {}", shopper.token.as_ref().unwrap());
    let headers = [&*token, "Idempotency-Key: K", "Content-Type: application/json"];
    let bytes =
        raw::request("POST /v1/orders", &headers, &basket(&[("enamel-mug", 1)]).to_string());
    for missing in [1, 10, 40] {
        let part = &bytes[..bytes.len() - missing];
        raw::send_and_reset(shopper.address, part, Duration::from_millis(30)).await;
    }
    assert_eq!(app.number("select count(*) from idempotency_record").await, 0);
    shopper.order("K").await;
    app.finish().await;
}

#[tokio::test]
async fn whoever_still_listens_is_told_that_the_body_broke_off() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let token = format!("Authorization: Bearer {}", shopper.token.as_ref().unwrap());
    let headers = [&*token, "Idempotency-Key: K", "Content-Type: application/json"];
    let body = basket(&[("enamel-mug", 1)]).to_string();
    let declared = raw::request("POST /v1/orders", &headers, &body);
    let chunks = raw::chunked("POST /v1/orders", &headers, body.as_bytes(), 10);
    for bytes in [declared, chunks] {
        let told = raw::send_and_hang_up(shopper.address, &bytes[..bytes.len() - 12]).await;
        assert_eq!(told.status, 408, "{told:?}");
        assert!(told.head.contains("connection: close"), "{told:?}");
        assert!(told.body.contains("\"code\":\"request_incomplete\""), "{told:?}");
        assert!(told.body.contains("\"retryable\":true"), "{told:?}");
    }
    assert_eq!(app.number("select count(*) from idempotency_record").await, 0);
    shopper.order("K").await;
    app.finish().await;
}

#[tokio::test]
async fn who_asks_and_what_is_sent_is_said_once() {
    let app = TestApp::start().await;
    let (shopper, other) = (app.shopper().await, app.new_account().await);
    let body = basket(&[("enamel-mug", 1)]).to_string();
    let bearer = |caller: &crate::app::Caller| format!("Bearer {}", caller.token.as_ref().unwrap());
    for second in [bearer(&shopper), bearer(&other), "Bearer x".to_owned(), String::new()] {
        let request = shopper.request("POST", ORDERS).key("K");
        let request = request.header("Authorization", second.as_bytes());
        let refused = request.body("application/json", body.clone()).send().await;
        refused.problem(401, "unauthenticated");
        let read = shopper.request("GET", ORDERS).header("Authorization", second.as_bytes());
        read.send().await.problem(401, "unauthenticated");
    }
    for (path, second) in [
        (ORDERS, "application/json"),
        (ORDERS, "text/plain"),
        ("/v1/sessions", "application/json"),
        ("/v1/accounts", "application/json"),
    ] {
        let request = shopper.request("POST", path).key("K");
        let request = request.header("Content-Type", second.as_bytes());
        let refused = request.body("application/json", body.clone()).send().await;
        refused.problem(415, "unsupported_media_type");
    }
    let form = shopper.request("POST", "/theme");
    let form = form.header("Content-Type", b"application/x-www-form-urlencoded");
    let form = form.body("application/x-www-form-urlencoded", "theme=dark").send().await;
    assert_eq!(form.status, 415, "{form:?}");
    assert_eq!(app.number("select count(*) from idempotency_record").await, 0);
    app.finish().await;
}

#[tokio::test]
async fn a_problem_says_whether_to_send_again_and_whether_a_new_key_is_safe() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    for (answer, retryable, safe_new_key) in [
        (shopper.post(ORDERS, "1", &json!({})).await, false, true),
        (shopper.post(ORDERS, "2", &basket(&[("station-clock", 1)])).await, false, true),
        (shopper.get("/v1/nowhere").await, false, true),
        (app.anonymous().get(ORDERS).await, false, true),
    ] {
        let document = answer.json();
        assert_eq!(document["retryable"], retryable, "{document}");
        assert_eq!(document["safe_new_key"], safe_new_key, "{document}");
        assert_eq!(document["type"], format!("/problems/{}", document["code"].as_str().unwrap()));
    }
    app.finish().await;
}
