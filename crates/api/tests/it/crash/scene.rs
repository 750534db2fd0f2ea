//! The stage: a database, a cache and a provider of its own, and the shop as one process or two.

use api::webhooks::signature::{self, Secret};
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use super::checks::{self, ensure};
use super::receiver::Receiver;
use super::rows::Fault;
use crate::mails::sink::{Manner, Sink};
use crate::process::{Answer, Database, Launch, Payonce, Proxy, Redis, Request};

/// Times short enough for a test; the lease is what a dead holder costs.
const TIMES: [&str; 5] = [
    "--lease-ms=1000",
    "--deadline-ms=900",
    "--provider-timeout-ms=300",
    "--recover-every-ms=200",
    "--db-connections=8",
];

/// What `process::WEBHOOK_SECRET` is the text of.
const WEBHOOK_SECRET_BYTES: &[u8] = b"tests-sign-with-this-secret-only";

/// Everything one lane of the matrix needs.
pub(crate) struct Scene {
    pub(crate) shop: Payonce,
    /// A second replica, past the proxy.
    pub(crate) other: Option<Payonce>,
    pub(crate) provider: Payonce,
    pub(crate) database: Database,
    pub(crate) proxy: Proxy,
    pub(crate) redis: Redis,
    /// Where mails go.
    pub(crate) mails: Sink,
    /// A merchant's server, which wants to hear of everything.
    pub(crate) receiver: Receiver,
    /// Orders that somebody was told of.
    pub(crate) acknowledged: Vec<String>,
    token: String,
    merchant: String,
    launch: Launch,
    serial: u32,
}

/// How a scene is set.
#[derive(Clone, Default)]
pub(crate) struct Setting {
    pub(crate) with_other: bool,
    pub(crate) defect: Option<&'static str>,
    pub(crate) flags: Vec<&'static str>,
    /// How wrong the clock of the second replica is: `+1h`.
    pub(crate) skew: Option<&'static str>,
}

impl Scene {
    pub(crate) async fn set(setting: &Setting) -> Self {
        let database = Database::start();
        database.create("shop").await;
        database.create("provider").await;
        let proxy = Proxy::before(database.port()).await;
        let redis = Redis::start().await;
        let provider = Launch::new("provider", &database.url("provider"))
            .flag("--provider-port=0")
            .flag("--log=warn")
            .start();
        control(&provider, &json!({ "hold_webhooks": true })).await;
        let (mails, receiver) = (Sink::open(Manner::Takes).await, Receiver::open().await);
        let parts = launch_of(setting)
            .flag(&format!("--provider-url={}", provider.url()))
            .flag(&format!("--redis-url={}", redis.url()))
            .flag(&format!("--smtp-url={}", mails.url()));
        let launch = parts.clone().flag(&database_flag(proxy.port()));
        let shop = launch.start();
        let mut direct = parts.flag(&database_flag(database.port()));
        if let Some(skew) = setting.skew {
            direct = direct.with_clock(skew);
        }
        let other = setting.with_other.then(|| direct.start());
        let token = sign_in(shop.port(), api::catalog::demo::SHOPPER).await;
        let merchant = sign_in(shop.port(), api::catalog::demo::MERCHANT).await;
        let acknowledged = Vec::new();
        #[rustfmt::skip]
        let scene = Self {
            shop, other, provider, database, proxy, redis, mails, receiver, acknowledged, token,
            merchant, launch, serial: 0,
        };
        scene.listens().await;
        scene
    }

    async fn listens(&self) {
        for kind in ["order.paid", "order.cancelled", "refund.succeeded"] {
            let made = self.endpoint(kind, kind).ask(self.shop.port()).await.unwrap();
            assert_eq!(made.status, 201, "{}", made.shown());
        }
    }

    /// As after a crash: the same place, nothing remembered.
    pub(crate) fn restart_shop(&mut self) {
        self.shop.kill();
        self.shop = self.launch.start();
    }

    pub(crate) fn key(&mut self, what: &str) -> String {
        self.serial += 1;
        format!("{what}-{}-{:08x}", self.serial, rand::random::<u32>())
    }

    fn request(&self, method: &'static str, path: impl Into<String>) -> Request {
        Request::new(method, path).header("authorization", format!("Bearer {}", self.token))
    }

    pub(crate) fn keyed(
        &self,
        method: &'static str,
        path: impl Into<String>,
        key: &str,
    ) -> Request {
        self.request(method, path).header("idempotency-key", key)
    }

    pub(crate) fn by_merchant(&self, method: &'static str, path: impl Into<String>) -> Request {
        Request::new(method, path).header("authorization", format!("Bearer {}", self.merchant))
    }

    /// An order of one bell and two books.
    pub(crate) fn order(&self, key: &str) -> Request {
        let lines = json!([{ "sku": "counter-bell", "quantity": 1 }, { "sku": "order-book", "quantity": 2 }]);
        self.keyed("POST", "/v1/orders", key).json(&json!({ "lines": lines }))
    }

    pub(crate) fn payment(&self, order: &str, key: &str, card: &str) -> Request {
        self.keyed("POST", format!("/v1/orders/{order}/payments"), key)
            .json(&json!({ "payment_method": card }))
    }

    /// An endpoint at the merchant's server for one kind of event.
    pub(crate) fn endpoint(&self, key: &str, kind: &str) -> Request {
        self.by_merchant("POST", "/v1/webhook-endpoints")
            .header("idempotency-key", key)
            .json(&json!({ "url": self.receiver.url(), "events": [kind] }))
    }

