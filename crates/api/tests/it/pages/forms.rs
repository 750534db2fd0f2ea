//! Where a form comes from: our page, another site, nowhere; and what pages carry with them.

use std::collections::BTreeSet;

use super::{Browser, Form, From};
use crate::app::TestApp;

async fn records(app: &TestApp) -> i64 {
    app.number("select count(*) from idempotency_record").await
}

async fn ready(app: &TestApp) -> (Browser, Form) {
    let browser = Browser::new(app);
    browser.fill(&[("order-book", 1)]).await;
    let form = browser.checkout("pm_card_ok").await;
    (browser, form)
}

#[tokio::test]
async fn a_form_that_another_site_sends_is_refused_and_nothing_is_stored() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app).await;
    let chosen = form.clone().set("idempotency_key", "chosen-by-somebody-else");
    let forged = form.clone().set("csrf", "forged");
    for (form, from) in [
        (&form, From::AnotherSite),
        (&chosen, From::AnotherSite),
        (&forged, From::AnotherSite),
        (&forged, From::Unsaid),
    ] {
        let page = browser.send(form, from).await.expect(403);
        page.says("/problems/forbidden");
    }
    assert_eq!(records(&app).await, 0);
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 0);
    app.finish().await;
}

#[tokio::test]
async fn a_form_without_its_key_or_with_no_key_at_all_gets_a_page_and_orders_nothing() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app).await;
    let mut without = form.clone();
    without.fields.remove("idempotency_key");
    for form in
        [without, form.clone().set("idempotency_key", ""), form.set("idempotency_key", "a,b")]
    {
        let page = browser.submit(&form).await;
        let kind = page.response.header("content-type").unwrap_or_default().to_owned();
        let redrawn = page.response.status == 303;
        assert!(redrawn || kind.starts_with("text/html"), "{kind}: {}", page.html());
        assert!(matches!(page.response.status, 303 | 400 | 422), "{}", page.response.status);
    }
    assert_eq!(records(&app).await, 0);
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 0);
    app.finish().await;
}

#[tokio::test]
async fn no_field_of_any_form_takes_a_nul_character() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app).await;
    let unpaid = browser.submit(&form.set("payment_method", "pm_card_declined")).await.leads_to();
    browser.fill(&[("order-book", 1)]).await;
    let before = records(&app).await;
    let mut tried = 0;
    for path in ["/", "/cart", "/checkout", "/sign-in", &unpaid] {
        for form in browser.get(path).await.forms() {
            for name in form.fields.keys() {
                let value = format!("{}\0", form.fields[name]);
                let page = browser.submit(&form.clone().set(name, &value)).await.expect(422);
                page.says("/problems/validation_failed");
                tried += 1;
            }
        }
    }
    assert!(tried > 60, "{tried}");
    assert_eq!(records(&app).await, before);
    app.finish().await;
}

#[tokio::test]
async fn a_token_of_another_session_is_worth_nothing() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app).await;
    let (_, other) = ready(&app).await;
    let swapped = form.set("csrf", &other.fields["csrf"]);
    browser.send(&swapped, From::Unsaid).await.expect(403);
    // From our own page it is an old form: here is a new one.
    assert_eq!(browser.submit(&swapped).await.leads_to(), "/checkout");
    assert_eq!(records(&app).await, 0);
    app.finish().await;
}

#[tokio::test]
async fn a_form_without_a_cookie_does_nothing_and_is_given_again() {
    let app = TestApp::start().await;
    let (_, form) = ready(&app).await;
    let stranger = Browser::new(&app);
    for _ in 0..2 {
        let page = stranger.snapshot().submit(&form).await.expect(200);
        page.says("The form was drawn again");
        assert!(page.response.header("set-cookie").is_some());
    }
    assert_eq!(records(&app).await, 0);
    let add = Browser::new(&app).get("/").await.form_with("/cart", "sku", "enamel-mug");
    let again = stranger.submit(&add).await.form_with("/cart", "sku", "enamel-mug");
    stranger.submit(&again).await.leads_to();
    stranger.get("/").await.says("Cart (1)");
    app.finish().await;
}

#[tokio::test]
async fn a_cookie_opens_nothing_in_the_api() {
    let app = TestApp::start().await;
    let (browser, _) = ready(&app).await;
    let token = browser.cookie("payonce_session").unwrap();
    let api = app.anonymous();
    let cookie = format!("payonce_session={token}");
    let request = api.request("GET", "/v1/orders").header("Cookie", cookie.as_bytes());
    request.send().await.problem(401, "unauthenticated");
    api.bearing(&token).get("/v1/orders").await.problem(401, "unauthenticated");
    app.finish().await;
}

