//! What clients may do: from which pages they call, how slowly they send, how much they leave open.

use std::time::Duration;

use serde_json::json;

use crate::app::{Caller, Response, TestApp, basket, eventually, together};
use crate::raw;

const SHOP: &str = "https://shop.example.com";
const ORDERS: &str = "/v1/orders";

async fn preflight(
    caller: &Caller,
    path: &str,
    origin: &str,
    method: &str,
    headers: &str,
) -> Response {
    let request = caller
        .request("OPTIONS", path)
        .header("Origin", origin.as_bytes())
        .header("Access-Control-Request-Method", method.as_bytes())
        .header("Access-Control-Request-Headers", headers.as_bytes());
    request.send().await
}

fn listed(answer: &Response, header: &str) -> Vec<String> {
    let value = answer.header(header).unwrap_or_default().to_lowercase();
    value.split(',').map(|name| name.trim().to_owned()).collect()
}

#[tokio::test]
async fn a_page_of_a_listed_origin_may_call_the_api_and_read_what_matters() {
    let app = TestApp::with(|options| options.origins(&[SHOP])).await;
    let anybody = app.anonymous();
    let wanted = "authorization,content-type,idempotency-key,prefer";
    let allowed = preflight(&anybody, ORDERS, SHOP, "POST", wanted).await.expect(200);
    assert_eq!(allowed.header("access-control-allow-origin"), Some(SHOP));
    assert_eq!(allowed.header("access-control-allow-credentials"), None, "tokens only");
    for header in wanted.split(',') {
        assert!(listed(&allowed, "access-control-allow-headers").contains(&header.to_owned()));
    }
    assert!(listed(&allowed, "vary").contains(&"origin".to_owned()));
    let shopper = app.shopper().await;
    let order = || {
        let request = shopper.request("POST", ORDERS).key("K").json(&basket(&[("enamel-mug", 1)]));
        request.header("Origin", SHOP.as_bytes()).send()
    };
    let first = order().await.expect(201);
    let again = order().await;
    again.replays(&first);
    for answer in [&first, &again] {
        assert_eq!(answer.header("access-control-allow-origin"), Some(SHOP));
        for header in [
            "idempotency-replayed",
            "retry-after",
            "location",
            "content-digest",
            "idempotency-key-expires",
            "preference-applied",
            "x-request-id",
        ] {
            assert!(listed(answer, "access-control-expose-headers").contains(&header.to_owned()));
        }
    }
    app.finish().await;
}

#[tokio::test]
async fn a_page_of_another_origin_may_not() {
    let app = TestApp::with(|options| options.origins(&[SHOP])).await;
    let anybody = app.anonymous();
    for origin in [
        "https://evil.example",
        "null",
        "http://shop.example.com",
        "https://shop.example.com.evil.example",
        "https://SHOP.example.com",
        "https://shop.example.com:8443",
    ] {
        let refused = preflight(&anybody, ORDERS, origin, "POST", "idempotency-key").await;
        assert_eq!(refused.header("access-control-allow-origin"), None, "{origin}");
        refused.problem(403, "forbidden");
        let read = anybody.request("GET", "/v1/products").header("Origin", origin.as_bytes());
        let read = read.send().await.expect(200);
        assert_eq!(read.header("access-control-allow-origin"), None, "{origin}");
    }
    preflight(&anybody, ORDERS, SHOP, "PUT", "").await.problem(403, "forbidden");
    preflight(&anybody, ORDERS, SHOP, "POST", "cookie").await.problem(403, "forbidden");
    // Pages are for people: no other site reads them.
    for page in ["/", "/checkout", "/inspect"] {
        let shown = anybody.request("GET", page).header("Origin", SHOP.as_bytes()).send().await;
        assert_eq!(shown.header("access-control-allow-origin"), None, "{page}");
    }
    app.finish().await;
}

