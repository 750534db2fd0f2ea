//! Passwords, tokens and cards are nowhere: not in a table, not in Redis, not in the log.

use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::app::TestApp;
use crate::log;

/// All rows of all tables as text; bytes as hexadecimal digits.
async fn everything(app: &TestApp) -> Vec<String> {
    let mut conn = app.database.connect().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "select format('%I.%I', schemaname, tablename) from pg_tables
         where schemaname in ('public', 'provider')",
    )
    .fetch_all(&mut conn)
    .await
    .unwrap();
    let mut rows = Vec::new();
    for table in tables {
        let query = format!("select t::text from {table} t");
        let found: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(&mut conn).await.unwrap();
        rows.extend(found);
    }
    rows
}

async fn is_nowhere(app: &TestApp, secret: &str) {
    let bytes = hex::encode(secret);
    let found =
        everything(app).await.into_iter().find(|row| row.contains(secret) || row.contains(&bytes));
    assert_eq!(found, None, "{secret} is in a table");
    if let Some(redis) = &app.redis {
        for (name, value, _) in redis.dump().await {
            let value = String::from_utf8_lossy(&value).into_owned();
            assert!(!name.contains(secret) && !value.contains(secret), "{secret} is in Redis");
        }
    }
    assert!(log::with(secret).is_empty(), "{secret} is in the log");
}

#[tokio::test]
async fn what_people_sign_in_with_is_not_kept() {
    let mut app = TestApp::with(|options| options.redis()).await;
    let anybody = app.anonymous();
    let password = format!("pass-{:032x}", rand::random::<u128>());
    let email = format!("{:016x}@payonce.test", rand::random::<u64>());
    let account = json!({ "email": email, "password": password });
    let first = anybody.post("/v1/accounts", "K", &account).await.expect(201);
    app.restart().await;
    anybody.post("/v1/accounts", "K", &account).await.replays(&first);
    let signed_in = anybody.request("POST", "/v1/sessions").json(&account).send().await.expect(201);
    let token = signed_in.text("token");
    let wrong = json!({ "email": email, "password": format!("{password}!") });
    anybody.request("POST", "/v1/sessions").json(&wrong).send().await.expect(401);
    anybody.post("/v1/accounts", "K", &wrong).await.problem(422, "idempotency_key_reused");
    let caller = anybody.bearing(&token);
    let order = caller.order("O").await;
    caller.pay(&order, "P", "pm_card_ok").await.expect(201);
    is_nowhere(&app, &password).await;
    is_nowhere(&app, &token).await;
    // No plain digest of a password either, which could be guessed at.
    let digest = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(password.as_bytes()));
    is_nowhere(&app, &digest).await;
    app.finish().await;
}

#[tokio::test]
async fn a_card_number_that_is_sent_by_mistake_is_not_kept() {
    let app = TestApp::with(|options| options.redis()).await;
    let shopper = app.shopper().await;
    let order = shopper.order("K").await;
    let number = format!("4242{:012}", rand::random_range(0..1_000_000_000_000_u64));
    shopper.pay(&order, "P", &number).await.problem(422, "validation_failed");
    let path = format!("/v1/orders/{order}/payments");
    let extra = json!({ "payment_method": "pm_card_ok", "card": number });
    let refused = shopper.post(&path, "P", &extra).await.problem(422, "validation_failed");
    assert!(!String::from_utf8_lossy(&refused.body).contains(&number), "{refused:?}");
    let member = format!(r#"{{"payment_method":"pm_card_ok","{number}":1}}"#);
    let request = shopper.request("POST", &path).key("P").body("application/json", member);
    request.send().await.problem(422, "validation_failed");
    is_nowhere(&app, &number).await;
    app.finish().await;
}

#[tokio::test]
async fn keys_are_logged_as_a_short_hash() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let key = format!("key-{:032x}", rand::random::<u128>());
    let order = shopper.order(&key).await;
    let paying = format!("{key}-pay");
    shopper.pay(&order, &paying, "pm_card_ok").await.expect(201);
    shopper.get(&format!("/v1/idempotency-keys/{key}")).await.expect(200);
    assert!(log::with(&key).is_empty(), "a key is in the log");
    app.finish().await;
}
