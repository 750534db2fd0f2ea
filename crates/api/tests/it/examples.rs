//! The examples of the API description, sent as they stand: only ids are put in. And every address
//! that an answer names, followed.

mod story;

use serde_json::Value;
use story::{Asked, Story, described};

use crate::app::{Response, TestApp};

/// Not every order has one.
const SOMETIMES: &str = "payment_id";

/// The same members at every depth, of the same types; the first of a list stands for the others.
fn same_shape(real: &Value, example: &Value, at: &str) {
    match (real, example) {
        (Value::Object(real), Value::Object(example)) => {
            let names = |object: &serde_json::Map<String, Value>| {
                let always = object.keys().filter(|name| *name != SOMETIMES);
                always.cloned().collect::<std::collections::BTreeSet<_>>()
            };
            assert_eq!(names(real), names(example), "{at}");
            for (name, value) in real.iter().filter(|(name, _)| *name != SOMETIMES) {
                same_shape(value, &example[name], &format!("{at}/{name}"));
            }
        }
        (Value::Array(real), Value::Array(example)) => {
            if let (Some(real), Some(example)) = (real.first(), example.first()) {
                same_shape(real, example, &format!("{at}/0"));
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        _ => assert_eq!(
            std::mem::discriminant(real),
            std::mem::discriminant(example),
            "{at}: {real} is not like {example}"
        ),
    }
}

fn as_documented(asked: &Asked, answer: &Response) {
    let name = &asked.name;
    let status = answer.status.to_string();
    assert!(status.starts_with('2'), "{name}: {answer:?}");
    let described = &asked.operation["responses"][&status];
    assert!(described.is_object(), "{name}: {status} is not described");
    let example = &described["content"]["application/json"]["example"];
    assert_eq!(example.is_null(), answer.body.is_empty(), "{name} has no example of its answer");
    if !answer.body.is_empty() {
        same_shape(&answer.json(), example, name);
    }
}

#[tokio::test]
async fn every_documented_request_works_when_it_is_pasted() {
    let app = TestApp::start().await;
    let story = Story::begin(&app).await;
    let mut changes = 0;
    for asked in story.all().await {
        let answer = story.send(&asked).await;
        as_documented(&asked, &answer);
        changes += usize::from(asked.method != "GET");
    }
    assert!(changes >= 11, "{changes}");
    app.finish().await;
}

#[test]
fn every_refusal_has_an_example_that_fits() {
    let document: Value = serde_json::from_str(&api::openapi::json().unwrap()).unwrap();
    let shared = &document["components"]["examples"];
    for (name, operation) in described() {
        for (status, response) in operation["responses"].as_object().unwrap() {
            if status.starts_with('2') {
                continue;
            }
            let content = &response["content"]["application/problem+json"];
            let examples = content["examples"].as_object();
            let examples = examples.unwrap_or_else(|| panic!("{name} {status} has no example"));
            for (code, example) in examples {
                assert_eq!(example["$ref"], format!("#/components/examples/{code}"), "{name}");
                let document = &shared[code]["value"];
                assert_eq!(document["code"], **code, "{name}");
                assert_eq!(document["status"].to_string(), *status, "{name}");
                assert_eq!(document["type"], format!("/problems/{code}"), "{name}");
            }
        }
    }
}

/// What a key has made can be looked at by whoever made it, while the answer is kept and after.
#[tokio::test]
async fn every_address_that_an_answer_names_leads_to_something() {
    let mut app = TestApp::start().await;
    let story = Story::begin(&app).await;
    let mut made = Vec::new();
    for asked in story.all().await.into_iter().filter(|asked| asked.method == "POST") {
        let answer = story.send(&asked).await;
        if let Some(location) = answer.header("location") {
            story.look(&asked, location).await;
        }
        if asked.is_guarded() {
            let record = story.record(&asked).await;
            if let Some(resource) = record["resource"].as_str() {
                story.look(&asked, resource).await;
            }
            made.push(asked);
        }
    }
    app.execute("update idempotency_record set expires_at = clock_timestamp() where status = 201")
        .await;
    app.restart().await;
    let mut expired = 0;
    for asked in &made {
        let answer = story.send(asked).await;
        if answer.status != 409 {
            assert!(answer.is_replay(), "{}: {answer:?}", asked.name);
            continue;
        }
        let answer = answer.problem(409, "idempotency_key_expired");
        assert_eq!(answer.header("location"), Some(&*answer.text("resource")));
        story.look(asked, &answer.text("resource")).await;
        expired += 1;
    }
    assert_eq!(expired, 6, "orders, payments, refunds, accounts, movements, endpoints");
    app.finish().await;
}

/// Refusals about a resource name it, and it can be seen.
#[tokio::test]
async fn refusals_lead_to_what_they_are_about() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    let payment = shopper.pay(&order, "pay", "pm_card_ok").await.expect(201).text("id");
    let cancel = format!("/v1/orders/{order}/cancel");
    let refunds = format!("/v1/payments/{payment}/refunds");
    shopper.post_empty(&refunds, "all").await.expect(201);
    let (_, declined) = (shopper.order("other").await, "pm_card_declined");
    let other = shopper.order("other").await;
    shopper.pay(&other, "no", declined).await.problem(402, "card_declined");
    let answers = [
        shopper.pay(&order, "again", "pm_card_ok").await,
        shopper.post_empty(&cancel, "cancel").await,
        shopper.post_empty(&format!("/v1/orders/{other}/receipts"), "receipt").await,
    ];
    for answer in answers {
        assert_eq!(answer.status, 409, "{answer:?}");
        let resource = answer.text("resource");
        assert_eq!(answer.header("location"), Some(&*resource), "{answer:?}");
        shopper.get(&resource).await.expect(200);
    }
    app.finish().await;
}

/// An account and a movement are there for their own, and for nobody else.
#[tokio::test]
async fn what_a_key_made_is_nobody_elses() {
    let app = TestApp::start().await;
    let (shopper, merchant) = (app.shopper().await, app.merchant().await);
    let own = format!("/v1/accounts/{}", shopper.account().id);
    assert_eq!(shopper.get(&own).await.expect(200).text("id"), shopper.account().id.to_string());
    merchant.get(&own).await.problem(404, "not_found");
    shopper.get("/v1/accounts/acc_1").await.problem(404, "not_found");
    let body = serde_json::json!({ "delta": 3, "reason": "Found behind the shelf." });
    let moved = merchant.post("/v1/products/enamel-mug/stock-movements", "m", &body).await;
    let path = moved.header("location").unwrap().to_owned();
    assert_eq!(merchant.get(&path).await.expect(200).json(), moved.json());
    shopper.get(&path).await.problem(403, "forbidden");
    merchant.get(&path.replace("enamel-mug", "order-book")).await.problem(404, "not_found");
    merchant.get("/v1/products/enamel-mug/stock-movements/1").await.problem(404, "not_found");
    app.finish().await;
}
