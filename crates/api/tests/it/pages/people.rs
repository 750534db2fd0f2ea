//! Guests, accounts, and what comes along when one becomes the other.

use std::time::Duration;

use api::catalog::demo;

use super::{Browser, Form, From, Page};
use crate::app::{TestApp, together};

const EMAIL: &str = "grace@example.com";
const PASSWORD: &str = "forty-two bells";

async fn ready(app: &TestApp, card: &str) -> (Browser, Form) {
    let browser = Browser::new(app);
    browser.fill(&[("order-book", 1)]).await;
    let form = browser.checkout(card).await;
    (browser, form)
}

async fn new_account(browser: &Browser, email: &str) -> Form {
    let form = browser.get("/sign-in").await.form("/accounts");
    form.set("email", email).set("password", PASSWORD).set("name", "Grace")
}

#[tokio::test]
async fn signing_in_brings_cart_and_orders_along_under_a_new_token() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_ok").await;
    let order = browser.submit(&form).await.leads_to();
    browser.fill(&[("enamel-mug", 2)]).await;
    let as_guest = browser.snapshot();
    browser.sign_in(demo::SHOPPER, demo::PASSWORD).await.leads_to();
    assert_ne!(browser.cookie("payonce_session"), as_guest.cookie("payonce_session"));
    assert_eq!(browser.get(&order).await.heading(), "Paid once, $12.00");
    browser.get("/orders").await.says(&order);
    browser.get("/").await.says("Cart (2)");
    // Whoever planted the guest's cookie has nothing of the shopper's.
    as_guest.get(&order).await.expect(404);
    as_guest.get("/").await.says("Cart (0)");
    // Who made it stays who made it.
    let guests = "select count(*) from \"order\" o join account a on a.role = 'guest'
                  and substring(o.made_by from 1 for 16) = uuid_send(a.id)";
    assert_eq!(app.number(guests).await, 1);
    app.finish().await;
}

#[tokio::test]
async fn a_guest_who_signs_in_between_two_presses_has_one_order() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_ok").await;
    let order = browser.submit(&form).await.leads_to();
    browser.sign_in(demo::SHOPPER, demo::PASSWORD).await.leads_to();
    assert_eq!(browser.submit(&form).await.leads_to(), order);
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 1);
    app.finish().await;
}

#[tokio::test]
async fn a_form_drawn_before_signing_in_is_good_after_it_and_orders_once() {
    let app = TestApp::start().await;
    // Not every browser says which page a form comes from.
    for (n, from) in [From::OurPage, From::Unsaid].into_iter().enumerate() {
        let (browser, form) = ready(&app, "pm_card_ok").await;
        browser.sign_in(demo::SHOPPER, demo::PASSWORD).await.leads_to();
        let fresh = browser.checkout("pm_card_ok").await;
        assert_eq!(fresh.key(), form.key());
        assert_ne!(fresh.fields["csrf"], form.fields["csrf"]);
        let order = browser.send(&form, from).await.leads_to();
        assert_eq!(browser.get(&order).await.heading(), "Paid once, $12.00");
        assert_eq!(browser.submit(&fresh).await.leads_to(), order);
        let orders = app.number(r#"select count(*) from "order""#).await;
        assert_eq!(orders, i64::try_from(n).unwrap() + 1);
    }
    app.finish().await;
}

#[tokio::test]
async fn what_a_guest_was_drawn_is_good_in_the_browser_that_signed_in_and_nowhere_else() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_ok").await;
    let (_, others) = ready(&app, "pm_card_ok").await;
    browser.sign_in(demo::SHOPPER, demo::PASSWORD).await.leads_to();
    let before = browser.cookie("payonce_before").expect("a word about the guest's forms");
    let session = browser.cookie("payonce_session").unwrap();
    let (_, seal) = before.split_once('.').unwrap();
    // Somebody else's session, with the cookie of this one; and this one, with a forged cookie.
    let (somebody, _) = ready(&app, "pm_card_ok").await;
    let forged = format!("{}.{seal}", others.fields["csrf"]);
    for (session, before, csrf) in [
        (somebody.cookie("payonce_session").unwrap(), &before, &form.fields["csrf"]),
        (session.clone(), &forged, &others.fields["csrf"]),
        (session.clone(), &others.fields["csrf"], &others.fields["csrf"]),
    ] {
        let jar = format!("payonce_session={session}; payonce_before={before}");
        let body = form.clone().set("csrf", csrf).encoded();
        let request = app.anonymous().request("POST", "/checkout").header("Cookie", jar.as_bytes());
        let refused = request.body("application/x-www-form-urlencoded", body).send().await;
        assert_eq!(refused.status, 403, "{refused:?}");
    }
    // Signing out ends it.
    let out = browser.get("/sign-in").await.form("/sign-out");
    browser.submit(&out).await.leads_to();
    assert_eq!(browser.cookie("payonce_before"), None);
    browser.send(&form, From::Unsaid).await.expect(200).says("The form was drawn again");
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 0);
    app.finish().await;
}

