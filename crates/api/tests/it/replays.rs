//! The same answer again: byte for byte, whatever was lost in between.

mod at_once;

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::app::{Caller, Response, Server, TestApp, basket};

/// A request and its first answer.
struct Told {
    caller: Caller,
    path: String,
    key: &'static str,
    body: Option<Value>,
    first: Response,
}

impl Told {
    async fn new(caller: &Caller, path: &str, key: &'static str, body: Option<Value>) -> Self {
        let first = ask(caller, path, key, body.as_ref()).await;
        assert!(!first.is_replay(), "{first:?}");
        Self { caller: caller.clone(), path: path.to_owned(), key, body, first }
    }

    async fn again(&self) -> Response {
        ask(&self.caller, &self.path, self.key, self.body.as_ref()).await
    }

    async fn again_on(&self, server: &Server) -> Response {
        ask(&self.caller.on(server), &self.path, self.key, self.body.as_ref()).await
    }
}

async fn ask(caller: &Caller, path: &str, key: &str, body: Option<&Value>) -> Response {
    match body {
        Some(body) => caller.post(path, key, body).await,
        None => caller.post_empty(path, key).await,
    }
}

/// One of each kind of answer that is stored.
async fn all_kinds(app: &TestApp) -> Vec<Told> {
    let shopper = app.shopper().await;
    let pay = |order: &str| format!("/v1/orders/{order}/payments");
    let card = |name: &str| Some(json!({ "payment_method": name }));
    let told = async |path: &str, key: &'static str, body: Option<Value>, status: u16| {
        let told = Told::new(&shopper, path, key, body).await;
        assert_eq!(told.first.status, status, "{:?}", told.first);
        told
    };
    let [paid, declined, poor, gone] = [
        shopper.order("o1").await,
        shopper.order("o2").await,
        shopper.order("o3").await,
        shopper.order("o4").await,
    ];
    let cancel = format!("/v1/orders/{gone}/cancel");
    let account = json!({ "email": "new@payonce.test", "password": "a password of some length" });
    let expected = json!({
        "lines": [{ "sku": "enamel-mug", "quantity": 1 }],
        "expected_total": { "amount": 1, "currency": "USD" },
    });
    vec![
        told("/v1/orders", "ordered", Some(basket(&[("enamel-mug", 3)])), 201).await,
        told("/v1/orders", "sold-out", Some(basket(&[("station-clock", 1)])), 409).await,
        told("/v1/orders", "other-price", Some(expected), 409).await,
        told(&pay(&paid), "paid", card("pm_card_ok"), 201).await,
        told(&pay(&paid), "paid-before", card("pm_card_ok"), 409).await,
        told(&pay(&declined), "declined", card("pm_card_declined"), 402).await,
        told(&pay(&poor), "poor", card("pm_card_insufficient_funds"), 402).await,
        told(&cancel, "cancelled", None, 200).await,
        told(&cancel, "cancelled-before", None, 409).await,
        told("/v1/accounts", "account", Some(account.clone()), 201).await,
        told("/v1/accounts", "e-mail-taken", Some(account), 409).await,
    ]
}

#[tokio::test]
async fn every_kind_of_answer_is_given_again_here_there_and_after_a_restart() {
    let mut app = TestApp::start().await;
    let all = all_kinds(&app).await;
    let captures = app.number("select count(*) from provider.charge").await;
    for told in &all {
        told.again().await.replays(&told.first);
        told.again().await.replays(&told.first);
    }
    let second = app.second_server().await;
    for told in &all {
        told.again_on(&second).await.replays(&told.first);
    }
    second.stop().await;
    app.restart().await;
    for told in &all {
        told.again().await.replays(&told.first);
    }
    assert_eq!(app.number("select count(*) from provider.charge").await, captures);
    app.finish().await;
}

#[tokio::test]
async fn an_answer_proves_its_bytes_and_says_how_long_it_is_kept() {
    let app = TestApp::start().await;
    for told in all_kinds(&app).await {
        for answer in [&told.first, &told.again().await] {
            let digest = STANDARD.encode(Sha256::digest(&answer.body));
            let digest = format!("sha-256=:{digest}:");
            assert_eq!(answer.header("content-digest"), Some(&*digest), "{answer:?}");
            let expires = answer.header("idempotency-key-expires").unwrap();
            assert!(expires.ends_with('Z') && expires.contains('T'), "{expires}");
        }
    }
    app.finish().await;
}

