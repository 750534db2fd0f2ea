//! Amounts as people read them, and what a form may not say about them.

use serde_json::json;

use super::Browser;
use crate::app::{PASSWORD, TestApp};

#[tokio::test]
async fn amounts_are_written_by_their_currency_everywhere() {
    let app = TestApp::start().await;
    app.execute(
        "insert into product (sku, name, description, price, currency, initial_stock, stock)
         values ('dinar-box', 'Box', 'A box.', 12345, 'KWD', 5, 5)",
    )
    .await;
    let shopper = app.shopper().await;
    let browser = Browser::new(&app);
    browser.sign_in(api::catalog::demo::SHOPPER, PASSWORD).await.leads_to();
    for (sku, written) in
        [("sencha-tin", "¥3,200"), ("slow-kettle", "€53.00"), ("dinar-box", "12.345")]
    {
        let order = shopper.ordered(sku, &[(sku, 1)]).await;
        let (id, total) = (order["id"].as_str().unwrap(), &order["total"]);
        let paid = shopper.pay(id, &format!("pay-{sku}"), "pm_card_ok").await.expect(201);
        let refunds = format!("/v1/payments/{}/refunds", paid.text("id"));
        let back = shopper.post_empty(&refunds, &format!("back-{sku}")).await.expect(201);
        assert_eq!(back.json()["amount"], *total, "{sku}");
        browser.get(&format!("/orders/{id}")).await.says(written);
        let told = |table: &str, column: &str, words: &str| {
            format!("select count(*) from {table} where {column} like '%{words}%'")
        };
        assert_eq!(app.number(told("mail", "body", written)).await, 2, "{sku}");
        let minor = format!("\"amount\":{}", total["amount"]);
        assert!(app.number(told("event", "convert_from(body, 'UTF8')", &minor)).await > 0, "{sku}");
        let charged = app.provider_charges(id).await;
        assert_eq!(json!(charged[0].amount), total["amount"], "{sku}");
    }
    app.finish().await;
}

#[tokio::test]
async fn what_a_form_says_about_prices_and_states_is_not_believed() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    browser.fill(&[("order-book", 1)]).await;
    let form = browser.checkout("pm_card_declined").await;
    let form = [
        ("total", "1"),
        ("unit_price", "1"),
        ("amount", "1"),
        ("currency", "JPY"),
        ("discount", "100"),
        ("status", "paid"),
        ("account_id", "acc_1"),
    ]
    .iter()
    .fold(form, |form, (name, value)| form.set(name, value));
    let order = browser.submit(&form).await.leads_to();
    let page = browser.get(&order).await;
    assert_eq!(page.heading(), "The bank said no");
    page.says("$12.00");
    let pay = page.form(&format!("{order}/payments")).set("payment_method", "pm_card_ok");
    browser.submit(&pay.set("amount", "1")).await.leads_to();
    assert_eq!(browser.get(&order).await.heading(), "Paid once, $12.00");
    assert_eq!(
        app.number("select sum(amount) from payment where status = 'succeeded'").await,
        1200
    );
    app.finish().await;
}
