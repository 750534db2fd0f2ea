//! The laws of the domain: properties over arbitrary values, and every transition table in full.

mod ledger;
mod money;
mod order;
mod payment;
mod pricing;
mod refund;
mod text;

use domain::{Currency, Money, PaymentId, Sku};
use proptest::prelude::*;

fn currency() -> impl Strategy<Value = Currency> {
    proptest::sample::select(Currency::ALL)
}

fn money() -> impl Strategy<Value = Money> {
    (any::<i64>(), currency()).prop_map(|(amount, currency)| Money::new(amount, currency))
}

fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::Usd)
}

fn sku(text: &str) -> Sku {
    text.parse().expect("a test names valid SKUs")
}

fn payment(number: u128) -> PaymentId {
    PaymentId::from_uuid(uuid::Uuid::from_u128(number))
}
