//! The API description: what it says of every operation, and that the server does the same.

use api::{openapi, routes};
use serde_json::{Value, json};

use crate::app::TestApp;

/// Read when asked for, so that making it anew needs no second build.
fn committed() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi/openapi.json");
    std::fs::read_to_string(path).unwrap()
}

pub(crate) struct Described {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) operation: Value,
}

impl Described {
    fn changes_something(&self) -> bool {
        self.method != "GET"
    }

    pub(crate) fn exempt(&self) -> Option<&str> {
        self.operation["x-idempotency"]["exempt"].as_str()
    }

    /// A path that can be asked, with an id for each placeholder.
    pub(crate) fn concrete(&self) -> String {
        let filled = |segment: &str| match segment.starts_with('{') {
            true => "x".to_owned(),
            false => segment.to_owned(),
        };
        self.path.split('/').map(filled).collect::<Vec<_>>().join("/")
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

pub(crate) fn described() -> Vec<Described> {
    let document: Value = serde_json::from_str(&openapi::json().unwrap()).unwrap();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let (path, operation) = (path.clone(), operation.clone());
            all.push(Described { method: method.to_uppercase(), path, operation });
        }
    }
    all
}

#[test]
fn the_committed_document_is_the_one_that_is_served() {
    let served = openapi::json().unwrap();
    assert!(committed() == served, "stale: cargo run -- openapi > openapi/openapi.json");
}

#[test]
fn the_document_and_the_routes_agree() {
    routes::api().check().unwrap();
    let api = routes::api();
    assert!(!api.facts().is_empty());
    for facts in api.facts() {
        let all = described();
        let one = all.iter().find(|one| one.name() == format!("{} {}", facts.method, facts.path));
        let one = one.unwrap_or_else(|| panic!("{facts:?} is not described"));
        assert_eq!(one.exempt(), facts.exempt, "{}", one.name());
        assert_eq!(one.changes_something(), facts.guarded || facts.exempt.is_some());
    }
}

#[test]
fn every_operation_that_changes_something_asks_for_a_key_and_describes_refusals() {
    for one in described() {
        let parameters = one.operation["parameters"].as_array().cloned().unwrap_or_default();
        let key = parameters.iter().find(|parameter| parameter["name"] == "Idempotency-Key");
        let guarded = one.changes_something() && one.exempt().is_none();
        assert_eq!(key.is_some(), guarded, "{}", one.name());
        for (status, response) in one.operation["responses"].as_object().unwrap() {
            if !status.starts_with('2') {
                let schema = &response["content"]["application/problem+json"]["schema"]["$ref"];
                assert_eq!(*schema, "#/components/schemas/Problem", "{} {status}", one.name());
            }
        }
        let Some(key) = key else { continue };
        assert_eq!(
            (&key["in"], &key["required"]),
            (&json!("header"), &json!(true)),
            "{}",
            one.name()
        );
        assert_eq!(
            (&key["schema"]["minLength"], &key["schema"]["maxLength"]),
            (&json!(1), &json!(255))
        );
        let responses = one.operation["responses"].as_object().unwrap();
        for status in ["400", "401", "409", "413", "415", "422", "429", "503"] {
            let anonymous = status == "401" && one.operation["security"] == json!([]);
            assert!(anonymous || responses.contains_key(status), "{} {status}", one.name());
        }
        assert!(responses["409"]["headers"]["Retry-After"].is_object(), "{}", one.name());
        let success = responses.iter().find(|(status, _)| status.starts_with('2')).unwrap().1;
        for header in ["Idempotency-Replayed", "Idempotency-Key-Expires", "Content-Digest"] {
            assert!(success["headers"][header].is_object(), "{} {header}", one.name());
        }
    }
}

#[test]
fn no_more_than_three_exemptions_and_each_says_why() {
    let all = described();
    let exempt: Vec<_> = all.iter().filter(|one| one.exempt().is_some()).collect();
    let allowed =
        ["POST /v1/sessions", "DELETE /v1/sessions/current", "POST /v1/webhooks/provider"];
    for one in exempt {
        assert!(allowed.contains(&&*one.name()), "{}", one.name());
        assert!(one.exempt().unwrap().len() > 10, "{}", one.name());
    }
}