#[tokio::test]
async fn only_what_belongs_to_the_answer_is_given_again() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let request = |id: &'static [u8]| {
        let request = shopper.request("POST", "/v1/orders").key("K");
        request
            .json(&basket(&[("enamel-mug", 1)]))
            .header("Accept-Encoding", b"gzip, br")
            .header("x-request-id", id)
    };
    let first = request(b"one").send().await.expect(201);
    let again = request(b"two").send().await;
    again.replays(&first);
    assert_ne!(first.header("x-request-id"), again.header("x-request-id"));
    for name in ["set-cookie", "www-authenticate", "content-encoding", "retry-after"] {
        assert_eq!(again.header(name), None, "{again:?}");
    }
    let headers: Vec<u8> = {
        let mut conn = app.database.connect().await;
        let query = "select headers from idempotency_record where key = 'K'";
        sqlx::query_scalar(query).fetch_one(&mut conn).await.unwrap()
    };
    let stored = String::from_utf8_lossy(&headers).to_lowercase();
    assert!(!stored.contains("request-id") && !stored.contains("expires"), "{stored}");
    app.finish().await;
}

#[tokio::test]
async fn an_answer_stays_as_it_was_when_its_order_does_not() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let body = basket(&[("enamel-mug", 1)]);
    let first = shopper.post("/v1/orders", "K", &body).await.expect(201);
    let order = first.text("id");
    shopper.post_empty(&format!("/v1/orders/{order}/cancel"), "C").await.expect(200);
    app.execute("update product set price = price + 1 where sku = 'enamel-mug'").await;
    let again = shopper.post("/v1/orders", "K", &body).await;
    again.replays(&first);
    assert_eq!(again.text("status"), "pending");
    let now = shopper.get(&format!("/v1/orders/{order}")).await.text("status");
    assert_eq!(now, "cancelled");
    app.finish().await;
}

