//! Events of the provider: signed by whom we know, taken in once, whatever their order.

mod order;
mod settles;
mod trust;

use std::sync::Arc;
use std::time::Duration;

use api::provider::client::{Answer, ProviderClient, RefundRequest};
use api::webhooks::signature::{self, Secret};
use domain::{Currency, Money, RefundOutcome};
use serde_json::{Value, json};

use crate::app::{Response, TestApp};

/// Someone who sends events as the provider would, or nearly.
struct Sender {
    app: Arc<TestApp>,
    secret: Secret,
    /// More patient than the shop's own client.
    provider: ProviderClient,
}

impl Sender {
    async fn new() -> Self {
        Self::on(TestApp::start().await)
    }

    fn on(app: TestApp) -> Self {
        let secret = app.options.webhook_secrets()[0].clone();
        let provider = app.provider_client(Duration::from_secs(20));
        Self { app: Arc::new(app), secret, provider }
    }

    fn now(&self) -> i64 {
        self.app.app().clock.now().unix_timestamp()
    }

    async fn send(&self, id: &str, event: &Value) -> Response {
        self.send_bytes(id, event.to_string().as_bytes()).await
    }

    async fn send_bytes(&self, id: &str, body: &[u8]) -> Response {
        let timestamp = self.now();
        let signature = signature::sign(&self.secret, id, timestamp, body);
        self.send_signed(id, &timestamp.to_string(), &signature, body).await
    }

    async fn send_signed(
        &self,
        id: &str,
        timestamp: &str,
        signature: &str,
        body: &[u8],
    ) -> Response {
        let nobody = self.app.anonymous();
        nobody
            .request("POST", "/v1/webhooks/provider")
            .header("webhook-id", id.as_bytes())
            .header("webhook-timestamp", timestamp.as_bytes())
            .header("webhook-signature", signature.as_bytes())
            .body("application/json", body)
            .send()
            .await
    }

    async fn outcome(&self, id: &str, event: &Value) -> String {
        self.send(id, event).await.expect(200).text("outcome")
    }

    /// The one charge of an order as the provider has it in its books.
    async fn charge(&self, order: &str) -> Value {
        let charges = self.app.provider_charges(order).await;
        let key = &charges.last().expect("a charge").provider_key;
        let found = self.provider.find_charge(key).await.unwrap().expect("a charge");
        json!({
            "id": found.id, "provider_key": found.provider_key, "reference": found.reference,
            "amount": found.amount, "status": charges.last().unwrap().status,
            "refunded": found.refunded, "created_at": "2026-01-02T03:04:05Z",
        })
    }

    /// Gives part of a charge back at the provider, without us, and returns what it would tell.
    async fn refund_at_the_provider(&self, charge: &Value, key: &str, amount: i64) -> Value {
        let text = |member: &str| charge[member].as_str().unwrap().to_owned();
        let request = RefundRequest {
            provider_key: key.to_owned(),
            charge: text("provider_key"),
            amount: Money::new(amount, Currency::Usd),
            reference: text("reference"),
        };
        let answer = self.provider.refund(&request).await;
        let Answer::Settled(RefundOutcome::Succeeded { provider_refund_id }) = answer else {
            panic!("no refund: {answer:?}")
        };
        let refund = json!({
            "id": provider_refund_id, "provider_key": key, "charge_id": charge["id"],
            "reference": charge["reference"], "amount": request.amount, "status": "succeeded",
            "created_at": "2026-01-02T03:04:05Z",
        });
        json!({ "type": "refund.succeeded", "data": refund })
    }

    /// As the provider does: again and again until it is taken in.
    async fn insist(&self, id: &str, event: &Value) {
        for _ in 0..500 {
            if self.send(id, event).await.status == 200 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{id} was never taken in");
    }

    async fn order_status(&self, order: &str) -> String {
        let merchant = self.app.merchant().await;
        merchant.get(&format!("/v1/orders/{order}")).await.expect(200).text("status")
    }

    async fn finish(self) {
        let Ok(app) = Arc::try_unwrap(self.app) else { panic!("somebody still has the shop") };
        app.finish().await;
    }
}

fn event(status: &str, charge: &Value) -> Value {
    let mut charge = charge.clone();
    charge["status"] = json!(status);
    json!({ "id": "evt", "type": format!("charge.{status}"), "data": charge })
}