#[test]
fn every_number_has_bounds_or_a_format() {
    fn walk(value: &Value, at: &str) {
        match value {
            Value::Object(members) => {
                if value["type"] == "integer" {
                    assert!(value["format"].is_string() || value["maximum"].is_number(), "{at}");
                }
                members.iter().for_each(|(name, member)| walk(member, &format!("{at}/{name}")));
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, item)| walk(item, &format!("{at}/{n}")));
            }
            _ => {}
        }
    }
    walk(&serde_json::from_str(&openapi::json().unwrap()).unwrap(), "");
}

#[tokio::test]
async fn every_operation_that_changes_something_refuses_to_run_without_a_key() {
    let app = TestApp::start().await;
    let merchant = app.merchant().await;
    let changes = described().into_iter().filter(Described::changes_something);
    let mut refused = 0;
    for one in changes.filter(|one| one.exempt().is_none()) {
        let (method, path) = (&*one.method, one.concrete());
        let ask = || merchant.request(method, &path).json(&json!({ "a": 1 }));
        ask().send().await.problem(400, "idempotency_key_missing");
        for key in [&b""[..], b"a,b", b"\xff", &[b'k'; 256], &[b'k'; 3000]] {
            let answer = ask().header("Idempotency-Key", key).send().await;
            answer.problem(400, "idempotency_key_invalid");
        }
        let twice = ask().key("K").key("K").send().await;
        twice.problem(400, "idempotency_key_invalid");
        refused += 1;
    }
    assert!(refused >= 4, "{refused}");
    assert_eq!(app.number("select count(*) from idempotency_record").await, 0);
    app.finish().await;
}

#[tokio::test]
async fn exempt_operations_run_without_a_key() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    for one in described().into_iter().filter(|one| one.exempt().is_some()) {
        let request = shopper.request(&one.method, &one.concrete()).json(&json!({}));
        let answer = request.send().await;
        assert!(
            !answer.body.starts_with(b"{") || !answer.text("code").starts_with("idempotency"),
            "{answer:?}"
        );
    }
    app.finish().await;
}

#[tokio::test]
async fn the_document_and_the_policy_are_served() {
    let app = TestApp::start().await;
    let anybody = app.anonymous();
    let served = anybody.get("/openapi.json").await.expect(200);
    assert!(served.body == committed().as_bytes(), "stale");
    let docs = anybody.get("/docs/").await.expect(200);
    assert!(docs.header("content-type").unwrap().starts_with("text/html"));
    let policy = anybody.get("/.well-known/idempotency").await.expect(200).json();
    assert_eq!((&policy["key"]["min"], &policy["key"]["max"]), (&json!(1), &json!(255)));
    assert_eq!(policy["retention_seconds"], 24 * 3600);
    assert_eq!(policy["wait"], json!({ "default": 10, "max": 30 }));
    let routes = policy["routes"].as_array().unwrap();
    let orders =
        routes.iter().find(|route| route["method"] == "POST" && route["path"] == "/v1/orders");
    assert_eq!(orders.unwrap()["guarded"], true);
    app.finish().await;
}

#[test]
fn a_body_is_an_object_and_its_words_have_their_form() {
    let document: Value = serde_json::from_str(&openapi::json().unwrap()).unwrap();
    for one in described() {
        let body = &one.operation["requestBody"]["content"]["application/json"]["schema"];
        assert!(body.is_null() || body["$ref"].is_string(), "{}: {body}", one.name());
    }
    for (schema, member, form) in [
        ("CreateAccount", "email", "format"),
        ("CreateOrder", "email", "format"),
        ("CreateOrderLine", "sku", "pattern"),
        ("CreatePayment", "payment_method", "pattern"),
        ("CreateEndpoint", "url", "format"),
    ] {
        let member = &document["components"]["schemas"][schema]["properties"][member];
        assert!(member[form].is_string(), "{schema}: {member}");
    }
    let currency = document["components"]["schemas"]["Money"].to_string();
    assert!(currency.contains("^(USD|EUR|GBP|JPY|KWD)$"), "{currency}");
}
