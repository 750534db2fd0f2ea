//! Fresh things for the ids in the examples, and who sends them.

use std::sync::atomic::{AtomicU32, Ordering};

use api::openapi;
use api::webhooks::signature;
use serde_json::{Value, json};

use crate::app::{Caller, PASSWORD, Response, TestApp};

/// One request as it is described.
pub(super) struct Asked {
    /// `POST /v1/orders`
    pub(super) name: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) key: String,
    pub(super) body: Option<Value>,
    pub(super) operation: Value,
}

impl Asked {
    pub(super) fn is_guarded(&self) -> bool {
        self.operation["x-idempotency"]["key"] == "required"
    }
}

/// The merchant buys, too: one account may send every example.
pub(super) struct Story {
    caller: Caller,
    anybody: Caller,
    secret: signature::Secret,
    now: i64,
    keys: AtomicU32,
}

/// All operations, by name.
pub(super) fn described() -> Vec<(String, Value)> {
    let document: Value = serde_json::from_str(&openapi::json().unwrap()).unwrap();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((format!("{} {path}", method.to_uppercase()), operation.clone()));
        }
    }
    all
}

impl Story {
    pub(super) async fn begin(app: &TestApp) -> Self {
        Self {
            caller: app.merchant().await,
            anybody: app.anonymous(),
            secret: app.options.webhook_secrets()[0].clone(),
            now: app.app().clock.now().unix_timestamp(),
            keys: AtomicU32::new(0),
        }
    }

    /// Every request of the description, with ids of things that are there.
    pub(super) async fn all(&self) -> Vec<Asked> {
        let mut all = Vec::new();
        for (name, operation) in described() {
            all.push(self.asked(name, operation).await);
        }
        all
    }

    async fn asked(&self, name: String, operation: Value) -> Asked {
        let (method, template) = name.split_once(' ').unwrap();
        let body = &operation["requestBody"]["content"]["application/json"]["example"];
        assert_eq!(operation["requestBody"].is_null(), body.is_null(), "{name} has no example");
        let body = (!body.is_null()).then(|| reachable(body));
        let (method, path) = (method.to_owned(), self.concrete(template).await);
        Asked { method, path, key: self.key(), body, operation, name }
    }

    fn key(&self) -> String {
        format!("key-{}", self.keys.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) async fn send(&self, asked: &Asked) -> Response {
        match asked.name.as_str() {
            "POST /v1/accounts" => self.send_as(&self.anybody, asked).await,
            "DELETE /v1/sessions/current" => {
                let body = json!({ "email": api::catalog::demo::SHOPPER, "password": PASSWORD });
                let session = self.anybody.request("POST", "/v1/sessions").json(&body).send().await;
                self.send_as(&self.anybody.bearing(&session.text("token")), asked).await
            }
            "POST /v1/webhooks/provider" => self.send_event(asked).await,
            _ => self.send_as(&self.caller, asked).await,
        }
    }

    async fn send_as(&self, caller: &Caller, asked: &Asked) -> Response {
        let mut request = caller.request(&asked.method, &asked.path);
        if asked.is_guarded() {
            request = request.key(&asked.key);
        }
        if let Some(body) = &asked.body {
            request = request.json(body);
        }
        request.send().await
    }

    async fn send_event(&self, asked: &Asked) -> Response {
        let body = asked.body.as_ref().unwrap().to_string();
        let signature = signature::sign(&self.secret, "evt_1", self.now, body.as_bytes());
        let request = self.anybody.request("POST", &asked.path);
        request
            .header("webhook-id", b"evt_1")
            .header("webhook-timestamp", self.now.to_string().as_bytes())
            .header("webhook-signature", signature.as_bytes())
            .body("application/json", body)
            .send()
            .await
    }

    /// What became of the key of a request, as its owner sees it; nobody signs in as nobody.
    pub(super) async fn record(&self, asked: &Asked) -> Value {
        if asked.name == "POST /v1/accounts" {
            return Value::Null;
        }
        let path = format!("/v1/idempotency-keys/{}", asked.key);
        self.caller.get(&path).await.expect(200).json()
    }

    /// Whoever made it looks at it.
    pub(super) async fn look(&self, asked: &Asked, path: &str) {
        let found = match &asked.body {
            Some(body) if asked.name == "POST /v1/accounts" => {
                let body = json!({ "email": body["email"], "password": body["password"] });
                let session = self.anybody.request("POST", "/v1/sessions").json(&body).send().await;
                self.anybody.bearing(&session.expect(201).text("token")).get(path).await
            }
            _ => self.caller.get(path).await,
        };
        assert_eq!(found.status, 200, "{} leads to {path}: {found:?}", asked.name);
    }

    /// The path with a fresh thing for each placeholder.
    async fn concrete(&self, template: &str) -> String {
        let path = template.replace("{sku}", "counter-bell");
        if path.contains("/stock-movements/{id}") {
            return self.make("POST /v1/products/{sku}/stock-movements", "").await.1;
        }
        let id = match path.split("/{id}").next().unwrap_or_default() {
            _ if !path.contains("{id}") => String::new(),
            "/v1/orders" if path.ends_with("/receipts") => self.paid().await.0,
            "/v1/orders" => self.order().await,
            "/v1/payments" => self.paid().await.1,
            "/v1/refunds" => {
                let payment = self.paid().await.1;
                self.make("POST /v1/payments/{id}/refunds", &payment).await.0
            }
            "/v1/webhook-endpoints" => self.make("POST /v1/webhook-endpoints", "").await.0,
            "/v1/accounts" => self.caller.account().id.to_string(),
            other => panic!("nothing is made for {other}"),
        };
        let key = match path.contains("{key}") {
            true => self.keyed().await,
            false => String::new(),
        };
        path.replace("{id}", &id).replace("{key}", &key)
    }

    async fn order(&self) -> String {
        self.make("POST /v1/orders", "").await.0
    }

    async fn paid(&self) -> (String, String) {
        let order = self.order().await;
        let payment = self.make("POST /v1/orders/{id}/payments", &order).await.0;
        (order, payment)
    }

    async fn keyed(&self) -> String {
        let body = described().into_iter().find(|(name, _)| name == "POST /v1/orders");
        let body = body.unwrap().1["requestBody"]["content"]["application/json"]["example"].clone();
        let key = self.key();
        self.caller.post("/v1/orders", &key, &body).await.expect(201);
        key
    }

    /// Sends another route's example: the id of what it makes, and where that is.
    async fn make(&self, name: &str, id: &str) -> (String, String) {
        let (_, operation) = described().into_iter().find(|(known, _)| known == name).unwrap();
        let body = reachable(&operation["requestBody"]["content"]["application/json"]["example"]);
        let path = name.split_once(' ').unwrap().1;
        let path = path.replace("{id}", id).replace("{sku}", "counter-bell");
        let made = self.caller.post(&path, &self.key(), &body).await.expect(201);
        (made.text("id"), made.header("location").unwrap().to_owned())
    }
}

/// Names are not looked up while tests run.
fn reachable(body: &Value) -> Value {
    let text = body.to_string().replace("https://example.com", "http://127.0.0.1:9");
    serde_json::from_str(&text).unwrap()
}