#[tokio::test]
async fn a_lost_redis_loses_nothing() {
    let mut app = TestApp::with(|options| options.redis()).await;
    let all = all_kinds(&app).await;
    let mut kept = Vec::new();
    // A Redis that is slow for once, as on a busy machine, is left alone for a second.
    for _ in 0..5 {
        app.restart().await;
        for told in &all {
            told.again().await.replays(&told.first);
        }
        kept = app.redis.as_ref().unwrap().dump().await;
        if kept.len() == all.len() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(kept.len(), all.len(), "the first replay of a reply fills the cache");
    for (name, _, life) in &kept {
        assert!(*life > 0 && *life <= 24 * 3_600_000, "{name} lives {life} ms");
        assert!(name.starts_with("payonce:reply:"), "{name}");
        assert!(all.iter().all(|told| !name.contains(told.key)), "{name}");
    }
    // Out of the cache, which now has them all.
    app.restart().await;
    for told in &all {
        told.again().await.replays(&told.first);
    }
    app.redis.as_ref().unwrap().flush().await;
    app.restart().await;
    for told in &all {
        told.again().await.replays(&told.first);
    }
    app.redis.as_mut().unwrap().stop();
    app.restart().await;
    for told in &all {
        told.again().await.replays(&told.first);
    }
    app.redis.as_mut().unwrap().start_again().await;
    app.finish().await;
}

#[tokio::test]
async fn a_redis_that_went_away_is_used_again_when_it_is_back() {
    let mut app = TestApp::with(|options| options.redis()).await;
    app.redis.as_mut().unwrap().stop();
    let shopper = app.shopper().await;
    shopper.order("before").await;
    app.redis.as_mut().unwrap().start_again().await;
    let second = app.second_server().await;
    let elsewhere = shopper.on(&second);
    crate::app::eventually("the cache is filled again", async || {
        let key = format!("{:016x}", rand::random::<u64>());
        let first = shopper.post("/v1/orders", &key, &basket(&[("enamel-mug", 1)])).await;
        let again = elsewhere.post("/v1/orders", &key, &basket(&[("enamel-mug", 1)])).await;
        again.replays(&first);
        !app.redis.as_ref().unwrap().dump().await.is_empty()
    })
    .await;
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn a_redis_that_hangs_costs_a_moment_and_nothing_else() {
    let mut app = TestApp::with(|options| options.redis()).await;
    let all = all_kinds(&app).await;
    app.restart().await;
    app.redis.as_ref().unwrap().freeze();
    let started = Instant::now();
    for told in &all {
        told.again().await.replays(&told.first);
    }
    // Eleven replays; without a limit each would hang until its client gives up.
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let shopper = app.shopper().await;
    let order = shopper.order("while-frozen").await;
    let (one, other) = tokio::join!(
        shopper.pay(&order, "P", "pm_card_ok"),
        shopper.pay(&order, "P", "pm_card_ok")
    );
    one.expect(201).equals(&other);
    assert_eq!(app.captures(&order).await, 1);
    app.redis.as_ref().unwrap().thaw();
    app.finish().await;
}

#[tokio::test]
async fn a_wrong_password_for_redis_is_as_good_as_no_redis() {
    let mut app = TestApp::with(|options| options.redis_with_another_password()).await;
    let all = all_kinds(&app).await;
    app.restart().await;
    for told in &all {
        told.again().await.replays(&told.first);
    }
    assert!(app.redis.as_ref().unwrap().dump().await.is_empty());
    app.finish().await;
}

/// What a failover of Redis leaves behind when clients still know the old address.
#[tokio::test]
async fn a_redis_that_takes_no_writes_is_as_good_as_no_redis() {
    let mut app = TestApp::with(|options| options.redis()).await;
    let all = all_kinds(&app).await;
    app.redis.as_ref().unwrap().refuse_writes().await;
    app.restart().await;
    for told in &all {
        told.again().await.replays(&told.first);
    }
    assert!(app.redis.as_ref().unwrap().dump().await.is_empty());
    app.finish().await;
}

#[tokio::test]
async fn what_somebody_else_wrote_into_redis_is_never_answered() {
    let mut app = TestApp::with(|options| options.redis()).await;
    let all = all_kinds(&app).await;
    app.restart().await;
    for told in &all {
        told.again().await.replays(&told.first);
    }
    let redis = app.redis.as_ref().unwrap();
    let kept = redis.dump().await;
    // Each value a byte off; then each under another's name; then rubbish.
    for round in 0..3 {
        for (at, (name, value, _)) in kept.iter().enumerate() {
            let mut changed = value.clone();
            match round {
                0 => changed[value.len() - 2] ^= 1,
                1 => changed.clone_from(&kept[(at + 1) % kept.len()].1),
                _ => changed = b"{\"status\":200}".to_vec(),
            }
            redis.put(name, &changed).await;
        }
        let server = app.second_server().await;
        for told in &all {
            told.again_on(&server).await.replays(&told.first);
        }
        server.stop().await;
    }
    app.finish().await;
}

#[tokio::test]
async fn an_old_value_in_redis_does_not_outlive_its_key() {
    let mut app = TestApp::with(|options| options.redis().retention_ms(1500)).await;
    let shopper = app.shopper().await;
    let body = basket(&[("enamel-mug", 1)]);
    let first = shopper.post("/v1/orders", "K", &body).await.expect(201);
    app.restart().await;
    shopper.post("/v1/orders", "K", &body).await.replays(&first);
    let kept = app.redis.as_ref().unwrap().dump().await;
    assert_eq!(kept.len(), 1);
    let alive = "select count(*) from idempotency_record where expires_at > clock_timestamp()";
    crate::app::eventually("the key expires", async || app.number(alive).await == 0).await;
    app.redis.as_ref().unwrap().put(&kept[0].0, &kept[0].1).await;
    app.restart().await;
    let late = shopper.post("/v1/orders", "K", &body).await;
    late.problem(409, "idempotency_key_expired");
    app.finish().await;
}

#[tokio::test]
async fn an_answer_that_promises_nothing_is_not_kept() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    app.provider(json!({ "down": true })).await;
    app.traffic.expect_failures();
    for _ in 0..2 {
        let refused =
            shopper.pay(&order, "P", "pm_card_ok").await.problem(503, "provider_unavailable");
        assert!(!refused.is_replay());
        assert_eq!(refused.header("idempotency-key-expires"), None);
    }
    assert_eq!(app.number("select count(*) from idempotency_record where key = 'P'").await, 0);
    assert_eq!(app.number("select count(*) from payment").await, 0);
    app.provider(json!({ "down": false })).await;
    let paid = shopper.pay(&order, "P", "pm_card_ok").await.expect(201);
    assert!(!paid.is_replay());
    assert_eq!(app.captures(&order).await, 1);
    let keys = app.provider_calls().await;
    let keys =
        keys.iter().filter(|call| call["method"] == "POST").map(|call| &call["provider_key"]);
    let mut keys: Vec<String> = keys.map(ToString::to_string).collect();
    keys.dedup();
    assert_eq!(keys.len(), 1, "every attempt carries the same provider key");
    app.finish().await;
}