#[tokio::test]
async fn signing_in_while_the_first_press_is_at_work_loses_neither_order_nor_money() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_slow").await;
    let (pressing, held) = (browser.snapshot(), form.clone());
    let press = tokio::spawn(async move { pressing.submit(&held).await.leads_to() });
    tokio::time::sleep(Duration::from_millis(100)).await;
    browser.sign_in(demo::SHOPPER, demo::PASSWORD).await.leads_to();
    let again = browser.submit(&form).await.leads_to();
    let order = press.await.unwrap();
    let seen = browser.get(&order).await;
    assert!(seen.heading().contains("$12.00"), "{}", seen.heading());
    assert!([order.clone(), "/checkout".to_owned()].contains(&again), "{again}");
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 1);
    assert_eq!(app.captures(order.trim_start_matches("/orders/")).await, 1);
    app.finish().await;
}

#[tokio::test]
async fn pressing_sign_in_twice_signs_in() {
    let app = TestApp::start().await;
    let (browser, _) = ready(&app, "pm_card_ok").await;
    let form = browser.get("/sign-in").await.form("/sign-in");
    let form = form.set("email", demo::SHOPPER).set("password", demo::PASSWORD);
    let guest = browser.snapshot();
    let presses = (0..2).map(|_| {
        let (tab, form) = (guest.snapshot(), form.clone());
        async move {
            tab.submit(&form).await.leads_to();
            tab
        }
    });
    for tab in together(presses).await {
        tab.get("/").await.says("Cart (1)");
        tab.get("/sign-in").await.says("You are signed in");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_wrong_password_says_so_and_keeps_the_cart() {
    let app = TestApp::start().await;
    let (browser, _) = ready(&app, "pm_card_ok").await;
    let page = browser.sign_in(demo::SHOPPER, "not the password").await.expect(422);
    page.says("E-mail and password do not fit.");
    page.says("Cart (1)");
    app.finish().await;
}

#[tokio::test]
async fn an_account_form_pressed_twice_makes_one_account_and_signs_in() {
    let app = TestApp::start().await;
    let (browser, _) = ready(&app, "pm_card_ok").await;
    let form = new_account(&browser, EMAIL).await;
    let guest = browser.snapshot();
    let presses = (0..2).map(|_| {
        let (tab, form) = (guest.snapshot(), form.clone());
        async move { tab.submit(&form).await.leads_to() }
    });
    together(presses).await;
    browser.submit(&form).await.leads_to();
    browser.get("/").await.says("Grace");
    let made = format!("select count(*) from account where email = '{EMAIL}'");
    assert_eq!(app.number(made).await, 1);
    let other = Browser::new(&app);
    let page = other.submit(&new_account(&other, EMAIL).await).await.expect(422);
    page.says("An account with this e-mail exists.");
    app.finish().await;
}

#[tokio::test]
async fn signing_out_twice_is_signing_out_once() {
    let app = TestApp::start().await;
    let (browser, _) = ready(&app, "pm_card_ok").await;
    browser.sign_in(demo::SHOPPER, demo::PASSWORD).await.leads_to();
    let out = browser.get("/sign-in").await.form("/sign-out");
    let (signed_in, twice) = (browser.snapshot(), browser.snapshot());
    browser.submit(&out).await.leads_to();
    assert_eq!(twice.submit(&out).await.leads_to(), "/");
    signed_in.get("/sign-in").await.says("I have an account");
    browser.get("/").await.says("Cart (0)");
    app.finish().await;
}

#[tokio::test]
async fn anothers_order_is_not_there_and_the_merchant_sees_it() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_ok").await;
    let order = browser.submit(&form).await.leads_to();
    let id = order.trim_start_matches("/orders/");
    let stranger = Browser::new(&app);
    stranger.get(&order).await.expect(404);
    stranger.get(&format!("/inspect?q={id}")).await.says("Nothing under it");
    stranger.get(&format!("/inspect?q={}", form.key())).await.says("Nothing under it");
    stranger.get("/mailbox").await.says("No mail yet");
    browser.get(&format!("/inspect?q={}", form.key())).await.says("Charged once, $12.00");
    browser.get("/mailbox").await.says("ada@example.com");
    stranger.sign_in(demo::MERCHANT, demo::PASSWORD).await.leads_to();
    assert_eq!(stranger.get(&order).await.heading(), "Paid once, $12.00");
    stranger.get("/mailbox").await.says("ada@example.com");
    app.finish().await;
}

#[tokio::test]
async fn a_merchant_may_cancel_anothers_unpaid_order_and_is_not_asked_to_pay_it() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app, "pm_card_declined").await;
    let order = browser.submit(&form).await.leads_to();
    let actions =
        |page: &Page| page.forms().into_iter().map(|form| form.action).collect::<Vec<_>>();
    let (pay, cancel) = (format!("{order}/payments"), format!("{order}/cancel"));
    let own = actions(&browser.get(&order).await);
    assert!(own.contains(&pay) && own.contains(&cancel), "{own:?}");
    let merchant = Browser::new(&app);
    merchant.sign_in(demo::MERCHANT, demo::PASSWORD).await.leads_to();
    let page = merchant.get(&order).await;
    assert!(!actions(&page).contains(&pay));
    assert_eq!(merchant.submit(&page.form(&cancel)).await.leads_to(), order);
    assert_eq!(browser.get(&order).await.heading(), "This order was cancelled");
    app.finish().await;
}
