//! Somebody who sends requests, and what comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use api::accounts::Account;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::{Server, log};

/// What all callers of a test share: failures that nobody ordered, and words that must not leak.
pub(crate) struct Traffic {
    name: String,
    requests: AtomicU64,
    failures: Mutex<Vec<String>>,
    secrets: Mutex<Vec<Vec<u8>>>,
    failures_expected: AtomicBool,
}

impl Traffic {
    pub(super) fn new(secret: &[u8; 32]) -> Self {
        let traffic = Self {
            name: format!("t{:016x}", rand::random::<u64>()),
            requests: AtomicU64::new(0),
            failures: Mutex::default(),
            secrets: Mutex::default(),
            failures_expected: AtomicBool::new(false),
        };
        traffic.secrets.lock().unwrap().push(secret.to_vec());
        traffic.keep_secret(&hex::encode(secret));
        traffic
    }

    /// From now on this must not be found at rest or in the log.
    pub(crate) fn keep_secret(&self, word: &str) {
        self.secrets.lock().unwrap().push(word.as_bytes().to_vec());
    }

    /// The test makes the server fail on purpose.
    pub(crate) fn expect_failures(&self) {
        self.failures_expected.store(true, Ordering::Relaxed);
    }

    /// Answers of 500 and more, and errors in the log, unless they were expected.
    pub(crate) fn unexpected_failures(&self) -> Vec<String> {
        if self.failures_expected.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut failures = self.failures.lock().unwrap().clone();
        let logged = log::with(&format!("{}-", self.name)).into_iter();
        failures.extend(
            logged.filter(|line| line.level == tracing::Level::ERROR).map(|line| line.text),
        );
        failures
    }

    pub(crate) fn secrets(&self) -> Vec<Vec<u8>> {
        self.secrets.lock().unwrap().clone()
    }

    fn next_id(&self) -> String {
        format!("{}-{}", self.name, self.requests.fetch_add(1, Ordering::Relaxed))
    }

    fn note(&self, response: &Response) {
        if response.status >= 500 {
            self.failures.lock().unwrap().push(format!("{response:?}"));
        }
    }
}

/// A client with or without a token. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<String>,
    account: Option<Account>,
    http: reqwest::Client,
    traffic: Arc<Traffic>,
}

impl Caller {
    pub(super) fn new(server: &Server, traffic: Arc<Traffic>) -> Self {
        Self { address: server.address, token: None, account: None, http: http(), traffic }
    }

    pub(super) fn with_token(mut self, token: &str, account: Account) -> Self {
        self.token = Some(token.to_owned());
        self.account = Some(account);
        self
    }

    /// The same person, at another server.
    pub(crate) fn on(&self, server: &Server) -> Self {
        Self { address: server.address, ..self.clone() }
    }

    /// With whatever token somebody comes up with.
    pub(crate) fn bearing(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    pub(crate) fn is_signed_in(&self) -> bool {
        self.account.is_some()
    }

    pub(crate) fn account(&self) -> &Account {
        self.account.as_ref().expect("signed in")
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut builder = self
            .http
            .request(method, format!("http://{}{path}", self.address))
            .header("x-request-id", self.traffic.next_id());
        if let Some(token) = &self.token {
            builder = builder.bearer_auth(token);
        }
        Request { builder, traffic: Arc::clone(&self.traffic) }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request("GET", path).send().await
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: &Value) -> Response {
        self.request("POST", path).key(key).json(body).send().await
    }

    /// For the routes that have no body.
    pub(crate) async fn post_empty(&self, path: &str, key: &str) -> Response {
        self.request("POST", path).key(key).send().await
    }

    pub(crate) async fn delete(&self, path: &str, key: &str) -> Response {
        self.request("DELETE", path).key(key).send().await
    }

    /// Orders and returns the order.
    pub(crate) async fn ordered(&self, key: &str, lines: &[(&str, i64)]) -> Value {
        self.post("/v1/orders", key, &basket(lines)).await.expect(201).json()
    }

    /// Orders one mug and returns the order's id.
    pub(crate) async fn order(&self, key: &str) -> String {
        let order = self.ordered(key, &[("enamel-mug", 1)]).await;
        order["id"].as_str().unwrap().to_owned()
    }

    /// Pays an order with a card.
    pub(crate) async fn pay(&self, order: &str, key: &str, card: &str) -> Response {
        let path = format!("/v1/orders/{order}/payments");
        self.post(&path, key, &json!({ "payment_method": card })).await
    }
}

/// The body of an order.
pub(crate) fn basket(lines: &[(&str, i64)]) -> Value {
    let lines: Vec<Value> =
        lines.iter().map(|(sku, quantity)| json!({ "sku": sku, "quantity": quantity })).collect();
    json!({ "lines": lines })
}

/// A request that is being put together.
#[must_use]
pub(crate) struct Request {
    builder: reqwest::RequestBuilder,
    traffic: Arc<Traffic>,
}

impl Request {
    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Idempotency-Key", key.as_bytes())
    }

