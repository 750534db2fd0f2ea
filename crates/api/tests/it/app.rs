//! A whole shop for one test: database, provider, servers, and somebody to buy there.
//!
//! ```ignore
//! let app = TestApp::with(|options| options.lease_ms(1000).redis()).await;
//! let shopper = app.shopper().await;
//! let order = shopper.post("/v1/orders", "k1", &basket(&[("enamel-mug", 1)])).await;
//! app.finish().await; // checks what must hold after every test
//! ```

mod client;
mod options;
mod server;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use api::accounts::session::{self, Kind};
use api::accounts::{self, Account, Role};
use api::app::App;
use api::catalog::demo;
use api::payments::recover;
use api::provider::client::ProviderClient;
use api::provider::mock::{self, MockSettings, Running, WebhookOrder};
use domain::AccountId;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Row};
use tokio::sync::OnceCell;

pub(crate) use client::{Caller, Response, Traffic, basket};
pub(crate) use options::Options;
pub(crate) use server::Server;

use crate::postgres::TestDatabase;
use crate::redis::TestRedis;
use crate::{invariants, log};

/// Signs in every account of a test.
pub(crate) const PASSWORD: &str = demo::PASSWORD;

/// See the module.
pub(crate) struct TestApp {
    pub(crate) server: Server,
    pub(crate) options: Options,
    pub(crate) redis: Option<TestRedis>,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) secret: [u8; 32],
    provider: Running,
    pub(crate) database: TestDatabase,
}

impl TestApp {
    pub(crate) async fn start() -> Self {
        Self::with(|options| options).await
    }

    pub(crate) async fn with(choose: impl FnOnce(Options) -> Options) -> Self {
        log::listen();
        let options = choose(Options::default());
        let database = TestDatabase::new().await;
        let redis = match options.redis {
            true => Some(TestRedis::start(options.redis_password).await),
            false => None,
        };
        let listener = free_listener();
        let address = listener.local_addr().unwrap();
        let secret: [u8; 32] = rand::random();
        let mock = MockSettings {
            database_url: database.url.clone(),
            webhook_url: options.webhooks.then(|| format!("http://{address}/v1/webhooks/provider")),
            webhook_secrets: options.webhook_secrets(),
            webhook_order: WebhookOrder::Straight,
        };
        let provider = mock::serve(mock, free_listener()).await.unwrap();
        let parts = server::Parts {
            database_url: &database.url,
            redis_url: redis.as_ref().map(|redis| options.redis_url(redis)),
            provider_url: &provider.base_url(),
            secret,
            options: &options,
        };
        let server = server::start(&parts, listener).await;
        stock(&server.app).await;
        let traffic = Arc::new(Traffic::new(&secret));
        Self { server, options, redis, traffic, secret, provider, database }
    }

    /// Another process on the same database, as a replica would be.
    pub(crate) async fn second_server(&self) -> Server {
        self.start_server(free_listener()).await
    }

    /// The same, reaching the database at another port of this machine.
    pub(crate) async fn server_behind(&self, database_port: u16) -> Server {
        let mut url = reqwest::Url::parse(&self.database.url).unwrap();
        url.set_port(Some(database_port)).unwrap();
        self.start_on(url.as_str(), free_listener()).await
    }

    /// Where the database listens.
    pub(crate) fn database_port(&self) -> u16 {
        reqwest::Url::parse(&self.database.url).unwrap().port().unwrap_or(5432)
    }

    /// Stops the server and starts a new one at the same address: nothing is left in memory.
    pub(crate) async fn restart(&mut self) {
        let held = self.server.held.lock().unwrap().take();
        self.server.stop().await;
        self.server = self.start_server(held.unwrap()).await;
    }

    async fn start_server(&self, listener: TcpListener) -> Server {
        self.start_on(&self.database.url, listener).await
    }

    async fn start_on(&self, database_url: &str, listener: TcpListener) -> Server {
        let parts = server::Parts {
            database_url,
            redis_url: self.redis.as_ref().map(|redis| self.options.redis_url(redis)),
            provider_url: &self.provider.base_url(),
            secret: self.secret,
            options: &self.options,
        };
        server::start(&parts, listener).await
    }

    /// The application behind the server.
    pub(crate) fn app(&self) -> &App {
        &self.server.app
    }

    /// Nobody in particular.
    pub(crate) fn anonymous(&self) -> Caller {
        Caller::new(&self.server, Arc::clone(&self.traffic))
    }

    /// The shopper of the demo.
    pub(crate) async fn shopper(&self) -> Caller {
        self.signed_in(demo::SHOPPER).await
    }

    /// The merchant of the demo.
    pub(crate) async fn merchant(&self) -> Caller {
        self.signed_in(demo::MERCHANT).await
    }

    /// Somebody who was never here before.
    pub(crate) async fn new_account(&self) -> Caller {
        let email = format!("{:016x}@payonce.test", rand::random::<u64>());
        insert_account(self.app(), &email, Role::Shopper).await;
        self.signed_in(&email).await
    }

