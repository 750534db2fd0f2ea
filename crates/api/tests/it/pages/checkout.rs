//! Pay, and pay again: one order, one charge, one page that tells.

use std::time::Duration;

use serde_json::json;

use super::{Browser, Form};
use crate::app::{TestApp, eventually, together};

/// The id in `/orders/{id}`.
fn id(path: &str) -> String {
    path.strip_prefix("/orders/").unwrap_or_else(|| panic!("no order: {path}")).to_owned()
}

async fn ready(app: &TestApp, card: &str) -> (Browser, Form) {
    let browser = Browser::new(app);
    browser.fill(&[("counter-bell", 1), ("enamel-mug", 1)]).await;
    let form = browser.checkout(card).await;
    (browser, form)
}

/// Presses the same button again and again, a moment apart.
async fn pressed(browser: &Browser, form: &Form, times: u32, gap_ms: u64) -> Vec<String> {
    let press = |nth: u32| {
        let (browser, form) = (browser.clone(), form.clone());
        async move {
            tokio::time::sleep(Duration::from_millis(u64::from(nth) * gap_ms)).await;
            browser.submit(&form).await.leads_to()
        }
    };
    together((0..times).map(press)).await
}

#[tokio::test]
async fn a_double_click_on_pay_is_one_order_one_charge_and_the_same_page() {
    let app = TestApp::start().await;
    for gap_ms in [0, 40, 300] {
        let (browser, form) = ready(&app, "pm_card_slow").await;
        let led_to = pressed(&browser, &form, 2, gap_ms).await;
        assert_eq!(led_to[0], led_to[1]);
        assert_eq!(app.captures(&id(&led_to[0])).await, 1);
        assert_eq!(browser.get(&led_to[0]).await.heading(), "Paid once, $42.00");
    }
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 3);
    app.finish().await;
}

#[tokio::test]
async fn five_presses_over_two_servers_are_one_order() {
    let app = TestApp::start().await;
    let second = app.second_server().await;
    let (browser, form) = ready(&app, "pm_card_ok").await;
    let elsewhere = browser.at(&second);
    let presses = (0..6).map(|nth| {
        let browser = if nth % 2 == 0 { browser.clone() } else { elsewhere.clone() };
        let form = form.clone();
        async move { browser.submit(&form).await.leads_to() }
    });
    let led_to = together(presses).await;
    assert!(led_to.iter().all(|path| *path == led_to[0]), "{led_to:?}");
    assert_eq!(app.captures(&id(&led_to[0])).await, 1);
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn refresh_back_and_a_second_tab_keep_the_key_and_lead_to_the_same_order() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_ok").await;
    let refreshed = browser.checkout("pm_card_ok").await;
    let second_tab = browser.clone().checkout("pm_card_ok").await;
    assert_eq!(form, refreshed);
    assert_eq!(form, second_tab);
    let first = browser.submit(&form).await.leads_to();
    let back = browser.submit(&refreshed).await.leads_to();
    let tab = browser.submit(&second_tab.set("payment_method", "pm_card_declined")).await;
    assert_eq!([&first, &first], [&back, &tab.leads_to()]);
    assert_eq!(app.captures(&id(&first)).await, 1);
    assert_eq!(app.provider_charges(&id(&first)).await.len(), 1);
    app.finish().await;
}

#[tokio::test]
async fn another_email_on_the_way_back_still_leads_to_the_first_order() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_slow").await;
    let changed = form.clone().set("email", "eva@example.com");
    let (slow, quick) = (browser.clone(), browser.clone());
    let first = tokio::spawn(async move { slow.submit(&form).await.leads_to() });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let second = quick.submit(&changed).await.leads_to();
    assert_eq!(first.await.unwrap(), second);
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 1);
    app.finish().await;
}

#[tokio::test]
async fn a_decline_keeps_the_order_and_offers_another_key() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_declined").await;
    let order = browser.submit(&form).await.leads_to();
    let page = browser.get(&order).await;
    assert_eq!(page.heading(), "The bank said no");
    let first_try = page.form(&format!("{order}/payments"));
    assert_ne!(first_try.key(), form.key());
    let declined = first_try.clone().set("payment_method", "pm_card_insufficient_funds");
    assert_eq!(pressed(&browser, &declined, 2, 30).await, [order.clone(), order.clone()]);
    let page = browser.get(&order).await;
    page.says("There was not enough money on the card.");
    let second_try = page.form(&format!("{order}/payments"));
    assert_ne!(second_try.key(), first_try.key());
    pressed(&browser, &second_try, 3, 20).await;
    // The way back to forms that were declined, and to the checkout.
    for old in [&declined, &form] {
        assert_eq!(browser.submit(old).await.leads_to(), order);
    }
    assert_eq!(browser.get(&order).await.heading(), "Paid once, $42.00");
    assert_eq!(app.captures(&id(&order)).await, 1);
    assert_eq!(app.provider_charges(&id(&order)).await.len(), 3);
    assert_eq!(app.number("select count(*) from stock_change").await, 2);
    app.finish().await;
}

#[tokio::test]
async fn paying_what_is_paid_says_so_and_charges_nothing() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_declined").await;
    let order = browser.submit(&form).await.leads_to();
    let tab = browser.get(&order).await.form(&format!("{order}/payments"));
    app.shopper().await;
    browser.submit(&tab).await.leads_to();
    let late = tab.set("idempotency_key", "a-form-that-was-drawn-elsewhere");
    let page = browser.follow(&late).await;
    assert_eq!(page.heading(), "Paid once, $42.00");
    page.says("We did not charge you again.");
    assert_eq!(app.captures(&id(&order)).await, 1);
    app.finish().await;
}

