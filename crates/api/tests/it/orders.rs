//! Orders: one for a key, and never more than there are goods.

use crate::app::{TestApp, basket};

#[tokio::test]
async fn an_order_is_placed_paid_and_replayed() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let first = shopper.post("/v1/orders", "k1", &basket(&[("enamel-mug", 2)])).await.expect(201);
    let again = shopper.post("/v1/orders", "k1", &basket(&[("enamel-mug", 2)])).await;
    again.replays(&first);
    let order = first.text("id");
    shopper.pay(&order, "k2", "pm_card_ok").await.expect(201);
    assert_eq!(app.captures(&order).await, 1);
    assert_eq!(app.stock("enamel-mug").await, 398);
    app.finish().await;
}