    /// One more line; the same name twice is two lines.
    pub(crate) fn header(mut self, name: &str, value: &[u8]) -> Self {
        self.builder = self.builder.header(name, value);
        self
    }

    /// `Prefer: wait=N`
    pub(crate) fn wait(self, seconds: u64) -> Self {
        self.header("Prefer", format!("wait={seconds}").as_bytes())
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    pub(crate) fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.builder = self.builder.header("Content-Type", content_type).body(body.into());
        self
    }

    pub(crate) async fn send(self) -> Response {
        self.try_send().await.expect("an answer")
    }

    /// Where the server may not live long enough to answer.
    pub(crate) async fn try_send(self) -> reqwest::Result<Response> {
        let response = self.builder.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await?.to_vec();
        let response = Response { status, headers, body };
        self.traffic.note(&response);
        Ok(response)
    }
}

/// An answer, as it came.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {}", self.status, self.headers, String::from_utf8_lossy(&self.body))
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// A member at the top of the document, as text.
    pub(crate) fn text(&self, member: &str) -> String {
        let document = self.json();
        document[member].as_str().unwrap_or_else(|| panic!("no {member}: {self:?}")).to_owned()
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }

    /// Insists on a status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Insists on a problem, whole and in the right form.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, code: &str) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let document = self.json();
        assert_eq!(document["code"], code, "{self:?}");
        assert_eq!(document["status"], status, "{self:?}");
        for member in ["type", "title", "detail", "instance"] {
            assert!(document[member].is_string(), "{member}: {self:?}");
        }
        assert!(document["safe_new_key"].is_boolean(), "{self:?}");
        let retryable = document["retryable"].as_bool().unwrap();
        let seconds = self.header("retry-after").map(|seconds| seconds.parse::<u64>().unwrap());
        assert_eq!(retryable, seconds.is_some(), "{self:?}");
        self
    }

    /// Insists on the same answer as before, marked as such.
    #[track_caller]
    pub(crate) fn replays(&self, first: &Self) {
        assert!(self.is_replay(), "no replay: {self:?}");
        self.equals(first);
    }

    /// Insists on the same answer as another, marked or not.
    #[track_caller]
    pub(crate) fn equals(&self, first: &Self) {
        assert_eq!(self.status, first.status, "{self:?}\nis not\n{first:?}");
        assert_eq!(self.body, first.body, "{self:?}\nis not\n{first:?}");
        for name in [
            "content-type",
            "location",
            "etag",
            "content-language",
            "content-digest",
            "idempotency-key-expires",
        ] {
            assert_eq!(self.header(name), first.header(name), "{name}: {self:?}\n{first:?}");
        }
    }
}

/// A new connection for every request: one that a stopping server closes is nobody's fault.
pub(super) fn http() -> reqwest::Client {
    rustls::crypto::ring::default_provider().install_default().ok();
    reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_mins(1))
        .build()
        .unwrap()
}
