//! The price of a basket, from the catalogue alone: a client may expect a total, never set one.

use crate::catalog::{Offer, Quantity, Sku};
use crate::money::{Money, MoneyError};
use crate::order::basket::{Basket, BasketLine};

/// A basket with its prices: what the order will say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedOrder {
    /// The lines, in the order of the basket.
    pub lines: Vec<PricedLine>,
    /// The sum of the line totals.
    pub total: Money,
}

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedLine {
    /// Which product.
    pub sku: Sku,
    /// Its name when the order was made.
    pub name: String,
    /// How many pieces.
    pub quantity: Quantity,
    /// The price of one piece.
    pub unit_price: Money,
    /// The price of all pieces.
    pub line_total: Money,
}

/// Why a basket has no price. Line numbers count from 0, as the request has them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PricingError {
    /// The catalogue does not have this product.
    #[error("no product has the SKU {sku}")]
    UnknownSku {
        /// The line that names it.
        line: usize,
        /// The name.
        sku: Sku,
    },
    /// This line is priced in another currency than the lines before it.
    #[error("an order has one currency")]
    MixedCurrencies {
        /// The line that differs.
        line: usize,
    },
    /// With this line the total no longer fits 64 bits.
    #[error("the total is too large")]
    Overflow {
        /// The line that goes over.
        line: usize,
    },
}

/// The total is not what the client expected; nothing has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the total is now {total}")]
pub struct PriceChanged {
    /// The total by today's catalogue.
    pub total: Money,
}

impl Basket {
    /// Prices every line by what `lookup` says of its SKU.
    pub fn price(
        &self,
        lookup: impl Fn(&Sku) -> Option<Offer>,
    ) -> Result<PricedOrder, PricingError> {
        let mut lines = Vec::with_capacity(self.lines().len());
        let mut sum: Option<Money> = None;
        for line in self.lines() {
            let priced = line.price(lookup(&line.sku))?;
            let total = sum.map_or(Ok(priced.line_total), |sum| sum.checked_add(priced.line_total));
            sum = Some(total.map_err(|error| line.refuse(error))?);
            lines.push(priced);
        }
        let total = sum.expect("a basket has at least one line");
        Ok(PricedOrder { lines, total })
    }
}

impl BasketLine {
    fn price(&self, offer: Option<Offer>) -> Result<PricedLine, PricingError> {
        let Some(Offer { name, unit_price, .. }) = offer else {
            return Err(PricingError::UnknownSku { line: self.line, sku: self.sku.clone() });
        };
        let line_total =
            unit_price.checked_mul(self.quantity.get()).map_err(|error| self.refuse(error))?;
        let (sku, quantity) = (self.sku.clone(), self.quantity);
        Ok(PricedLine { sku, name, quantity, unit_price, line_total })
    }

    fn refuse(&self, error: MoneyError) -> PricingError {
        match error {
            MoneyError::Overflow => PricingError::Overflow { line: self.line },
            MoneyError::CurrencyMismatch => PricingError::MixedCurrencies { line: self.line },
        }
    }
}

impl PricingError {
    /// The JSON pointer of the offending member in a request with `lines`.
    pub fn pointer(&self) -> String {
        match self {
            Self::UnknownSku { line, .. } | Self::MixedCurrencies { line } => {
                format!("/lines/{line}/sku")
            }
            Self::Overflow { line } => format!("/lines/{line}/quantity"),
        }
    }
}

/// Agrees when nothing was expected, or exactly this total in exactly this currency.
pub fn check_expected(total: Money, expected: Option<Money>) -> Result<(), PriceChanged> {
    match expected {
        None => Ok(()),
        Some(expected) if expected == total => Ok(()),
        Some(_) => Err(PriceChanged { total }),
    }
}
