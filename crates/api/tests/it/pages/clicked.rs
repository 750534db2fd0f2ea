//! Pay under a person's hands: a real browser, with scripts and without.

use api::catalog::demo;

use crate::app::TestApp;
use crate::chromium::{Chromium, Habits};

const PAID: &str = "Paid once, $24.00";
const ON_RECEIPT: &str = "location.pathname.startsWith('/orders/') && \
                          document.querySelector('h1').innerText.startsWith('Paid once')";

/// A browser that holds a filled-in checkout for one bell.
async fn at_checkout(app: &TestApp, habits: Habits, card: &str) -> Chromium {
    let browser = Chromium::at(&app.server.base_url(), habits).await;
    browser.go("/").await;
    browser.until("document.querySelector('form[action=\"/cart\"] button')").await;
    browser.click("form[action='/cart']:has(input[value='counter-bell']) button").await;
    browser.until("document.querySelector('.cartlink').textContent.includes('(1)')").await;
    fill_in(&browser, card).await;
    browser
}

async fn fill_in(browser: &Chromium, card: &str) {
    browser.go("/checkout").await;
    browser.until("document.querySelector('button.pay')").await;
    browser.fill("input[type=email]", "ada@example.com").await;
    browser.click(&format!("label[for={card}]")).await;
}

const BOTH: [Habits; 2] = {
    let usual = Habits { scripts: true, language: "en-US", size: (1280, 900), patient: true };
    [usual, Habits { scripts: false, ..usual }]
};

/// One order, one charge at the provider, one receipt.
async fn bought_once(app: &TestApp, browser: &Chromium) {
    browser.until(ON_RECEIPT).await;
    assert_eq!(browser.text("h1").await, PAID);
    let path = browser.path().await;
    let order = path.strip_prefix("/orders/").unwrap();
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 1);
    assert_eq!(app.number("select count(*) from payment").await, 1);
    assert_eq!(app.provider_charges(order).await.len(), 1);
    assert_eq!(app.captures(order).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persons_double_click_on_pay_buys_once_with_scripts_and_without() {
    for habits in BOTH {
        for card in ["pm_card_ok", "pm_card_slow"] {
            let app = TestApp::start().await;
            let browser = at_checkout(&app, habits, card).await;
            browser.clicks("button.pay", 2, 40).await;
            bought_once(&app, &browser).await;
            drop(browser);
            app.finish().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_while_pay_is_running_and_another_press_buy_once() {
    for habits in BOTH {
        let app = TestApp::start().await;
        let habits = Habits { patient: false, ..habits };
        let browser = at_checkout(&app, habits, "pm_card_slow").await;
        browser.click("button.pay").await;
        let charging = "select count(*) from provider.charge";
        crate::app::eventually("the card is charged", async || app.number(charging).await == 1)
            .await;
        // The answer is lost on whoever loads the page again.
        browser.refresh().await;
        browser.until("document.readyState === 'complete' && document.querySelector('h1')").await;
        if browser.says("!!document.querySelector('button.pay')").await == true {
            browser.click("button.pay").await;
        } else {
            browser.go("/orders").await;
            browser.until("document.querySelector('a[href^=\"/orders/ord\"]')").await;
            browser.click("a[href^='/orders/ord']").await;
        }
        bought_once(&app, &browser).await;
        drop(browser);
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_and_pressing_pay_again_leads_to_the_same_receipt() {
    for habits in BOTH {
        let app = TestApp::start().await;
        let browser = at_checkout(&app, habits, "pm_card_ok").await;
        browser.click("button.pay").await;
        bought_once(&app, &browser).await;
        let receipt = browser.path().await;
        browser.back().await;
        browser.until("location.pathname === '/checkout'").await;
        if browser.says("!!document.querySelector('button.pay')").await == true {
            browser.click("button.pay").await;
            bought_once(&app, &browser).await;
            assert_eq!(browser.path().await, receipt);
        }
        drop(browser);
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_of_one_cart_lead_to_the_same_receipt() {
    for habits in BOTH {
        let app = TestApp::start().await;
        let browser = at_checkout(&app, habits, "pm_card_ok").await;
        let first = browser.tab().await;
        let second = browser.new_tab().await;
        fill_in(&browser, "pm_card_ok").await;
        browser.to_tab(&first).await;
        browser.click("button.pay").await;
        bought_once(&app, &browser).await;
        let receipt = browser.path().await;
        browser.to_tab(&second).await;
        browser.click("button.pay").await;
        bought_once(&app, &browser).await;
        assert_eq!(browser.path().await, receipt);
        drop(browser);
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_whose_answer_is_lost_finds_its_receipt_by_itself() {
    for habits in BOTH {
        let app =
            TestApp::with(|options| options.lease_ms(2500).provider_timeout_ms(500).jobs()).await;
        let browser = at_checkout(&app, habits, "pm_card_lost_answer").await;
        browser.click("button.pay").await;
        bought_once(&app, &browser).await;
        drop(browser);
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_back_after_signing_out_shows_nobodys_pages() {
    let app = TestApp::start().await;
    for habits in BOTH {
        let browser = at_checkout(&app, habits, "pm_card_ok").await;
        browser.click("button.pay").await;
        browser.until(ON_RECEIPT).await;
        sign_in(&browser, demo::MERCHANT).await;
        for (page, shows) in [("/orders", "/orders/ord_"), ("/mailbox", "ada@example.com")] {
            browser.go(page).await;
            assert!(html(&browser).await.contains(shows), "{page}");
        }
        browser.go("/sign-in").await;
        browser.click("form[action='/sign-out'] button").await;
        browser.until("location.pathname === '/'").await;
        sign_in(&browser, demo::SHOPPER).await;
        for _ in 0..6 {
            browser.back().await;
            browser.until("document.querySelector('h1')").await;
            let (path, html) = (browser.path().await, html(&browser).await);
            assert!(!html.contains("ada@example.com") && !html.contains("/orders/ord_"), "{path}");
        }
        drop(browser);
    }
    app.finish().await;
}

async fn sign_in(browser: &Chromium, email: &str) {
    browser.go("/sign-in").await;
    browser.fill("form[action='/sign-in'] input[type=email]", email).await;
    browser.fill("form[action='/sign-in'] input[type=password]", demo::PASSWORD).await;
    browser.click("form[action='/sign-in'] button").await;
    browser.until("location.pathname !== '/sign-in'").await;
}

async fn html(browser: &Chromium) -> String {
    browser.says("document.documentElement.outerHTML").await.to_string()
}
