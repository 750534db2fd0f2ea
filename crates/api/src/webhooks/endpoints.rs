//! Endpoints: where a merchant wants to hear of what happens, and the secret to check it with.

pub mod create;
pub mod delete;
pub mod read;
pub mod secret;
pub mod sql;

use domain::WebhookEndpointId;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

/// What can be listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum EventKind {
    /// An order was paid.
    #[serde(rename = "order.paid")]
    OrderPaid,
    /// An order was cancelled.
    #[serde(rename = "order.cancelled")]
    OrderCancelled,
    /// A card was refused.
    #[serde(rename = "payment.declined")]
    PaymentDeclined,
    /// Money went back.
    #[serde(rename = "refund.succeeded")]
    RefundSucceeded,
}

impl EventKind {
    const ALL: [Self; 4] =
        [Self::OrderPaid, Self::OrderCancelled, Self::PaymentDeclined, Self::RefundSucceeded];

    /// As stored and sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OrderPaid => "order.paid",
            Self::OrderCancelled => "order.cancelled",
            Self::PaymentDeclined => "payment.declined",
            Self::RefundSucceeded => "refund.succeeded",
        }
    }

    /// The reverse of [`EventKind::as_str`].
    pub fn from_stored(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// An endpoint as rows have it, without its secret.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its id.
    pub id: WebhookEndpointId,
    /// Where events go.
    pub url: String,
    /// Which ones.
    pub events: Vec<EventKind>,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

impl Endpoint {
    /// Where it can be seen.
    pub fn path(&self) -> String {
        format!("/v1/webhook-endpoints/{}", self.id)
    }
}

/// An endpoint on the wire.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
pub struct EndpointBody {
    /// `whe_…`
    #[schema(value_type = String, example = "whe_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub id: WebhookEndpointId,
    /// Where events go.
    #[schema(example = "https://shop.example.com/hooks/payonce")]
    pub url: String,
    /// Which ones.
    pub events: Vec<EventKind>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}

impl From<Endpoint> for EndpointBody {
    fn from(endpoint: Endpoint) -> Self {
        let Endpoint { id, url, events, created_at } = endpoint;
        Self { id, url, events, created_at }
    }
}
