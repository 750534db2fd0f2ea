//! What people ask of the shop on a stage, and what the provider tells it.

use api::webhooks::signature::{self, Secret};
use serde_json::{Value, json};

use super::Scene;
use crate::crash::checks::{self, ensure};
use crate::process::Request;

/// What `process::WEBHOOK_SECRET` is the text of.
const WEBHOOK_SECRET_BYTES: &[u8] = b"tests-sign-with-this-secret-only";

impl Scene {
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
}
