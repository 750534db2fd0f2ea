//! A basket: what somebody wants, before anybody has said what it costs.

use crate::catalog::{Quantity, QuantityError, Sku};

/// 1 to 100 lines, each SKU once, each quantity 1 to 99.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basket {
    lines: Vec<BasketLine>,
}

/// One product of a basket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasketLine {
    /// Which product.
    pub sku: Sku,
    /// How many pieces, all lines of this SKU together.
    pub quantity: Quantity,
    /// Where the request first names the SKU, counted from 0.
    pub line: usize,
}

/// Why lines do not make a basket. Line numbers count from 0, as the request has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BasketError {
    /// Nothing is wanted.
    #[error("an order has at least one line")]
    Empty,
    /// Too many lines, counted as they were sent.
    #[error("an order has at most {} lines", Basket::LINES_MAX)]
    TooManyLines,
    /// This line asks for less than one or more than 99 pieces.
    #[error("a quantity is 1 to 99")]
    Quantity {
        /// The line that asks.
        line: usize,
    },
    /// With this line the pieces of its SKU exceed 99.
    #[error("the lines of one product come to 99 pieces at most")]
    MergedQuantity {
        /// The line that goes over.
        line: usize,
    },
}

impl Basket {
    /// The most lines a request may send.
    pub const LINES_MAX: usize = 100;

    /// Reads lines as they were sent: lines of the same SKU become one, at the place of the first.
    ///
    /// Each line must be a quantity by itself, so that `-1` and `3` do not pass as `2`.
    pub fn from_lines(lines: impl IntoIterator<Item = (Sku, i64)>) -> Result<Self, BasketError> {
        let mut basket = Self { lines: Vec::new() };
        for (line, (sku, pieces)) in lines.into_iter().enumerate() {
            if line == Self::LINES_MAX {
                return Err(BasketError::TooManyLines);
            }
            let quantity =
                pieces.try_into().map_err(|QuantityError| BasketError::Quantity { line })?;
            basket.put(BasketLine { sku, quantity, line })?;
        }
        if basket.lines.is_empty() { Err(BasketError::Empty) } else { Ok(basket) }
    }

    /// The lines, in the order their SKUs were first named.
    pub fn lines(&self) -> &[BasketLine] {
        &self.lines
    }

    fn put(&mut self, new: BasketLine) -> Result<(), BasketError> {
        match self.lines.iter_mut().find(|held| held.sku == new.sku) {
            Some(held) => {
                held.quantity = held
                    .quantity
                    .checked_add(new.quantity)
                    .map_err(|QuantityError| BasketError::MergedQuantity { line: new.line })?;
            }
            None => self.lines.push(new),
        }
        Ok(())
    }
}

impl BasketError {
    /// The JSON pointer of the offending member in a request with `lines`.
    pub fn pointer(&self) -> String {
        match self {
            Self::Empty | Self::TooManyLines => "/lines".to_owned(),
            Self::Quantity { line } | Self::MergedQuantity { line } => {
                format!("/lines/{line}/quantity")
            }
        }
    }
}
