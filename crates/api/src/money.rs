//! Money and lists on the wire.

use domain::{Currency, Money};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An amount in minor units of an ISO 4217 currency: 1999 USD is $19.99, 500 JPY is ¥500.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(as = Money)]
pub struct MoneyBody(#[schema(inline)] pub MoneyShape);

/// The members of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoneyShape {
    /// Minor units.
    #[schema(example = 2400, minimum = -9_007_199_254_740_991_i64, maximum = 9_007_199_254_740_991_i64)]
    pub amount: i64,
    /// `USD`, `EUR`, `GBP`, `JPY`, `KWD`
    #[schema(value_type = String, example = "USD", pattern = "^(USD|EUR|GBP|JPY|KWD)$")]
    pub currency: Currency,
}

impl From<Money> for MoneyBody {
    fn from(Money { amount, currency }: Money) -> Self {
        Self(MoneyShape { amount, currency })
    }
}

impl From<MoneyBody> for Money {
    fn from(MoneyBody(MoneyShape { amount, currency }): MoneyBody) -> Self {
        Self { amount, currency }
    }
}