    /// Without the password, which takes its time.
    async fn signed_in(&self, email: &str) -> Caller {
        let app = self.app();
        let mut conn = app.db.connection().await.unwrap();
        let (account, _) = accounts::sql::by_email(&mut conn, email).await.unwrap().unwrap();
        let token = session::open(app, &mut conn, account.id, Kind::Bearer).await.unwrap();
        conn.done();
        self.traffic.keep_secret(&token.text);
        self.anonymous().with_token(&token.text, account)
    }

    /// One number out of the database.
    pub(crate) async fn number(&self, query: impl AsRef<str>) -> i64 {
        let query = format!("select ({})::bigint", query.as_ref());
        let mut conn = self.database.connect().await;
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut conn).await.unwrap()
    }

    /// Changes the database behind the application's back.
    pub(crate) async fn execute(&self, statement: impl AsRef<str>) -> u64 {
        let mut conn = self.database.connect().await;
        let statement = AssertSqlSafe(statement.as_ref().to_owned());
        sqlx::query(statement).execute(&mut conn).await.unwrap().rows_affected()
    }

    /// What can still be sold of a product.
    pub(crate) async fn stock(&self, sku: &str) -> i64 {
        self.number(format!("select stock from product where sku = '{sku}'")).await
    }

    /// Sets how much of a product there is, for products nobody has bought yet.
    pub(crate) async fn set_stock(&self, sku: &str, stock: i64) {
        let statement = format!(
            "update product set initial_stock = {stock}, stock = {stock} where sku = '{sku}'"
        );
        assert_eq!(self.execute(statement).await, 1);
    }

    /// What the provider has charged for an order, declined charges included.
    pub(crate) async fn provider_charges(&self, order: &str) -> Vec<ProviderCharge> {
        let mut conn = self.database.connect().await;
        let rows = sqlx::query(
            "select provider_key, status, amount from provider.charge
             where reference = $1 order by created_at",
        )
        .bind(order)
        .fetch_all(&mut conn)
        .await
        .unwrap();
        let charge = |row: &sqlx::postgres::PgRow| ProviderCharge {
            provider_key: row.get("provider_key"),
            status: row.get("status"),
            amount: row.get("amount"),
        };
        rows.iter().map(charge).collect()
    }

    /// How often the provider has taken the money for an order.
    pub(crate) async fn captures(&self, order: &str) -> usize {
        let charges = self.provider_charges(order).await;
        charges.iter().filter(|charge| charge.status == "succeeded").count()
    }

    /// Turns the provider's switches: `down`, `latency_ms`, `hold_webhooks`.
    pub(crate) async fn provider(&self, switches: Value) {
        let url = format!("{}/_control", self.provider.base_url());
        let response = client::http().post(url).json(&switches).send().await.unwrap();
        assert_eq!(response.status(), 200);
    }

    /// The provider as somebody else would call it, and as patiently as they like.
    pub(crate) fn provider_client(&self, patience: Duration) -> ProviderClient {
        ProviderClient::new(&self.provider.base_url(), client::http(), patience)
    }

    /// All calls that the provider has seen, oldest first: method, path, provider key.
    pub(crate) async fn provider_calls(&self) -> Vec<Value> {
        let url = format!("{}/_log", self.provider.base_url());
        let log: Value = client::http().get(url).send().await.unwrap().json().await.unwrap();
        log["data"].as_array().unwrap().clone()
    }

    /// One round of recovery: how many records were taken, and how many settled.
    pub(crate) async fn recover(&self) -> (usize, usize) {
        recover::run_once(self.app()).await.unwrap()
    }

    /// Ends the test: everything settles, and what must always hold is checked.
    pub(crate) async fn finish(self) {
        self.provider(json!({ "down": false, "latency_ms": 0 })).await;
        invariants::hold(&self).await;
        let Self { server, provider, .. } = self;
        server.stop().await;
        provider.stop().await;
    }
}

/// A row of the provider's own ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderCharge {
    pub(crate) provider_key: String,
    pub(crate) status: String,
    pub(crate) amount: Option<i64>,
}

/// Asks again until it holds, ten seconds at most.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("did not happen: {what}")
}

/// Runs all of them at the same time.
pub(crate) async fn together<T: Send + 'static>(
    all: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let running: Vec<_> = all.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::with_capacity(running.len());
    for task in running {
        results.push(task.await.unwrap());
    }
    results
}

/// The goods and people of the demo, without hashing a password for each of them.
async fn stock(app: &App) {
    insert_account(app, demo::SHOPPER, Role::Shopper).await;
    insert_account(app, demo::MERCHANT, Role::Merchant).await;
    let mut conn = app.db.connection().await.unwrap();
    demo::insert(&mut conn, &app.clock).await.unwrap();
    app.catalogue.reload(&mut conn).await.unwrap();
    conn.done();
}

async fn insert_account(app: &App, email: &str, role: Role) {
    static HASH: OnceCell<String> = OnceCell::const_new();
    let hash = async || accounts::password::hash(PASSWORD.to_owned()).await.unwrap();
    let hash = HASH.get_or_init(hash).await;
    let account = Account {
        id: AccountId::from_uuid(app.clock.new_id()),
        role,
        email: Some(email.to_owned()),
        name: None,
        created_at: app.clock.now(),
    };
    let mut conn = app.db.connection().await.unwrap();
    accounts::sql::insert(&mut conn, &account, hash, None).await.unwrap();
    conn.done();
}

fn free_listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}
