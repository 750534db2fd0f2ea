//! What lies in the cart, as the cart page and the checkout both show it.

use domain::{Money, MoneyError, Sku};

use super::assets;

/// The cart's lines in the order they were put in, and one total per currency.
#[derive(Debug, Clone, Default)]
pub struct Basket {
    pub lines: Vec<Line>,
    pub totals: Vec<Total>,
}

#[derive(Debug, Clone)]
pub struct Line {
    pub sku: Sku,
    pub name: String,
    pub unit_price: Money,
    pub quantity: u32,
    pub amount: Money,
    /// What can still be sold of it.
    pub stock: i64,
}

/// What the lines of one currency come to.
#[derive(Debug, Clone, Copy)]
pub struct Total {
    pub currency: &'static str,
    pub amount: Money,
}

impl Basket {
    /// The lines with their totals.
    ///
    /// # Errors
    /// When a total is too large.
    pub fn of(lines: Vec<Line>) -> Result<Self, MoneyError> {
        let mut totals: Vec<Total> = Vec::new();
        for line in &lines {
            let currency = line.amount.currency.code();
            match totals.iter_mut().find(|total| total.currency == currency) {
                Some(total) => *total = total.amount.checked_add(line.amount)?.into(),
                None => totals.push(line.amount.into()),
            }
        }
        Ok(Self { lines, totals })
    }

    /// What a form's key is bound to: products, quantities and prices, in whatever order they came.
    pub(super) fn content(&self) -> String {
        let mut lines: Vec<String> = self.lines.iter().map(Line::content).collect();
        lines.sort_unstable();
        lines.join("\n")
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Several currencies, which one order cannot hold.
    pub fn is_mixed(&self) -> bool {
        self.totals.len() > 1
    }

    pub(super) fn mixed_words(&self) -> String {
        let codes: Vec<&str> = self.totals.iter().map(|total| total.currency).collect();
        let (last, rest) = codes.split_last().expect("a mixed cart has totals");
        format!("Your cart is priced in {} and {last}.", rest.join(", "))
    }

    pub(super) fn total_words(&self, total: &Total) -> String {
        if self.is_mixed() { format!("Total in {}", total.currency) } else { "Total".to_owned() }
    }
}

impl Line {
    fn content(&self) -> String {
        let Money { amount, currency } = self.unit_price;
        format!("{} {} {amount} {currency}", self.sku, self.quantity)
    }

    pub(super) fn picture(&self) -> &'static str {
        assets::picture(&self.sku)
    }

    pub(super) fn is_short(&self) -> bool {
        self.stock < i64::from(self.quantity)
    }

    pub(super) fn short_words(&self) -> String {
        match self.stock {
            ..=0 => "Sold out".to_owned(),
            1 => "Only one left".to_owned(),
            left => format!("Only {left} left"),
        }
    }
}

impl From<Money> for Total {
    fn from(amount: Money) -> Self {
        Self { currency: amount.currency.code(), amount }
    }
}
