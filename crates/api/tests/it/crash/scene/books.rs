//! What the provider of a stage has in its books, and its switches.

use serde_json::Value;

use super::Scene;
use crate::process::{Payonce, Request};

impl Scene {
    /// What the provider's books say about an order.
    pub(crate) async fn charges(&self, order: &str) -> Vec<Value> {
        self.entries(format!("/charges?reference={order}")).await
    }

    pub(crate) async fn refunds(&self, order: &str) -> Vec<Value> {
        self.entries(format!("/refunds?reference={order}")).await
    }

    async fn entries(&self, path: String) -> Vec<Value> {
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
}

pub(super) async fn control(provider: &Payonce, change: &Value) {
    let answer = Request::new("POST", "/_control").json(change).ask(provider.port()).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.shown());
}
