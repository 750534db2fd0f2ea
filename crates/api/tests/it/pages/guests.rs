//! Guests are told apart by their cookies, not by where they come from.

use super::Browser;
use crate::app::TestApp;

#[tokio::test]
async fn two_guests_at_one_address_share_no_key_and_no_order() {
    let app = TestApp::start().await;
    let mut guests = Vec::new();
    for _ in 0..2 {
        let browser = Browser::new(&app);
        browser.fill(&[("order-book", 1)]).await;
        let form = browser.checkout("pm_card_ok").await;
        guests.push((browser, form));
    }
    let ((one, form), (other, others_form)) = (&guests[0], &guests[1]);
    let key = &form.fields["idempotency_key"];
    assert_ne!(key, &others_form.fields["idempotency_key"], "the same goods, but two carts");
    let receipt = one.submit(form).await.leads_to();
    // With the key of the first guest the second one orders nothing and sees nothing.
    let borrowed = others_form.clone().set("idempotency_key", key);
    assert_eq!(other.submit(&borrowed).await.leads_to(), "/checkout");
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 1);
    let others_receipt = other.submit(others_form).await.leads_to();
    assert_ne!(receipt, others_receipt);
    one.get(&others_receipt).await.expect(404);
    other.get(&receipt).await.expect(404);
    assert_eq!(app.number(r#"select count(*) from "order" where status = 'paid'"#).await, 2);
    app.finish().await;
}
