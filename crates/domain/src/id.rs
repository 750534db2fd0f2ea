//! Identifiers: one type per noun, so that a payment is never looked up by the id of an order.
//!
//! The text form is a prefix and 32 lower-case hex digits, and it is the only form: two spellings
//! of one id would be two paths, two fingerprints and two cache entries.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A text that is not exactly an id of the kind asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {prefix} followed by 32 lower-case hexadecimal digits")]
pub struct IdError {
    /// The prefix the id should have had, underscore included.
    pub prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident = $prefix:literal,)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// What the text form starts with, underscore included.
            pub const PREFIX: &'static str = $prefix;

            /// Wraps a UUID made or read by the caller.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The bare UUID, as the database stores it.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", Self::PREFIX, self.0.simple())
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                parse(text, Self::PREFIX).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

ids! {
    /// Who makes a request and owns what it makes; guests have one too.
    AccountId = "acc_",
    /// An order.
    OrderId = "ord_",
    /// A payment of an order.
    PaymentId = "pay_",
    /// A refund of a payment.
    RefundId = "ref_",
    /// A change of a product's stock.
    StockMovementId = "stm_",
    /// The one receipt of an order.
    ReceiptId = "rcp_",
    /// Where outbound webhooks go.
    WebhookEndpointId = "whe_",
    /// An event that is told to webhook endpoints.
    EventId = "evt_",
    /// A shopper's cart.
    CartId = "cart_",
    /// A balanced set of ledger postings.
    LedgerTransactionId = "ltx_",
}

/// `Uuid` itself reads upper case, hyphens, braces and URNs, hence the look at the digits first.
fn parse(text: &str, prefix: &'static str) -> Result<Uuid, IdError> {
    text.strip_prefix(prefix)
        .filter(|digits| digits.len() == 32)
        .filter(|digits| digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
        .and_then(|digits| Uuid::try_parse(digits).ok())
        .ok_or(IdError { prefix })
}
