//! One sample of every page in every state.

mod error;
mod inspect;
mod order;
mod shop;
mod statement;

use askama::Template;
use domain::{
    Currency, LedgerAccount, Money, OrderId, OrderStatus, PaymentId, RefundId, RefundStatus, Sku,
};
use time::macros::datetime;
use uuid::Uuid;

use crate::pages::*;
use crate::problem::Code;

pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) html: String,
}

pub(super) fn all() -> Vec<Sample> {
    [
        shop::shops(),
        shop::carts(),
        shop::checkouts(),
        order::orders(),
        order::lists(),
        inspect::inspections(),
        statement::books(),
        error::errors(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A page full of text from strangers.
pub(super) fn hostile() -> String {
    let evil = "\" autofocus onfocus=\"alert(1)\"><script>alert(1)</script>";
    let mut page = shop::checkout(Some(notice(Mark::Plain, evil)));
    page.email = evil.to_owned();
    page.key.key = evil.to_owned();
    page.page.signed_in = Some(evil.to_owned());
    page.basket.lines[0].name = evil.to_owned();
    page.render().expect("renders")
}

const KEY: &str = "7f3a9b0451de4c8e9a072d61c0b8c21e";

fn sample(name: &'static str, page: &impl Template) -> Sample {
    let html = page.render().unwrap_or_else(|error| panic!("{name}: {error}"));
    Sample { name, html }
}

fn layout(section: Section) -> Layout {
    Layout {
        words: Words::of("en"),
        section,
        theme: None,
        csrf: "csrf-sample".to_owned(),
        back: "/".to_owned(),
        cart_count: Some(2),
        signed_in: None,
        merchant: false,
        lab: true,
    }
}

fn products() -> Vec<Product> {
    let product = |sku: &str, name: &str, description: &str, price, stock, in_cart| Product {
        sku: self::sku(sku),
        name: name.to_owned(),
        description: description.to_owned(),
        price,
        stock,
        in_cart,
    };
    vec![
        product("BELL", "Counter bell", "Brass. Rings once per press.", usd(2400), 112, 1),
        product("MUG", "Enamel mug", "Two rings, one handle.", usd(1800), 140, 0),
        product("BOOK", "Order book", "Numbered pages, no carbon.", usd(1200), 163, 0),
        product("LAMP", "Night-shift lamp", "For the person on call.", usd(8900), 107, 0),
        product("PEN", "Signing pen", "Writes a name, once.", eur(6400), 109, 0),
        product("TIN", "Sencha tin", "100 g, from Uji.", jpy(3200), 125, 0),
        product("KETTLE", "Slow kettle", "Pours when it is ready.", eur(5800), 1, 0),
        product("CLOCK", "Station clock", "Stops for nobody.", jpy(10_800), 0, 0),
    ]
}

fn basket() -> Basket {
    Basket {
        lines: vec![
            line("BELL", "Counter bell", usd(2400), 1, 12),
            line("MUG", "Enamel mug", usd(1800), 1, 40),
        ],
        totals: vec![usd(4200).into()],
    }
}

fn line(sku: &str, name: &str, unit_price: Money, quantity: u32, stock: i64) -> Line {
    let amount = unit_price.checked_mul(quantity).expect("small");
    Line { sku: self::sku(sku), name: name.to_owned(), unit_price, quantity, amount, stock }
}

fn order_line(name: &str, quantity: u32, amount: Money) -> OrderLine {
    OrderLine { name: name.to_owned(), quantity, amount }
}

fn offer(amount: i64) -> RefundOffer {
    RefundOffer { key: "key-refund".to_owned(), amount: usd(amount) }
}

fn stray() -> Stray {
    Stray { amount: usd(4200), at: at(58), refund: RefundStatus::Succeeded }
}

fn key() -> KeyFacts {
    KeyFacts {
        key: KEY.to_owned(),
        made_from: "this cart. The same cart always gets the same key".to_owned(),
        bound_to: "this cart and $42.00. Another cart under this key is refused".to_owned(),
        state: "unused".to_owned(),
    }
}

fn notice(mark: Mark, says: &str) -> Notice {
    Notice::new(mark, says, "")
}

fn id(seed: u128) -> OrderId {
    OrderId::from_uuid(Uuid::from_u128(seed))
}

fn sku(text: &str) -> Sku {
    text.parse().expect("a valid SKU")
}

fn at(minute: i64) -> Moment {
    (datetime!(2026-11-29 10:00:07.006 UTC) + time::Duration::minutes(minute)).into()
}

const fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::Usd)
}

const fn eur(amount: i64) -> Money {
    Money::new(amount, Currency::Eur)
}

const fn jpy(amount: i64) -> Money {
    Money::new(amount, Currency::Jpy)
}
