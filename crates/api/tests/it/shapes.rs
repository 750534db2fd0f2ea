//! Bodies of another shape than described: no object by position, no word by name, at any depth.

use serde_json::{Value, json};

use crate::app::TestApp;
use crate::openapi::described;
use crate::roles;

/// Every value in a document that `change` turns into something else, each changed once.
fn changed_once(
    document: &Value,
    change: &dyn Fn(&Value) -> Option<Value>,
) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let mut pointers = vec![String::new()];
    while let Some(pointer) = pointers.pop() {
        let value = document.pointer(&pointer).unwrap();
        if let Some(other) = change(value) {
            let mut copy = document.clone();
            *copy.pointer_mut(&pointer).unwrap() = other;
            all.push((pointer.clone(), copy));
        }
        match value {
            Value::Object(members) => {
                pointers.extend(members.keys().map(|name| format!("{pointer}/{name}")));
            }
            Value::Array(items) => {
                pointers.extend((0..items.len()).map(|index| format!("{pointer}/{index}")));
            }
            _ => {}
        }
    }
    all
}

/// The members' values in the order in which they are declared: what serde would take for the object.
fn by_position(value: &Value) -> Option<Value> {
    let members = value.as_object()?;
    let order = [
        "lines",
        "expected_total",
        "sku",
        "quantity",
        "amount",
        "currency",
        "delta",
        "email",
        "password",
        "name",
        "note",
        "payment_method",
        "reason",
        "restock",
        "url",
        "events",
        "type",
        "data",
    ];
    let declared = order.iter().filter_map(|name| members.get(*name)).cloned();
    Some(declared.collect())
}

fn by_name(value: &Value) -> Option<Value> {
    Some(json!({ value.as_str()?: null }))
}

fn in_a_list(value: &Value) -> Option<Value> {
    (!value.is_array()).then(|| json!([value]))
}

fn as_text(value: &Value) -> Option<Value> {
    (value.is_number() || value.is_boolean()).then(|| json!(value.to_string()))
}

fn with_a_fraction(value: &Value) -> Option<Value> {
    value.as_i64().map(|whole| serde_json::from_str(&format!("{whole}.5")).unwrap())
}

fn with_an_unknown_member(value: &Value) -> Option<Value> {
    let mut members = value.as_object()?.clone();
    members.insert("discount".to_owned(), json!(100));
    Some(Value::Object(members))
}

fn nothing(value: &Value) -> Option<Value> {
    (!value.is_null()).then_some(Value::Null)
}

#[tokio::test]
async fn a_body_has_the_described_shape_at_every_depth() {
    let app = TestApp::start().await;
    let merchant = app.merchant().await;
    let order = merchant.order("an-order").await;
    let payment = merchant.pay(&merchant.order("paid").await, "paid-too", "pm_card_ok").await;
    let payment = payment.expect(201).text("id");
    let before = app.number("select count(*) from idempotency_record").await;
    let mut refused = 0;
    for one in described().into_iter().filter(|one| one.exempt().is_none()) {
        let Some(body) = roles::body(&one.name(), "shape") else { continue };
        let id = if one.path.starts_with("/v1/payments") { &payment } else { &order };
        let path = one.path.replace("{id}", id).replace("{sku}", "enamel-mug");
        let body = with_money(&one.name(), body);
        let changes: [&dyn Fn(&Value) -> Option<Value>; 6] = [
            &by_position,
            &by_name,
            &in_a_list,
            &as_text,
            &with_a_fraction,
            &with_an_unknown_member,
        ];
        for change in changes {
            for (pointer, changed) in changed_once(&body, change) {
                let answer = merchant.post(&path, "K", &changed).await;
                let answer = answer.problem(422, "validation_failed");
                let said = answer.json()["errors"][0]["pointer"].as_str().unwrap().to_owned();
                assert!(
                    said.starts_with(&pointer) || pointer.starts_with(&said),
                    "{changed}: {said}"
                );
                refused += 1;
            }
        }
        required(&one.operation, &body, |pointer, without| {
            let (merchant, path) = (merchant.clone(), path.clone());
            async move {
                let answer = merchant.post(&path, "K", &without).await;
                assert_eq!(answer.status, 422, "without {pointer}: {answer:?}");
            }
        })
        .await;
    }
    assert!(refused > 80, "{refused}");
    assert_eq!(app.number("select count(*) from idempotency_record").await, before);
    app.finish().await;
}

/// Money where a body may have it, so that it is changed as well.
fn with_money(route: &str, mut body: Value) -> Value {
    let amount = json!({ "amount": 4200, "currency": "USD" });
    match route {
        "POST /v1/orders" => body["expected_total"] = amount,
        "POST /v1/orders/{id}/payments" => body["amount"] = amount,
        _ => {}
    }
    body
}

/// Each member that the description requires, left out and set to null.
async fn required<F: Future<Output = ()>>(
    operation: &Value,
    body: &Value,
    check: impl Fn(String, Value) -> F,
) {
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let Some(name) = name else { return };
    let document: Value = serde_json::from_str(&api::openapi::json().unwrap()).unwrap();
    let required = document["components"]["schemas"][name]["required"].as_array().cloned();
    for member in required.unwrap_or_default() {
        let member = member.as_str().unwrap();
        let mut without = body.clone();
        without.as_object_mut().unwrap().remove(member);
        check(format!("/{member}"), without).await;
        let mut null = body.clone();
        null[member] = nothing(&body[member]).unwrap();
        check(format!("/{member}"), null).await;
    }
}

#[tokio::test]
async fn whoever_signs_in_or_reports_an_event_sends_an_object_too() {
    let app = TestApp::start().await;
    let anybody = app.anonymous();
    let known = json!([api::catalog::demo::SHOPPER, crate::app::PASSWORD]);
    let sign_in = anybody.request("POST", "/v1/sessions").json(&known).send().await;
    sign_in.problem(422, "validation_failed");
    app.finish().await;
}
