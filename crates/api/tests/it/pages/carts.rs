//! Carts: absolute quantities, a key per content, one currency per order.

use super::Browser;
use crate::app::{TestApp, together};

#[tokio::test]
async fn an_edit_mints_another_key_and_undoing_it_brings_the_first_one_back() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    browser.fill(&[("order-book", 1)]).await;
    let one = browser.checkout("pm_card_ok").await;
    browser.fill(&[("order-book", 2)]).await;
    let two = browser.checkout("pm_card_ok").await;
    browser.fill(&[("order-book", 1)]).await;
    let one_again = browser.checkout("pm_card_ok").await;
    assert_ne!(one.key(), two.key());
    assert_eq!(one.key(), one_again.key());
    app.finish().await;
}

#[tokio::test]
async fn the_form_of_an_older_cart_orders_nothing_and_shows_what_is_in_it_now() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    browser.fill(&[("order-book", 1)]).await;
    let old = browser.checkout("pm_card_ok").await;
    browser.fill(&[("order-book", 3)]).await;
    let page = browser.follow(&old).await;
    page.says("The cart has changed since that form was drawn.");
    page.says("3 × $12.00");
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 0);
    app.finish().await;
}

#[tokio::test]
async fn what_goes_into_the_cart_after_an_order_is_a_new_cart() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    browser.fill(&[("order-book", 1)]).await;
    let form = browser.checkout("pm_card_ok").await;
    let first = browser.submit(&form).await.leads_to();
    browser.get("/checkout").await.says(&first);
    browser.fill(&[("order-book", 1)]).await;
    let same_goods = browser.checkout("pm_card_ok").await;
    assert_ne!(form.key(), same_goods.key());
    let second = browser.submit(&same_goods).await.leads_to();
    assert_ne!(first, second);
    assert_eq!(browser.submit(&form).await.leads_to(), first);
    app.finish().await;
}

#[tokio::test]
async fn a_cart_changed_after_a_lost_answer_is_told_of_the_order_that_was_made() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    browser.fill(&[("order-book", 1)]).await;
    let stale = browser.get("/cart").await.form_with("/cart", "sku", "order-book");
    let form = browser.checkout("pm_card_ok").await;
    assert!(!browser.get("/checkout").await.html().contains("You ordered a moment ago."));
    // The buyer never sees this answer, goes back and wants two.
    let order = browser.submit(&form).await.leads_to();
    browser.submit(&stale.set("quantity", "2")).await.leads_to();
    let page = browser.get("/checkout").await;
    page.says("You ordered a moment ago.");
    page.says(&order);
    assert_ne!(page.form("/checkout").key(), form.key());
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 1);
    // Pressing the first form again leads to what it ordered.
    assert_eq!(browser.submit(&form).await.leads_to(), order);
    app.finish().await;
}

#[tokio::test]
async fn adding_twice_adds_once_and_two_first_things_share_a_cart() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    let shop = browser.get("/").await;
    let forms = ["order-book", "order-book", "enamel-mug", "enamel-mug"]
        .map(|sku| shop.form_with("/cart", "sku", sku));
    let presses = forms.into_iter().map(|form| {
        let browser = browser.clone();
        async move { browser.submit(&form).await.leads_to() }
    });
    together(presses).await;
    assert_eq!(app.number("select count(*) from cart").await, 1);
    assert_eq!(app.number("select sum(quantity) from cart_line").await, 2);
    browser.get("/").await.says("Cart (2)");
    app.finish().await;
}

#[tokio::test]
async fn a_cart_of_two_currencies_is_explained_and_can_be_sorted_out() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    browser.fill(&[("order-book", 1), ("slow-kettle", 1)]).await;
    let page = browser.get("/checkout").await;
    page.says("Your cart is priced in USD and EUR.");
    assert!(page.forms().iter().all(|form| form.action != "/checkout"));
    let keep = browser.get("/cart").await.form_with("/cart/currency", "currency", "EUR");
    browser.submit(&keep).await.leads_to();
    let form = browser.checkout("pm_card_ok").await;
    let order = browser.submit(&form).await.leads_to();
    assert_eq!(browser.get(&order).await.heading(), "Paid once, €53.00");
    app.finish().await;
}

#[tokio::test]
async fn a_cart_takes_nothing_that_is_not_a_quantity_or_not_for_sale() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    let form = browser.get("/").await.form_with("/cart", "sku", "order-book");
    for quantity in ["-1", "100", "1.5", "one", "", "99999999999999999999"] {
        browser.submit(&form.clone().set("quantity", quantity)).await.expect(422);
    }
    for sku in ["no-such-thing", "", "Order-Book'"] {
        browser.submit(&form.clone().set("sku", sku)).await.expect(404);
    }
    assert_eq!(app.number("select count(*) from cart_line").await, 0);
    app.finish().await;
}
