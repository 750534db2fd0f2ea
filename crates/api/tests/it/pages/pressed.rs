//! What each press did: told on the order's page and on `/inspect`, whichever server it reached.

use api::presses;

use super::Browser;
use crate::app::TestApp;

#[tokio::test]
async fn every_press_is_told_whichever_server_it_reached() {
    let app = TestApp::start().await;
    let replica = app.second_server().await;
    let browser = Browser::new(&app);
    browser.fill(&[("order-book", 1)]).await;
    let form = browser.checkout("pm_card_ok").await;
    let order = browser.submit(&form).await.leads_to();
    browser.submit(&form).await.leads_to();
    browser.submit(&form).await.leads_to();
    browser.at(&replica).submit(&form).await.leads_to();
    // Nothing is written while a replay is answered.
    assert_eq!(app.number("select count(*) from press").await, 0);
    assert_eq!(presses::write(app.app()).await.unwrap(), 1);
    assert_eq!(presses::write(&replica.app).await.unwrap(), 1);

    let page = browser.get(&order).await;
    page.says("You pressed Pay 4 times; only the first press moved money.");
    page.says("Charged $12.00, stored the answer");
    page.says("Requests 2 to 3, the last at");
    page.says("Request 4 got the stored answer again");
    let id = order.trim_start_matches("/orders/");
    let told = browser.get(&format!("/inspect?q={id}")).await;
    told.says("Charged once, $12.00");
    told.says("Request 1 began the payment");
    told.says("Requests 2 to 3, the last at");
    told.says("5, of which 2 executed");
    replica.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn what_repeats_were_told_stands_between_what_happened() {
    let app = TestApp::start().await;
    let (shopper, order) = (app.shopper().await, "order");
    let order = shopper.order(order).await;
    let slow = shopper.pay(&order, "pay", "pm_card_slow");
    let impatient = async {
        let path = format!("/v1/orders/{order}/payments");
        let body = serde_json::json!({ "payment_method": "pm_card_slow" });
        crate::app::eventually("the first is at work", async || {
            app.number("select count(*) from payment").await == 1
        })
        .await;
        let request = || shopper.request("POST", &path).key("pay");
        let wait = request().wait(0).json(&body).send().await;
        wait.problem(409, "request_in_progress");
        let other = serde_json::json!({ "payment_method": "pm_card_ok" });
        request().json(&other).send().await.problem(422, "idempotency_key_reused");
        request().json(&body).send().await.expect(201)
    };
    let (first, joined) = tokio::join!(slow, impatient);
    joined.replays(&first);
    presses::write(app.app()).await.unwrap();
    let browser = Browser::new(&app);
    browser.sign_in(api::catalog::demo::SHOPPER, crate::app::PASSWORD).await.leads_to();
    let page = browser.get("/inspect?q=pay").await;
    for words in [
        "Request 1 began the payment",
        "was told that the first is still at work",
        "was refused: the key belongs to another request",
        "waited for the first and got its answer",
        "Answer 201 to the payment stored under its key",
    ] {
        page.says(words);
    }
    // Keys that made nothing are known by their record.
    let other = shopper.order("other").await;
    shopper.post_empty(&format!("/v1/orders/{other}/cancel"), "call-it-off").await.expect(200);
    browser.get("/inspect?q=call-it-off").await.says("Not charged");
    // A stranger's key of the same name is another key.
    let stranger = app.new_account().await;
    let own = stranger.order("pay").await;
    stranger.order("pay").await;
    presses::write(app.app()).await.unwrap();
    let own_page = browser.get(&format!("/inspect?q={own}")).await;
    own_page.says("Nothing under it");
    assert!(!browser.get("/inspect?q=pay").await.html().contains("got the stored answer again"));
    app.finish().await;
}

#[tokio::test]
async fn a_take_over_is_told_with_the_number_of_its_attempt() {
    let app = TestApp::with(|options| options.lease_ms(1500).provider_timeout_ms(300)).await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    app.provider(serde_json::json!({ "latency_ms": 4000 })).await;
    let lost = shopper.pay(&order, "pay", "pm_card_ok").await.problem(409, "outcome_unknown");
    assert_eq!(lost.text("resource"), format!("/v1/payments/{}", lost.text("payment_id")));
    let browser = Browser::new(&app);
    browser.sign_in(api::catalog::demo::SHOPPER, crate::app::PASSWORD).await.leads_to();
    browser.get("/inspect?q=pay").await.says("We do not know yet");
    app.provider(serde_json::json!({ "latency_ms": 0 })).await;
    crate::app::eventually("recovery settles it", async || {
        app.recover().await;
        app.captures(&order).await == 1 && app.number("select count(*) from mail").await == 1
    })
    .await;
    let told = browser.get("/inspect?q=pay").await;
    told.says("Request 1 began the payment; attempt ");
    told.says("Charged once, $18.00");
    app.finish().await;
}

#[tokio::test]
async fn repeats_are_swept_after_two_days_and_nothing_depends_on_them() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let body = crate::app::basket(&[("enamel-mug", 1)]);
    let first = shopper.post("/v1/orders", "k", &body).await.expect(201);
    shopper.post("/v1/orders", "k", &body).await.replays(&first);
    presses::write(app.app()).await.unwrap();
    app.execute("update press set last_at = last_at - interval '2 days'").await;
    let swept = api::sweep::run_on(&mut app.database.connect().await).await.unwrap();
    assert!(swept.0.contains(&("presses", 1)), "{swept:?}");
    shopper.post("/v1/orders", "k", &body).await.replays(&first);
    app.finish().await;
}