#[tokio::test]
async fn every_page_lets_in_nothing_from_outside_and_no_frame() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    for path in ["/", "/cart", "/checkout", "/orders", "/sign-in", "/mailbox", "/inspect", "/no"] {
        let page = browser.get(path).await;
        let policy = page.response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"));
        assert!(policy.contains("frame-ancestors 'none'"), "{path}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(page.response.header(name), Some(value), "{path}");
        }
    }
    app.finish().await;
}

#[tokio::test]
async fn a_query_that_cannot_be_read_is_refused_as_a_page() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    for path in ["/inspect?q=a&q=b", "/?currency=EUR&currency=USD"] {
        browser.get(path).await.expect(422).says("The query is malformed.");
    }
    app.finish().await;
}

#[tokio::test]
async fn the_session_cookie_keeps_to_itself() {
    let app = TestApp::start().await;
    let page = Browser::new(&app).get("/").await;
    let cookie = page.response.header("set-cookie").unwrap().to_owned();
    for attribute in ["Path=/", "HttpOnly", "SameSite=Lax"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    app.finish().await;
}

#[tokio::test]
async fn what_a_page_needs_is_served_for_good_and_answered_shortly_when_held() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    let html = browser.get("/").await.html().to_owned();
    let assets: Vec<&str> = html.split('"').filter(|value| value.starts_with("/static/")).collect();
    assert!(assets.len() > 10);
    for path in assets {
        let asset = browser.get(path).await.expect(200).response;
        let kept = asset.header("cache-control").unwrap();
        assert!(kept.contains("immutable"), "{path}: {kept}");
        let tag = asset.header("etag").unwrap().as_bytes().to_vec();
        let request = app.anonymous().request("GET", path).header("If-None-Match", &tag);
        assert_eq!(request.send().await.status, 304, "{path}");
    }
    let old = browser.get("/static/0000000000000000/payonce.css").await.expect(200).response;
    assert_eq!(old.header("cache-control"), Some("no-cache"));
    browser.get("/static/0000000000000000/../../Cargo.toml").await.expect(404);
    app.finish().await;
}

#[tokio::test]
async fn a_lost_path_and_a_wrong_method_are_pages_with_the_facts() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    browser.get("/no/such/page").await.expect(404).says("There is nothing here");
    browser.get("/orders/ord_00").await.expect(404).says("not_found");
    let put = app.anonymous().request("PUT", "/checkout").send().await;
    assert_eq!(put.status, 405);
    app.anonymous().get("/v1/no/such/thing").await.problem(404, "not_found");
    app.finish().await;
}

#[tokio::test]
async fn dark_light_and_language_hold_without_a_script() {
    let app = TestApp::start().await;
    let browser = Browser::new(&app);
    let theme = browser.get("/cart").await.form("/theme").set("theme", "dark");
    assert_eq!(browser.submit(&theme).await.leads_to(), "/cart");
    browser.get("/").await.says("data-theme=\"dark\"");
    let language = browser.get("/").await.form("/language").set("language", "zh-Hans");
    browser.submit(&language).await.leads_to();
    browser.get("/").await.says("购物车");
    for back in ["//evil.test/", "https://evil.test/", "/\\evil.test"] {
        let elsewhere = language.clone().set("back", back);
        assert_eq!(browser.submit(&elsewhere).await.leads_to(), "/");
    }
    app.finish().await;
}

#[tokio::test]
async fn no_link_leads_to_nothing_where_there_is_no_lab() {
    let app = TestApp::start().await;
    let (browser, form) = ready(&app).await;
    browser.submit(&form).await.leads_to();
    let (mut seen, mut ahead) = (BTreeSet::new(), vec!["/".to_owned()]);
    while let Some(path) = ahead.pop() {
        let page = browser.get(&path).await.expect(200);
        let links = page.html().split("href=\"/").skip(1);
        let paths = links.filter_map(|rest| rest.split(['"', '#']).next());
        let new = paths.map(|path| format!("/{}", path.replace("&amp;", "&")));
        seen.insert(path);
        ahead
            .extend(new.filter(|path| !path.starts_with("/assets/") && !path.starts_with("/docs")));
        ahead.retain(|path| !seen.contains(path));
    }
    assert!(seen.len() > 20, "{seen:?}");
    app.finish().await;
}