    /// An event as the provider sends it, signed.
    pub(crate) async fn event(&self, id: &str, event: &Value) -> Request {
        let body = event.to_string();
        let now = "select extract(epoch from clock_timestamp())::bigint";
        let now: i64 = sqlx::query_scalar(now).fetch_one(&mut self.look().await).await.unwrap();
        let secret = Secret::new(WEBHOOK_SECRET_BYTES.to_vec());
        Request::new("POST", "/v1/webhooks/provider")
            .header("webhook-id", id)
            .header("webhook-timestamp", now.to_string())
            .header("webhook-signature", signature::sign(&secret, id, now, body.as_bytes()))
            .json(event)
    }

    pub(crate) fn get(&self, path: impl Into<String>) -> Request {
        self.request("GET", path)
    }

    /// A fresh order's id.
    pub(crate) async fn ordered(&mut self) -> String {
        self.placed().await.unwrap()
    }

    /// A fresh order's id, of a shop that may need a moment.
    pub(crate) async fn placed(&mut self) -> Result<String, String> {
        let key = self.key("order");
        let answer = checks::answered(&self.order(&key), self.shop.port(), false).await?;
        ensure(answer.status == 201, || answer.shown())?;
        self.acknowledged.push(answer.text("id"));
        Ok(answer.text("id"))
    }

    /// Pays an order; the payment's id.
    pub(crate) async fn paid(&mut self, order: &str) -> Result<String, String> {
        let key = self.key("pay");
        let paying = self.payment(order, &key, "pm_card_ok");
        let answer = checks::answered(&paying, self.shop.port(), false).await?;
        ensure(answer.status == 201, || answer.shown())?;
        Ok(answer.text("id"))
    }

    pub(crate) async fn look(&self) -> PgConnection {
        self.database.connect("shop").await
    }

    /// The same of a database that may be on its way down or up.
    pub(crate) async fn try_look(&self) -> sqlx::Result<PgConnection> {
        PgConnection::connect(&self.database.url("shop")).await
    }

    /// What the provider's books say about an order.
    pub(crate) async fn charges(&self, order: &str) -> Vec<Value> {
        self.books(format!("/charges?reference={order}")).await
    }

    pub(crate) async fn refunds(&self, order: &str) -> Vec<Value> {
        self.books(format!("/refunds?reference={order}")).await
    }

    async fn books(&self, path: String) -> Vec<Value> {
        let answer = Request::new("GET", path).ask(self.provider.port()).await.unwrap();
        answer.json()["data"].as_array().cloned().unwrap_or_default()
    }

    /// The calls the provider got, `POST /charges` and the like, in order.
    pub(crate) async fn calls(&self, provider_key: &str) -> Vec<String> {
        let path = format!("/_log?provider_key={provider_key}");
        let answer = Request::new("GET", path).ask(self.provider.port()).await.unwrap();
        let calls = answer.json()["data"].as_array().cloned().unwrap_or_default();
        let name = |call: &Value| {
            format!("{} {}", call["method"].as_str().unwrap(), call["path"].as_str().unwrap())
        };
        calls.iter().map(name).collect()
    }

    /// Whether the provider was asked to charge anything.
    pub(crate) async fn was_charged(&self) -> bool {
        let answer = Request::new("GET", "/_log").ask(self.provider.port()).await.unwrap();
        let calls = answer.json()["data"].as_array().cloned().unwrap_or_default();
        calls.iter().any(|call| call["method"] == "POST" && call["path"] == "/charges")
    }

    pub(crate) async fn control_provider(&self, change: &Value) {
        control(&self.provider, change).await;
    }

    /// Exit code and output of `payonce reconcile`.
    pub(crate) fn reconcile(&self) -> (i32, String) {
        Launch::new("reconcile", &self.database.url("shop"))
            .flag(&format!("--provider-url={}", self.provider.url()))
            .flag("--log=error")
            .run()
    }

    pub(crate) fn pause_shop(&self) {
        self.shop.signal(Signal::STOP);
    }

    pub(crate) fn wake_shop(&self) {
        self.shop.signal(Signal::CONT);
    }

    pub(crate) fn pause_other(&self) {
        self.other.iter().for_each(|other| other.signal(Signal::STOP));
    }

    pub(crate) fn wake_other(&self) {
        self.other.iter().for_each(|other| other.signal(Signal::CONT));
    }

    /// Where to ask again after a fault.
    pub(crate) fn living_port(&self, fault: Fault) -> u16 {
        match (&self.other, fault) {
            (Some(other), Fault::Stop) => other.port(),
            _ => self.shop.port(),
        }
    }
}

fn database_flag(port: u16) -> String {
    format!("--database-url={}", Database::url_by(port, "shop"))
}

fn launch_of(setting: &Setting) -> Launch {
    let mut launch = Launch::on_nothing("serve")
        .flag("--demo")
        .flag("--allow-loopback-webhooks")
        .flag("--port=0")
        .flag("--workers=1");
    for flag in TIMES.iter().filter(|flag| !overridden(flag, setting)).chain(&setting.flags) {
        launch = launch.flag(flag);
    }
    match setting.defect {
        Some(defect) => launch.env("PAYONCE_DEFECT", defect),
        None => launch,
    }
}

fn overridden(flag: &str, setting: &Setting) -> bool {
    let name = flag.split('=').next();
    setting.flags.iter().any(|other| other.split('=').next() == name)
}

async fn control(provider: &Payonce, change: &Value) {
    let answer = Request::new("POST", "/_control").json(change).ask(provider.port()).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.shown());
}

pub(super) async fn sign_in(port: u16, email: &str) -> String {
    let who = json!({ "email": email, "password": api::catalog::demo::PASSWORD });
    let answer: Answer = Request::new("POST", "/v1/sessions").json(&who).ask(port).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.shown());
    answer.text("token")
}
