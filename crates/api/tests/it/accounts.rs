//! Accounts and sessions: one account for an e-mail, and tokens that open what they are for.

use api::accounts::session::{self, Kind};
use api::catalog::demo;
use api::webhooks::deliver;
use serde_json::{Value, json};

use crate::app::{PASSWORD, TestApp, eventually, together};

fn wish(email: &str) -> Value {
    json!({ "email": email, "password": "a password of some length", "name": "Ada" })
}

#[tokio::test]
async fn one_e_mail_is_one_account_whoever_is_first() {
    let app = TestApp::start().await;
    let anybody = app.anonymous();
    let attempts = (0..20).map(|attempt| {
        let anybody = anybody.clone();
        async move {
            let email = if attempt % 2 == 0 { "ada@payonce.test" } else { "Ada@Payonce.TEST" };
            anybody.post("/v1/accounts", &format!("K{attempt}"), &wish(email)).await
        }
    });
    let answers = together(attempts).await;
    let made: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(made.len(), 1, "{answers:?}");
    assert_eq!(made[0].text("email"), "ada@payonce.test");
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        refused.clone().problem(409, "email_taken");
    }
    app.finish().await;
}

#[tokio::test]
async fn an_account_is_replayed_to_whoever_knows_everything_that_was_sent() {
    let app = TestApp::start().await;
    let anybody = app.anonymous();
    let first = anybody.post("/v1/accounts", "K", &wish("ada@payonce.test")).await.expect(201);
    assert_eq!(first.json()["role"], "shopper");
    anybody.post("/v1/accounts", "K", &wish("ada@payonce.test")).await.replays(&first);
    let mut guess = wish("ada@payonce.test");
    guess["password"] = json!("another password, a guess");
    let refused = anybody.post("/v1/accounts", "K", &guess).await;
    let document = refused.problem(422, "idempotency_key_reused").json();
    assert_eq!(document["pointers"], json!(["/password"]));
    // Another person may use the same key.
    let other = anybody.post("/v1/accounts", "K", &wish("bob@payonce.test")).await.expect(201);
    assert_ne!(first.text("id"), other.text("id"));
    app.finish().await;
}

#[tokio::test]
async fn what_is_no_account_is_refused() {
    let app = TestApp::start().await;
    let anybody = app.anonymous();
    let with = |name: &str, value: Value| {
        let mut wish = wish("ada@payonce.test");
        wish[name] = value;
        wish
    };
    for (body, pointer) in [
        (with("email", json!("")), "/email"),
        (with("email", json!("ada")), "/email"),
        (with("email", json!("ada@payonce")), "/email"),
        (with("email", json!("ada@payonce.test\r\nBcc: all@payonce.test")), "/email"),
        (with("email", json!("Ada <ada@payonce.test>")), "/email"),
        (with("email", json!("\"a b\"@payonce.test")), "/email"),
        (with("email", json!("ada\u{202e}@payonce.test")), "/email"),
        (with("email", json!(format!("{}@payonce.test", "a".repeat(250)))), "/email"),
        (with("password", json!("short")), "/password"),
        (with("password", json!("x".repeat(201))), "/password"),
        (with("password", json!(1_234_567_890)), "/password"),
        (with("name", json!("")), "/name"),
        (with("name", json!("x".repeat(101))), "/name"),
        (with("role", json!("merchant")), "/role"),
        (with("id", json!("acc_1")), "/id"),
        (json!([]), ""),
        (json!("ada"), ""),
    ] {
        let refused = anybody.post("/v1/accounts", "K", &body).await;
        let refused = refused.problem(422, "validation_failed").json();
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{body}: {refused}");
        assert!(!refused.to_string().contains("1234567890"), "a password is echoed: {refused}");
    }
    anybody.post("/v1/accounts", "K", &wish("ada@payonce.test")).await.expect(201);
    app.finish().await;
}

#[tokio::test]
async fn signing_in_tells_nobody_which_accounts_there_are() {
    let app = TestApp::start().await;
    let anybody = app.anonymous();
    let sign_in = async |email: &str, password: &str| {
        let body = json!({ "email": email, "password": password });
        anybody.request("POST", "/v1/sessions").json(&body).send().await
    };
    let wrong = sign_in("shopper@payonce.test", "not the password").await;
    let unknown = sign_in("nobody@payonce.test", "not the password").await;
    let wrong = wrong.problem(401, "unauthenticated");
    assert_eq!(wrong.body, unknown.problem(401, "unauthenticated").body);
    let token = sign_in(" Shopper@Payonce.test ", PASSWORD).await.expect(201);
    assert_eq!(token.header("cache-control"), Some("no-store"));
    assert_eq!(token.header("idempotency-key-expires"), None);
    app.traffic.keep_secret(&token.text("token"));
    let me = anybody.bearing(&token.text("token")).get("/v1/accounts/me").await.expect(200);
    assert_eq!(me.text("email"), "shopper@payonce.test");
    app.finish().await;
}

