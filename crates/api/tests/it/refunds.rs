//! Refunds: never more than was paid, however many ask, and whoever dies in between.

mod amounts;
mod crowds;
mod unknown;

use serde_json::{Value, json};

use crate::app::{Caller, Response, TestApp};

/// $100.00 in three lines.
const HUNDRED: &[(&str, i64)] = &[("signing-pen", 1), ("enamel-mug", 1), ("brush", 1)];

/// A shop that also sells a brush for $18.00.
async fn shop() -> TestApp {
    let app = TestApp::start().await;
    add_product(&app, "brush", 1800).await;
    app
}

async fn add_product(app: &TestApp, sku: &str, price: i64) {
    app.execute(format!(
        "insert into product (sku, name, description, price, currency, initial_stock, stock)
         values ('{sku}', '{sku}', '', {price}, 'USD', 100, 100)"
    ))
    .await;
    let mut conn = app.app().db.connection().await.unwrap();
    app.app().catalogue.reload(&mut conn).await.unwrap();
    conn.done();
}

/// An order that is paid; gives its id and the payment's.
async fn paid(caller: &Caller, lines: &[(&str, i64)], card: &str) -> (String, String) {
    let order = caller.ordered("order", lines).await;
    let order = order["id"].as_str().unwrap().to_owned();
    let payment = caller.pay(&order, "pay", card).await.expect(201).text("id");
    (order, payment)
}

async fn refund(caller: &Caller, payment: &str, key: &str, body: &Value) -> Response {
    caller.post(&format!("/v1/payments/{payment}/refunds"), key, body).await
}

fn usd(amount: i64) -> Value {
    json!({ "amount": { "amount": amount, "currency": "USD" } })
}

async fn refunded(caller: &Caller, payment: &str) -> i64 {
    let payment = caller.get(&format!("/v1/payments/{payment}")).await.expect(200).json();
    payment["refunded"]["amount"].as_i64().unwrap()
}

async fn status(caller: &Caller, order: &str) -> String {
    caller.get(&format!("/v1/orders/{order}")).await.expect(200).text("status")
}