#[tokio::test]
async fn without_a_list_no_page_of_another_origin_may_call() {
    let app = TestApp::start().await;
    let anybody = app.anonymous();
    let refused = preflight(&anybody, ORDERS, SHOP, "POST", "idempotency-key").await;
    assert_eq!(refused.header("access-control-allow-origin"), None);
    refused.problem(405, "method_not_allowed");
    let read =
        anybody.request("GET", "/v1/products").header("Origin", SHOP.as_bytes()).send().await;
    assert_eq!(read.expect(200).header("access-control-allow-origin"), None);
    app.finish().await;
}

/// Sends a beginning and then a byte now and then, until the server hangs up; what it said.
async fn drip(address: std::net::SocketAddr, beginning: Vec<u8>, drops: &'static [u8]) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut hears, mut says) = socket.into_split();
    says.write_all(&beginning).await.unwrap();
    let dripping = tokio::spawn(async move {
        for drop in drops.iter().cycle() {
            if says.write_all(&[*drop]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut said = Vec::new();
    let heard = tokio::time::timeout(Duration::from_secs(20), hears.read_to_end(&mut said)).await;
    dripping.abort();
    heard.expect("the server hangs up").ok();
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn whoever_sends_a_byte_now_and_then_is_cut_off_and_holds_nobody_up() {
    let app = TestApp::with(|options| options.patience_ms(700).connections(4)).await;
    let shopper = app.shopper().await;
    let address = shopper.address;
    let token = format!("Authorization: Bearer {}", shopper.token.as_ref().unwrap());
    let head = |more: &str| {
        format!(
            "POST /v1/orders HTTP/1.1\r\nHost: shop\r\n{token}\r\nIdempotency-Key: K\r\n\
             Content-Type: application/json\r\n{more}"
        )
        .into_bytes()
    };
    let form = b"POST /checkout HTTP/1.1\r\nHost: shop\r\nContent-Length: 500\r\n\
        Content-Type: application/x-www-form-urlencoded\r\n\r\na=";
    let beginnings = [
        ("head", head("X-Slow: "), &b"x"[..]),
        ("body", head("Content-Length: 60000\r\n\r\n{"), b" "),
        ("chunks", head("Transfer-Encoding: chunked\r\n\r\n"), b"1\r\n \r\n"),
        ("form", form.to_vec(), b"x"),
    ];
    let slow = beginnings.into_iter().flat_map(move |(what, beginning, drops)| {
        (0..25).map(move |_| {
            let beginning = beginning.clone();
            async move { (what, drip(address, beginning, drops).await) }
        })
    });
    let slow = tokio::spawn(together(slow));
    // Meanwhile everybody else is served.
    for n in 0..10 {
        shopper.order(&format!("meanwhile-{n}")).await;
    }
    for (what, said) in slow.await.unwrap() {
        let status = said.split(' ').nth(1).unwrap_or_default();
        assert_eq!(status, "408", "{what}: {said}");
        assert!(said.to_lowercase().contains("connection: close"), "{what}: {said}");
        // A head that never came belongs to no address: nobody is there to write a document.
        assert_eq!(said.contains("request_incomplete"), what != "head", "{what}: {said}");
    }
    let unused = "select count(*) from idempotency_record where key = 'K'";
    assert_eq!(app.number(unused).await, 0, "nothing was claimed for a body that never came");
    shopper.order("K").await;
    app.finish().await;
}

#[tokio::test]
async fn a_body_that_takes_its_time_but_arrives_is_taken() {
    let app = TestApp::with(|options| options.patience_ms(10_000)).await;
    let shopper = app.shopper().await;
    let token = format!("Authorization: Bearer {}", shopper.token.as_ref().unwrap());
    let headers = [&*token, "Idempotency-Key: K", "Content-Type: application/json"];
    let body = basket(&[("enamel-mug", 1)]).to_string();
    let bytes = raw::request("POST /v1/orders", &headers, &body);
    let answer = raw::send_slowly(shopper.address, &bytes, 20, Duration::from_millis(10)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    app.finish().await;
}

#[tokio::test]
async fn an_account_may_have_only_so_many_keys_without_an_outcome() {
    let app = TestApp::with(|options| {
        options.unresolved_keys_max(2).lease_ms(1500).provider_timeout_ms(200)
    })
    .await;
    let (shopper, other) = (app.shopper().await, app.new_account().await);
    let mut orders = Vec::new();
    for n in 0..4 {
        orders.push(shopper.order(&format!("order-{n}")).await);
    }
    let paid = shopper.pay(&orders[3], "paid", "pm_card_ok").await.expect(201);
    app.provider(json!({ "latency_ms": 5000 })).await;
    for (n, order) in orders[..2].iter().enumerate() {
        let lost = shopper.pay(order, &format!("lost-{n}"), "pm_card_ok").await;
        lost.problem(409, "outcome_unknown");
    }
    app.provider(json!({ "latency_ms": 0 })).await;
    let open = "select count(*) from idempotency_record where state in ('processing', 'unknown')";
    assert_eq!(app.number(open).await, 2);
    let refused = shopper.pay(&orders[2], "third", "pm_card_ok").await;
    let refused = refused.problem(429, "rate_limited");
    assert_eq!(refused.json()["safe_new_key"], true);
    assert_eq!(app.captures(&orders[2]).await, 0, "nothing was sent");
    let path = format!("/v1/payments/{}/refunds", paid.text("id"));
    shopper.post(&path, "refund", &json!({})).await.problem(429, "rate_limited");
    assert_eq!(
        app.number("select count(*) from idempotency_record where key in ('third', 'refund')")
            .await,
        0
    );
    // Nobody else is concerned, and no key that is known is refused.
    other.pay(&other.order("theirs").await, "theirs-too", "pm_card_ok").await.expect(201);
    shopper.pay(&orders[3], "paid", "pm_card_ok").await.replays(&paid);
    // Until the provider is done with the first attempt its outcome stays unknown, and no 429 either.
    eventually("the retry finds it out", async || {
        let again = shopper.pay(&orders[0], "lost-0", "pm_card_ok").await;
        assert!(matches!(again.status, 201 | 409), "{again:?}");
        again.status == 201
    })
    .await;
    let again = shopper.pay(&orders[0], "lost-0", "pm_card_ok").await.expect(201);
    shopper.pay(&orders[0], "lost-0", "pm_card_ok").await.replays(&again);
    // With one outcome known there is room for one more.
    shopper.pay(&orders[2], "third", "pm_card_ok").await.expect(201);
    eventually("the other one settles", async || {
        app.recover().await;
        app.number(open).await == 0
    })
    .await;
    app.finish().await;
}

#[tokio::test]
async fn keys_claimed_side_by_side_stay_within_what_the_account_may_leave_open() {
    let app = TestApp::with(|options| {
        options.unresolved_keys_max(2).lease_ms(1500).provider_timeout_ms(200)
    })
    .await;
    let shopper = app.shopper().await;
    let mut orders = Vec::new();
    for n in 0..12 {
        orders.push(shopper.order(&format!("order-{n}")).await);
    }
    app.provider(json!({ "latency_ms": 5000 })).await;
    let presses = orders.into_iter().enumerate().map(|(n, order)| {
        let shopper = shopper.clone();
        async move { shopper.pay(&order, &format!("pay-{n}"), "pm_card_ok").await.status }
    });
    let mut told = together(presses).await;
    told.sort_unstable();
    assert_eq!(told[..2], [409, 409], "{told:?}");
    assert!(told[2..].iter().all(|status| *status == 429), "{told:?}");
    let open = "select count(*) from idempotency_record where state in ('processing', 'unknown')";
    assert_eq!(app.number(open).await, 2);
    app.finish().await;
}
