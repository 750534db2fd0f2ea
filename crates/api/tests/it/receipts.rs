//! An order has one receipt, however often it is asked for.

use crate::app::{TestApp, together};

#[tokio::test]
async fn an_order_has_one_receipt_however_often_it_is_asked_for() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    let path = format!("/v1/orders/{order}/receipts");
    let refused = shopper.post_empty(&path, "early").await.problem(409, "invalid_transition");
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    shopper.post_empty(&path, "early").await.replays(&refused);

    let first = shopper.post_empty(&path, "r0").await.expect(202);
    assert_eq!(first.text("order_id"), order);
    let more = (1..10).map(|number| {
        let (shopper, path) = (shopper.clone(), path.clone());
        async move { shopper.post_empty(&path, &format!("r{number}")).await.expect(202) }
    });
    for answer in together(more).await {
        assert_eq!(answer.json(), first.json());
    }
    shopper.post_empty(&path, "r0").await.replays(&first);
    app.new_account().await.post_empty(&path, "r0").await.problem(404, "not_found");
    assert_eq!(app.number("select count(*) from mail where kind = 'receipt'").await, 1);
    app.finish().await;
}

#[tokio::test]
async fn an_order_without_an_address_has_no_receipt() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    app.execute(r#"update "order" set email = null"#).await;
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    let path = format!("/v1/orders/{order}/receipts");
    shopper.post_empty(&path, "receipt").await.problem(422, "validation_failed");
    app.finish().await;
}