#[tokio::test]
async fn a_sign_in_with_a_key_is_not_stored() {
    let app = TestApp::start().await;
    let body = json!({ "email": "shopper@payonce.test", "password": PASSWORD });
    let anybody = app.anonymous();
    let one = anybody.post("/v1/sessions", "K", &body).await.expect(201);
    let other = anybody.post("/v1/sessions", "K", &body).await.expect(201);
    assert!(!other.is_replay());
    assert_ne!(one.text("token"), other.text("token"));
    assert_eq!(app.number("select count(*) from idempotency_record").await, 0);
    app.finish().await;
}

#[tokio::test]
async fn signing_out_counts_at_once_here_and_within_seconds_elsewhere() {
    let app = TestApp::start().await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let elsewhere = shopper.on(&second);
    shopper.get("/v1/accounts/me").await.expect(200);
    elsewhere.get("/v1/accounts/me").await.expect(200);
    let out = shopper.request("DELETE", "/v1/sessions/current").send().await.expect(204);
    assert!(out.body.is_empty());
    shopper.get("/v1/accounts/me").await.problem(401, "unauthenticated");
    let order = crate::app::basket(&[("enamel-mug", 1)]);
    shopper.post("/v1/orders", "K", &order).await.problem(401, "unauthenticated");
    let out = shopper.request("DELETE", "/v1/sessions/current").send().await;
    out.problem(401, "unauthenticated");
    eventually("the other server forgets the token", async || {
        elsewhere.get("/v1/accounts/me").await.status == 401
    })
    .await;
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn a_request_that_crosses_a_sign_out_does_not_keep_the_token_alive() {
    let app = TestApp::start().await;
    for _ in 0..10 {
        let shopper = app.shopper().await;
        let asking: Vec<_> = (0..8)
            .map(|_| {
                let shopper = shopper.clone();
                tokio::spawn(async move { shopper.get("/v1/accounts/me").await })
            })
            .collect();
        shopper.request("DELETE", "/v1/sessions/current").send().await.expect(204);
        for asked in asking {
            asked.await.unwrap();
        }
        shopper.get("/v1/accounts/me").await.problem(401, "unauthenticated");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_token_opens_only_what_it_is_for() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let mut conn = app.app().db.connection().await.unwrap();
    let id = shopper.account().id;
    let cookie = session::open(app.app(), &mut conn, id, Kind::Cookie).await.unwrap();
    conn.done();
    app.traffic.keep_secret(&cookie.text);
    let anybody = app.anonymous();
    anybody.bearing(&cookie.text).get("/v1/accounts/me").await.problem(401, "unauthenticated");
    let token = shopper.token.clone().unwrap();
    for (name, value) in [
        ("Cookie", format!("session={}", cookie.text)),
        ("Cookie", format!("payonce_session={}", cookie.text)),
        ("Cookie", format!("session={token}")),
        ("Authorization", token.clone()),
        ("Authorization", format!("Basic {token}")),
        ("Authorization", format!("Bearer {token}x")),
        ("Authorization", "Bearer".to_owned()),
        ("Authorization", "Bearer ".to_owned()),
        ("X-Api-Key", token.clone()),
    ] {
        let request = anybody.request("GET", "/v1/accounts/me").header(name, value.as_bytes());
        let refused = request.send().await.problem(401, "unauthenticated");
        assert!(
            refused.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer"))
        );
    }
    let request = anybody.request("GET", "/v1/accounts/me");
    let lower = request.header("authorization", format!("bearer {token}").as_bytes());
    lower.send().await.expect(200);
    app.finish().await;
}

#[tokio::test]
async fn a_session_ends_when_its_time_is_over() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    app.execute("update session set expires_at = clock_timestamp()").await;
    shopper.get("/v1/accounts/me").await.problem(401, "unauthenticated");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demos_accounts_are_nobody_outside_the_demo() {
    let mut app = TestApp::start().await;
    let (merchant, other) = (app.merchant().await, app.new_account().await);
    let endpoint = json!({ "url": "http://127.0.0.1:9/", "events": ["order.cancelled"] });
    merchant.post("/v1/webhook-endpoints", "endpoint", &endpoint).await.expect(201);
    let anybody = app.anonymous();
    let sign_in = async |email: &str, password: &str| {
        let body = json!({ "email": email, "password": password });
        anybody.request("POST", "/v1/sessions").json(&body).send().await
    };
    let token = sign_in(demo::MERCHANT, PASSWORD).await.expect(201).text("token");
    app.traffic.keep_secret(&token);

    app.options.limited = true;
    app.restart().await;
    let order = other.order("order").await;
    other.post_empty(&format!("/v1/orders/{order}/cancel"), "cancel").await.expect(200);
    let sent = deliver::run_once(app.app()).await.unwrap();
    assert_eq!((sent.taken, sent.delivered), (1, 0));
    assert_eq!(app.number("select count(*) from delivery where state = 'dead'").await, 1);
    for email in demo::ACCOUNTS {
        let right = sign_in(email, PASSWORD).await.problem(401, "unauthenticated");
        let wrong = sign_in(email, "not the password").await.problem(401, "unauthenticated");
        assert_eq!(right.body, wrong.body);
    }
    for known in [&merchant, &anybody.bearing(&token)] {
        known.get(&format!("/v1/orders/{order}")).await.problem(401, "unauthenticated");
    }

    app.options.limited = false;
    app.restart().await;
    merchant.get(&format!("/v1/orders/{order}")).await.expect(200);
    app.finish().await;
}
