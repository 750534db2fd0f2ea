//! How to pay: a token of the provider's, never a card.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The provider's token for how to pay: `pm_` and 1 to 60 of `a–z 0–9 _`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct PaymentMethod(String);

/// A text that cannot be a payment method token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a payment method is pm_ and 1 to 60 lower-case letters, digits or underscores")]
pub struct PaymentMethodError;

impl PaymentMethod {
    /// The token as it goes to the provider.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for PaymentMethod {
    type Error = PaymentMethodError;

    fn try_from(token: String) -> Result<Self, PaymentMethodError> {
        let plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_');
        match token.strip_prefix("pm_") {
            Some(name) if (1..=60).contains(&name.len()) && name.bytes().all(plain) => {
                Ok(Self(token))
            }
            Some(_) | None => Err(PaymentMethodError),
        }
    }
}

impl FromStr for PaymentMethod {
    type Err = PaymentMethodError;

    fn from_str(token: &str) -> Result<Self, PaymentMethodError> {
        token.to_owned().try_into()
    }
}

impl fmt::Display for PaymentMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
