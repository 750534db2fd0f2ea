//! `/`: the promise, the proof, and things to buy.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use domain::{Currency, Money, Quantity, Sku};
use serde::Deserialize;

use super::basket::Basket;
use super::layout::{Layout, Section};
use super::marks::Notice;
use super::response::{self, Shown};
use super::visitor::Visitor;
use super::{assets, cart};
use crate::app::App;
use crate::catalog;

/// More than a person looks through.
const SHOWN_MAX: i64 = 100;

/// The currency filter; one that we do not know filters nothing.
#[derive(Deserialize)]
pub(super) struct Filter {
    currency: Option<String>,
}

/// `GET /`
pub(super) async fn show_shop(
    app: App,
    request: HttpRequest,
    filter: web::Query<Filter>,
) -> HttpResponse {
    response::answer(&request, show(&app, &request, &filter).await)
}

async fn show(app: &App, request: &HttpRequest, filter: &Filter) -> Shown {
    let visitor = Visitor::greet(app, request).await?;
    let chosen: Option<Currency> = filter.currency.as_ref().and_then(|code| code.parse().ok());
    let (_, basket) = cart::contents(app, &visitor).await?;
    let mut conn = app.db.connection().await?;
    let listed = catalog::sql::page(&mut conn, None, SHOWN_MAX).await;
    let listed = conn.end(listed)?.into_iter().map(|(_, product)| product);
    let mut products: Vec<Product> = listed.map(|p| Product::new(p, &basket)).collect();
    let currencies = currencies(&products);
    products.retain(|product| chosen.is_none_or(|chosen| product.price.currency == chosen));
    let page = visitor.layout(app, request, Section::Shop).await?;
    let page = Shop { page, currencies, chosen, products, notice: None };
    Ok(visitor.show(request, &page))
}

/// Each currency once, in the order of the catalogue.
fn currencies(products: &[Product]) -> Vec<Choice> {
    let mut currencies: Vec<Choice> = Vec::new();
    for Product { price, .. } in products {
        if currencies.iter().all(|choice| choice.currency != price.currency) {
            currencies.push(price.currency.into());
        }
    }
    currencies
}

#[derive(Debug, Template)]
#[template(path = "shop.html")]
pub struct Shop {
    pub page: Layout,
    /// The currencies that occur in the catalogue.
    pub currencies: Vec<Choice>,
    pub chosen: Option<Currency>,
    pub products: Vec<Product>,
    pub notice: Option<Notice>,
}

#[derive(Debug, Clone)]
pub struct Product {
    pub sku: Sku,
    pub name: String,
    pub description: String,
    pub price: Money,
    /// What can still be sold.
    pub stock: i64,
    pub in_cart: u32,
}

/// One currency of the filter.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    pub code: &'static str,
    currency: Currency,
}

impl Shop {
    fn heading(&self) -> String {
        let count = number_word(self.products.len());
        let things = if self.products.len() == 1 { "thing" } else { "things" };
        format!("{count} {things} to buy twice by accident")
    }

    fn is_chosen(&self, choice: &Choice) -> bool {
        self.chosen == Some(choice.currency)
    }

    /// Back to the same filter and the same product after it went into the cart.
    fn back_to(&self, product: &Product) -> String {
        match self.chosen {
            Some(currency) => format!("/?currency={}#{}", currency.code(), product.sku),
            None => format!("/#{}", product.sku),
        }
    }
}

impl Product {
    fn new(product: catalog::Product, basket: &Basket) -> Self {
        let catalog::Product { sku, name, description, price, stock } = product;
        let in_cart = basket.lines.iter().find(|line| line.sku == sku);
        let in_cart = in_cart.map_or(0, |line| line.quantity);
        Self { sku, name, description, price, stock, in_cart }
    }

    fn picture(&self) -> &'static str {
        assets::picture(&self.sku)
    }

    fn is_sold_out(&self) -> bool {
        self.stock <= 0
    }

    fn is_scarce(&self) -> bool {
        self.stock <= 1
    }

    fn stock_words(&self) -> String {
        match self.stock {
            ..=0 => "Sold out".to_owned(),
            1 => "Last one".to_owned(),
            left => format!("{left} in stock"),
        }
    }

    /// The form says how many the cart shall hold, so pressing twice adds one.
    fn next_quantity(&self) -> u32 {
        (self.in_cart + 1).min(Quantity::MAX)
    }

    fn button(&self) -> &'static str {
        if self.in_cart == 0 { "Add to cart" } else { "One more" }
    }
}

impl Choice {
    pub(super) fn label(&self) -> String {
        match self.currency {
            Currency::Usd => "USD $".to_owned(),
            Currency::Eur => "EUR €".to_owned(),
            Currency::Gbp => "GBP £".to_owned(),
            Currency::Jpy => "JPY ¥".to_owned(),
            Currency::Kwd => "KWD".to_owned(),
        }
    }
}

impl From<Currency> for Choice {
    fn from(currency: Currency) -> Self {
        Self { code: currency.code(), currency }
    }
}

fn number_word(count: usize) -> String {
    const WORDS: [&str; 13] = [
        "No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten",
        "Eleven", "Twelve",
    ];
    WORDS.get(count).map_or_else(|| count.to_string(), |word| (*word).to_owned())
}
