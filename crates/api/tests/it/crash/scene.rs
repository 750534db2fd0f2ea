//! The stage: a database, a cache and a provider of its own, and the shop as one process or two.

mod books;
mod requests;

use rustix::process::Signal;
use serde_json::json;
use sqlx::{Connection as _, PgConnection};

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
        books::control(&provider, &json!({ "hold_webhooks": true })).await;
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
        scene.fills_its_shelves().await;
        scene.listens().await;
        scene
    }

    /// Many rounds sell more than a demo has.
    async fn fills_its_shelves(&self) {
        for sku in ["counter-bell", "order-book"] {
            let path = format!("/v1/products/{sku}/stock-movements");
            let delivery = self.by_merchant("POST", path).header("idempotency-key", sku);
            let delivery = delivery.json(&json!({ "delta": 10_000, "reason": "for many rounds" }));
            let moved = delivery.ask(self.shop.port()).await.unwrap();
            assert_eq!(moved.status, 201, "{}", moved.shown());
        }
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

    pub(crate) async fn look(&self) -> PgConnection {
        self.database.connect("shop").await
    }

    /// The same of a database that may be on its way down or up.
    pub(crate) async fn try_look(&self) -> sqlx::Result<PgConnection> {
        PgConnection::connect(&self.database.url("shop")).await
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

pub(crate) async fn sign_in(port: u16, email: &str) -> String {
    let who = json!({ "email": email, "password": api::catalog::demo::PASSWORD });
    let answer: Answer = Request::new("POST", "/v1/sessions").json(&who).ask(port).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.shown());
    answer.text("token")
}
