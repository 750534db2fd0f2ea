//! The mock provider, as the application's client and as anybody with a socket sees it.

mod books;
mod charges;
mod client;
mod refunds;
mod webhooks;

use std::net::TcpListener;
use std::time::Duration;

use api::provider::client::{Answer, Charge, ChargeRequest, ProviderClient, RefundRequest};
use api::provider::mock::{self, MockSettings, Running, WebhookOrder};
use domain::{ChargeOutcome, Currency, Money};
use serde_json::{Value, json};

use crate::postgres::TestDatabase;

/// A provider with a database of its own, and clients for it.
struct Provider {
    client: ProviderClient,
    base_url: String,
    running: Running,
    database: TestDatabase,
}

impl Provider {
    async fn start() -> Self {
        Self::start_on(TestDatabase::empty().await).await
    }

    async fn start_on(database: TestDatabase) -> Self {
        let settings = Self::quiet(&database);
        Self::start_with(database, settings).await
    }

    /// Tells nobody what happens.
    fn quiet(database: &TestDatabase) -> MockSettings {
        MockSettings {
            database_url: database.url.clone(),
            webhook_url: None,
            webhook_secrets: Vec::new(),
            webhook_order: WebhookOrder::Straight,
        }
    }

    async fn start_with(database: TestDatabase, settings: MockSettings) -> Self {
        let running = mock::serve(settings, free_listener()).await.unwrap();
        let base_url = running.base_url();
        let client = ProviderClient::new(&base_url, http(), Duration::from_secs(5));
        Self { client, base_url, running, database }
    }

    /// As a new process would find it; the old one has stopped.
    async fn restart(self) -> Self {
        self.running.stop().await;
        Self::start_on(self.database).await
    }

    /// Too short for an answer that does not come, long enough for one that does.
    fn impatient(&self) -> ProviderClient {
        ProviderClient::new(&self.base_url, http(), Duration::from_millis(700))
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let response =
            http().post(format!("{}{path}", self.base_url)).json(body).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn get(&self, path: &str) -> Value {
        let response = http().get(format!("{}{path}", self.base_url)).send().await.unwrap();
        response.json().await.unwrap()
    }

    async fn control(&self, switches: Value) {
        assert_eq!(self.post("/_control", &switches).await.0, 200);
    }

    async fn charged(&self, key: &str, amount: i64, card: &str) -> ChargeRequest {
        let request = charge(key, amount, card);
        let answer = self.client.charge(&request).await;
        assert!(matches!(answer, Answer::Settled(ChargeOutcome::Succeeded { .. })), "{answer:?}");
        request
    }

    async fn found(&self, key: &str) -> Charge {
        self.client.find_charge(key).await.unwrap().expect("a charge under this key")
    }
}

fn free_listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn http() -> reqwest::Client {
    rustls::crypto::ring::default_provider().install_default().ok();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::Usd)
}

fn charge(key: &str, amount: i64, card: &str) -> ChargeRequest {
    ChargeRequest {
        provider_key: key.to_owned(),
        reference: format!("ord_{key}"),
        amount: usd(amount),
        payment_method: card.to_owned(),
    }
}

fn refund_of(charge: &ChargeRequest, key: &str, amount: i64) -> RefundRequest {
    RefundRequest {
        provider_key: key.to_owned(),
        charge: charge.provider_key.clone(),
        amount: usd(amount),
        reference: charge.reference.clone(),
    }
}

fn charge_json(key: &str, amount: i64, card: &str) -> Value {
    json!(charge(key, amount, card))
}

/// Asks again until there is an answer, ten seconds at most.
async fn eventually<T>(what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    for _ in 0..500 {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} did not happen")
}
