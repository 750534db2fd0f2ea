//! Money: whole minor units of one currency, checked at every step, never a float.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// The currencies Payonce trades in, by ISO 4217 code.
    Currency {
        /// US dollar, in cents.
        Usd = "USD",
        /// Euro, in cents.
        Eur = "EUR",
        /// Pound sterling, in pence.
        Gbp = "GBP",
        /// Yen, which has no minor unit.
        Jpy = "JPY",
        /// Kuwaiti dinar, in fils, a thousand to the dinar.
        Kwd = "KWD",
    }
}

impl Currency {
    /// The ISO 4217 code.
    pub const fn code(self) -> &'static str {
        self.as_str()
    }

    /// How many decimal digits the minor unit stands behind the point (ISO 4217).
    pub const fn exponent(self) -> u32 {
        match self {
            Self::Jpy => 0,
            Self::Usd | Self::Eur | Self::Gbp => 2,
            Self::Kwd => 3,
        }
    }

    /// What an amount is introduced with, so that its currency is never in doubt.
    const fn symbol(self) -> &'static str {
        match self {
            Self::Usd => "$",
            Self::Eur => "€",
            Self::Gbp => "£",
            Self::Jpy => "¥",
            Self::Kwd => "KWD ",
        }
    }
}

/// An amount of one currency: `{"amount": 1999, "currency": "USD"}` is $19.99.
///
/// There is no order between amounts as such, since $1 is neither more nor less than ¥1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Money {
    /// Minor units, may be negative.
    pub amount: i64,
    /// The currency the minor units belong to.
    pub currency: Currency,
}

/// Why two amounts do not make a third.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// The result does not fit 64 bits.
    #[error("the amount is too large")]
    Overflow,
    /// The amounts are of different currencies.
    #[error("amounts of different currencies do not mix")]
    CurrencyMismatch,
}

/// Why a text is not an amount of the currency asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// Not digits, optionally a point and more digits.
    #[error("not a decimal number")]
    Malformed,
    /// More digits behind the point than the currency has; nothing is rounded.
    #[error("more decimal places than the currency has")]
    TooPrecise,
    /// The amount does not fit 64 bits.
    #[error("the amount is too large")]
    Overflow,
}

impl Money {
    /// An amount in minor units.
    pub const fn new(amount: i64, currency: Currency) -> Self {
        Self { amount, currency }
    }

    /// No money, of a currency.
    pub const fn zero(currency: Currency) -> Self {
        Self::new(0, currency)
    }

    /// More than nothing.
    pub const fn is_positive(self) -> bool {
        self.amount > 0
    }

    /// The sum of two amounts of one currency.
    pub fn checked_add(self, other: Self) -> Result<Self, MoneyError> {
        self.combine(other, i64::checked_add)
    }

    /// The difference of two amounts of one currency.
    pub fn checked_sub(self, other: Self) -> Result<Self, MoneyError> {
        self.combine(other, i64::checked_sub)
    }

    /// The amount, so many times.
    pub fn checked_mul(self, times: u32) -> Result<Self, MoneyError> {
        let amount = self.amount.checked_mul(i64::from(times));
        amount.map(|amount| Self { amount, ..self }).ok_or(MoneyError::Overflow)
    }

    /// Plain digits with as many places as the currency has, for form fields and exports: `42.00`.
    pub fn decimal(self) -> String {
        let (whole, fraction) = self.digits();
        format!("{}{whole}{fraction}", self.sign())
    }

    /// Reads what [`Money::decimal`] writes; places behind the point may be left out (`42`, `42.5`)
    /// but never exceeded. Signs other than `-`, spaces and separators are refused.
    pub fn parse_decimal(text: &str, currency: Currency) -> Result<Self, DecimalError> {
        let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
        let (whole, fraction) = match unsigned.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(DecimalError::Malformed),
            None => (unsigned, ""),
        };
        if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return Err(DecimalError::Malformed);
        }
        let places = currency.exponent() as usize;
        if fraction.len() > places {
            return Err(DecimalError::TooPrecise);
        }
        format!("{sign}{whole}{fraction:0<places$}")
            .parse()
            .map(|amount| Self { amount, currency })
            .map_err(|_| DecimalError::Overflow)
    }

    fn combine(self, other: Self, op: fn(i64, i64) -> Option<i64>) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::CurrencyMismatch);
        }
        let amount = op(self.amount, other.amount);
        amount.map(|amount| Self { amount, ..self }).ok_or(MoneyError::Overflow)
    }

    const fn sign(self) -> &'static str {
        if self.amount < 0 { "-" } else { "" }
    }

    /// The digits before the point, and the point with the digits behind it.
    fn digits(self) -> (String, String) {
        let places = self.currency.exponent();
        let scale = 10_u64.pow(places);
        let amount = self.amount.unsigned_abs();
        let fraction = match places {
            0 => String::new(),
            places => format!(".{:0width$}", amount % scale, width = places as usize),
        };
        ((amount / scale).to_string(), fraction)
    }
}

/// For people: `$42.00`, `¥13,400`, `KWD 12.345`, `-€0.05`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = self.digits();
        let (sign, symbol) = (self.sign(), self.currency.symbol());
        write!(f, "{sign}{symbol}{}{fraction}", grouped(&whole))
    }
}

/// A comma between each three digits, counted from the right.
fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn a_comma_stands_before_each_three_digits_but_never_in_front() {
        let cases = [("0", "0"), ("999", "999"), ("1000", "1,000"), ("123456", "123,456")];
        for (plain, expected) in cases {
            assert_eq!(grouped(plain), expected);
        }
    }
}