#[tokio::test]
async fn an_order_whose_answer_is_lost_says_so_and_looks_again_until_it_is_known() {
    let app = TestApp::with(|options| options.lease_ms(2500).provider_timeout_ms(500)).await;
    app.provider(json!({ "down": false })).await;
    let (browser, form) = ready(&app, "pm_card_lost_answer").await;
    let order = browser.submit(&form).await.leads_to();
    let page = browser.get(&order).await;
    if page.heading() != "Paid once, $42.00" {
        assert!(page.looks_again());
        page.says("It will not be charged twice.");
    }
    assert_eq!(browser.submit(&form).await.leads_to(), order);
    eventually("the order is paid", async || {
        app.recover().await;
        !browser.get(&order).await.looks_again()
    })
    .await;
    assert_eq!(browser.get(&order).await.heading(), "Paid once, $42.00");
    assert_eq!(app.captures(&id(&order)).await, 1);
    app.finish().await;
}

#[tokio::test]
async fn a_provider_that_takes_nothing_leaves_the_order_to_be_paid_later() {
    let app = TestApp::start().await;
    app.anonymous();
    let (browser, form) = ready(&app, "pm_card_down").await;
    let order = browser.submit(&form).await.leads_to();
    let page = browser.get(&order).await;
    assert_eq!(page.heading(), "Not paid yet, $42.00");
    page.says("The payment provider took nothing.");
    browser.submit(&page.form(&format!("{order}/payments"))).await.leads_to();
    assert_eq!(browser.get(&order).await.heading(), "Paid once, $42.00");
    app.finish().await;
}

#[tokio::test]
async fn cancelling_twice_puts_the_things_back_once() {
    let app = TestApp::start().await;
    let before = app.stock("counter-bell").await;
    let (browser, form) = ready(&app, "pm_card_declined").await;
    let order = browser.submit(&form).await.leads_to();
    let cancel = browser.get(&order).await.form(&format!("{order}/cancel"));
    pressed(&browser, &cancel, 2, 10).await;
    let page = browser.get(&order).await;
    assert_eq!(page.heading(), "This order was cancelled");
    assert!(!page.html().contains("/payments"), "nothing to pay any more");
    assert_eq!(app.stock("counter-bell").await, before);
    app.finish().await;
}

#[tokio::test]
async fn sold_out_is_said_and_the_same_cart_can_be_ordered_once_there_is_more() {
    let app = TestApp::start().await;
    app.set_stock("enamel-mug", 1).await;
    let browser = Browser::new(&app);
    browser.fill(&[("enamel-mug", 2)]).await;
    let form = browser.checkout("pm_card_ok").await;
    assert_eq!(browser.submit(&form).await.leads_to(), "/checkout");
    let page = browser.get("/checkout").await;
    page.says("There is not enough on the shelf.");
    page.says("Only one left");
    let again = page.form("/checkout");
    assert_ne!(again.key(), form.key());
    app.set_stock("enamel-mug", 5).await;
    // The old form is told to look at the new one, not the old refusal as if it were news.
    assert_eq!(browser.submit(&form).await.leads_to(), "/checkout");
    let order = browser.submit(&again.set("email", "ada@example.com")).await.leads_to();
    assert_eq!(browser.get(&order).await.heading(), "Paid once, $36.00");
    app.finish().await;
}

#[tokio::test]
async fn a_changed_price_is_shown_before_it_is_charged() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_ok").await;
    app.execute("update product set price = 2600 where sku = 'counter-bell'").await;
    assert_eq!(browser.submit(&form).await.leads_to(), "/checkout");
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 0);
    let fresh = browser.checkout("pm_card_ok").await;
    assert_ne!(fresh.key(), form.key());
    let order = browser.submit(&fresh).await.leads_to();
    assert_eq!(browser.get(&order).await.heading(), "Paid once, $44.00");
    app.finish().await;
}

#[tokio::test]
async fn an_address_that_is_none_is_asked_for_again_and_nothing_is_ordered() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_slow").await;
    let page = browser.submit(&form.set("email", "ada at home")).await.expect(422);
    page.says("value=\"ada at home\"");
    page.says(
        "id=\"pm_card_slow\" name=\"payment_method\" value=\"pm_card_slow\" required checked",
    );
    assert_eq!(app.number("select count(*) from idempotency_record").await, 0);
    app.finish().await;
}

#[tokio::test]
async fn sending_the_money_back_twice_sends_it_back_once() {
    let app = TestApp::start().await;
    let before = app.stock("enamel-mug").await;
    let (browser, form) = ready(&app, "pm_card_ok").await;
    let order = browser.submit(&form).await.leads_to();
    let refund = browser.get(&order).await.form(&format!("{order}/refunds"));
    pressed(&browser, &refund, 2, 20).await;
    let page = browser.get(&order).await;
    assert_eq!(page.heading(), "All $42.00 went back");
    assert!(page.forms().iter().all(|form| !form.action.ends_with("/refunds")));
    assert_eq!(app.number("select count(*) from refund").await, 1);
    assert_eq!(app.stock("enamel-mug").await, before);
    browser.get(&format!("/inspect?q={}", id(&order))).await.says("$42.00 went back");
    app.finish().await;
}
