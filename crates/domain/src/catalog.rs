//! What the shop sells: the words a basket is written in and the prices it is answered with.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::money::Money;

/// The name of a product in the catalogue: 1 to 64 of `A–Z a–z 0–9 . _ -`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Sku(String);

/// A text that cannot be the SKU of any product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a SKU is 1 to 64 letters, digits, dots, dashes or underscores")]
pub struct SkuError;

impl Sku {
    /// The longest SKU, in bytes.
    pub const LEN_MAX: usize = 64;

    /// The SKU as it was written; case counts.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Sku {
    type Error = SkuError;

    fn try_from(text: String) -> Result<Self, SkuError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let fits = (1..=Self::LEN_MAX).contains(&text.len()) && text.bytes().all(plain);
        if fits { Ok(Self(text)) } else { Err(SkuError) }
    }
}

impl FromStr for Sku {
    type Err = SkuError;

    fn from_str(text: &str) -> Result<Self, SkuError> {
        text.to_owned().try_into()
    }
}

impl fmt::Display for Sku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// So that a map of products keyed by SKU can be asked with a plain text.
impl Borrow<str> for Sku {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// How many pieces of one product: 1 to 99.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64")]
pub struct Quantity(u32);

/// A number of pieces that nobody can order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a quantity is 1 to 99")]
pub struct QuantityError;

impl Quantity {
    /// The most pieces of one product in one order.
    pub const MAX: u32 = 99;

    /// The number of pieces.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Both together, as long as that is still a quantity.
    pub const fn checked_add(self, more: Self) -> Result<Self, QuantityError> {
        match self.0 + more.0 {
            sum if sum <= Self::MAX => Ok(Self(sum)),
            _ => Err(QuantityError),
        }
    }
}

impl TryFrom<i64> for Quantity {
    type Error = QuantityError;

    fn try_from(pieces: i64) -> Result<Self, QuantityError> {
        match u32::try_from(pieces) {
            Ok(pieces @ 1..=Self::MAX) => Ok(Self(pieces)),
            _ => Err(QuantityError),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the catalogue says of one product at the moment an order is priced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Which product.
    pub sku: Sku,
    /// The name the order line will carry.
    pub name: String,
    /// The price of one piece.
    pub unit_price: Money,
}
