//! The stage: a database, a cache and a provider of its own, and the shop as one process or two.

use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::process::{Answer, Database, Launch, Payonce, Proxy, Redis, Request};

/// Times short enough for a test; the lease is what a dead holder costs.
const TIMES: [&str; 5] = [
    "--lease-ms=1000",
    "--deadline-ms=900",
    "--provider-timeout-ms=300",
    "--recover-every-ms=200",
    "--db-connections=8",
];

/// Everything one lane of the matrix needs.
pub(crate) struct Scene {
    pub(crate) shop: Payonce,
    /// A second replica, past the proxy.
    pub(crate) other: Option<Payonce>,
    pub(crate) provider: Payonce,
    pub(crate) database: Database,
    pub(crate) proxy: Proxy,
    pub(crate) redis: Redis,
    pub(crate) token: String,
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
        let by_proxy = Database::url_by(proxy.port(), "shop");
        let launch = launch_of(setting, &provider, &redis, &by_proxy);
        let shop = launch.start();
        let mut direct = launch_of(setting, &provider, &redis, &database.url("shop"));
        if let Some(skew) = setting.skew {
            direct = direct.with_clock(skew);
        }
        let other = setting.with_other.then(|| direct.start());
        let token = sign_in(shop.port()).await;
        Self { shop, other, provider, database, proxy, redis, token, launch, serial: 0 }
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

    /// An order of one bell and two mugs.
    pub(crate) fn order(&self, key: &str) -> Request {
        let lines = json!([{ "sku": "counter-bell", "quantity": 1 }, { "sku": "order-book", "quantity": 2 }]);
        self.request("POST", "/v1/orders")
            .header("idempotency-key", key)
            .json(&json!({ "lines": lines }))
    }

    pub(crate) fn payment(&self, order: &str, key: &str, card: &str) -> Request {
        self.request("POST", format!("/v1/orders/{order}/payments"))
            .header("idempotency-key", key)
            .json(&json!({ "payment_method": card }))
    }

    pub(crate) fn get(&self, path: impl Into<String>) -> Request {
        self.request("GET", path)
    }

    /// A fresh order's id.
    pub(crate) async fn ordered(&mut self) -> String {
        let key = self.key("order");
        let answer = self.order(&key).ask(self.shop.port()).await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.shown());
        answer.text("id")
    }

    pub(crate) async fn look(&self) -> PgConnection {
        self.database.connect("shop").await
    }

    /// What the provider's books say about an order.
    pub(crate) async fn charges(&self, order: &str) -> Vec<Value> {
        let path = format!("/charges?reference={order}");
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
}

fn launch_of(setting: &Setting, provider: &Payonce, redis: &Redis, database_url: &str) -> Launch {
    let mut launch = Launch::new("serve", database_url)
        .flag("--demo")
        .flag("--port=0")
        .flag("--workers=1")
        .flag(&format!("--provider-url={}", provider.url()))
        .flag(&format!("--redis-url={}", redis.url()));
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

pub(crate) async fn sign_in(port: u16) -> String {
    let shopper =
        json!({ "email": api::catalog::demo::SHOPPER, "password": api::catalog::demo::PASSWORD });
    let answer: Answer =
        Request::new("POST", "/v1/sessions").json(&shopper).ask(port).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.shown());
    answer.text("token")
}
