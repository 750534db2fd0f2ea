//! Orders: one for a key, and never more than there are goods.

mod contention;

use api::orders::expire;
use serde_json::{Value, json};

use crate::app::{TestApp, basket, eventually, together};

const ORDERS: &str = "/v1/orders";

#[tokio::test]
async fn the_catalogue_sets_the_price_and_the_client_may_only_expect_it() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let expecting = |amount: i64, currency: &str| {
        let mut body = basket(&[("enamel-mug", 2)]);
        body["expected_total"] = json!({ "amount": amount, "currency": currency });
        body
    };
    let before = shopper.post(ORDERS, "before", &expecting(3600, "USD")).await.expect(201);
    for (at, (amount, currency)) in
        [(3599, "USD"), (3600, "EUR"), (1, "USD"), (-3600, "USD")].into_iter().enumerate()
    {
        let answer = shopper.post(ORDERS, &format!("K{at}"), &expecting(amount, currency)).await;
        let total = answer.problem(409, "price_changed").json()["total"].clone();
        assert_eq!(total, json!({ "amount": 3600, "currency": "USD" }));
    }
    app.execute("update product set price = 2000 where sku = 'enamel-mug'").await;
    let changed = shopper.post(ORDERS, "old", &expecting(3600, "USD")).await;
    assert_eq!(changed.problem(409, "price_changed").json()["total"]["amount"], 4000);
    let open = shopper.post(ORDERS, "open", &basket(&[("enamel-mug", 2)])).await.expect(201);
    assert_eq!(open.json()["total"]["amount"], 4000);
    app.execute("update product set price = 1500 where sku = 'enamel-mug'").await;
    shopper.post(ORDERS, "new", &expecting(3000, "USD")).await.expect(201);
    shopper.post(ORDERS, "before", &expecting(3600, "USD")).await.replays(&before);
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 3);
    app.finish().await;
}

#[tokio::test]
async fn what_cannot_be_ordered_is_refused_by_name_and_leaves_the_key_free() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let line = |sku: &str, quantity: Value| json!([{ "sku": sku, "quantity": quantity }]);
    let mug = |quantity: Value| json!({ "lines": line("enamel-mug", quantity) });
    let with = |name: &str, value: Value| {
        let mut body = basket(&[("enamel-mug", 1)]);
        body[name] = value;
        body
    };
    let mixed = basket(&[("enamel-mug", 1), ("sencha-tin", 1)]);
    let merged = basket(&[("enamel-mug", 60), ("order-book", 1), ("enamel-mug", 40)]);
    let netted = basket(&[("enamel-mug", 3), ("enamel-mug", -1)]);
    let mut extra = basket(&[("enamel-mug", 1)]);
    extra["lines"][0]["unit_price"] = json!({ "amount": 1, "currency": "USD" });
    for (body, pointer) in [
        (mug(json!(0)), "/lines/0/quantity"),
        (mug(json!(-1)), "/lines/0/quantity"),
        (mug(json!(100)), "/lines/0/quantity"),
        (mug(json!(1.5)), "/lines/0/quantity"),
        (mug(json!("1")), "/lines/0/quantity"),
        (mug(Value::Null), "/lines/0/quantity"),
        (mug(json!(9_007_199_254_740_991_i64)), "/lines/0/quantity"),
        (mug(json!(-9_007_199_254_740_991_i64)), "/lines/0/quantity"),
        (merged, "/lines/2/quantity"),
        (netted, "/lines/1/quantity"),
        (basket(&[[("enamel-mug", 1), ("order-book", 1)].repeat(51), vec![]].concat()), "/lines"),
        (json!({ "lines": [] }), "/lines"),
        (json!([[{ "sku": "enamel-mug", "quantity": 1 }], null, null, null]), ""),
        (json!({ "lines": line("no-such-thing", json!(1)) }), "/lines/0/sku"),
        (json!({ "lines": line("", json!(1)) }), "/lines/0/sku"),
        (json!({ "lines": line("ENAMEL-MUG", json!(1)) }), "/lines/0/sku"),
        (mixed, "/lines/1/sku"),
        (with("note", json!("x".repeat(501))), "/note"),
        (with("email", json!("nobody")), "/email"),
        (
            with("expected_total", json!({ "amount": 1800, "currency": "XXX" })),
            "/expected_total/currency",
        ),
        (
            with("expected_total", json!({ "amount": 1800, "currency": "usd" })),
            "/expected_total/currency",
        ),
        (
            with("expected_total", json!({ "amount": 1800.5, "currency": "USD" })),
            "/expected_total/amount",
        ),
        (extra, "/lines/0/unit_price"),
        (with("status", json!("paid")), "/status"),
        (with("total", json!({ "amount": 1, "currency": "USD" })), "/total"),
        (with("account_id", json!("acc_1")), "/account_id"),
        (with("discount", json!(100)), "/discount"),
    ] {
        let refused = shopper.post(ORDERS, "K", &body).await.problem(422, "validation_failed");
        let at = refused.json()["errors"][0]["pointer"].as_str().unwrap().to_owned();
        assert!(pointer.starts_with(&at), "{body} is refused at {at}, not at {pointer}");
    }
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 0);
    shopper.post(ORDERS, "K", &with("note", json!("\u{1f381}".repeat(500)))).await.expect(201);
    app.finish().await;
}

#[tokio::test]
async fn lines_of_one_product_become_one() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let lines = [("enamel-mug", 50), ("order-book", 1), ("enamel-mug", 49)];
    let order = shopper.ordered("K", &lines).await;
    assert_eq!(order["lines"].as_array().unwrap().len(), 2);
    assert_eq!(order["lines"][0]["quantity"], 99);
    assert_eq!(order["total"]["amount"], 99 * 1800 + 1200);
    assert_eq!(app.stock("enamel-mug").await, 301);
    app.finish().await;
}

#[tokio::test]
async fn the_dearest_basket_still_adds_up() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    app.execute("update product set price = 100000000000 where currency = 'USD'").await;
    let lines = ["enamel-mug", "order-book", "counter-bell"].map(|sku| (sku, 99));
    let order = shopper.ordered("K", &lines).await;
    assert_eq!(order["total"]["amount"], 29_700_000_000_000_i64);
    let order = order["id"].as_str().unwrap();
    shopper.pay(order, "P", "pm_card_ok").await.expect(201);
    app.finish().await;
}

#[tokio::test]
async fn every_currency_keeps_its_own_minor_units() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    app.execute(
        "insert into product (sku, name, description, price, currency, initial_stock, stock)
         values ('dinar-box', 'Box', 'A box.', 12345, 'KWD', 5, 5)",
    )
    .await;
    for (sku, amount, currency) in
        [("sencha-tin", 3200, "JPY"), ("slow-kettle", 5300, "EUR"), ("dinar-box", 12345, "KWD")]
    {
        let order = shopper.ordered(sku, &[(sku, 1)]).await;
        assert_eq!(order["total"], json!({ "amount": amount, "currency": currency }));
        let id = order["id"].as_str().unwrap();
        let paid = shopper.pay(id, &format!("pay-{sku}"), "pm_card_ok").await.expect(201);
        assert_eq!(paid.json()["amount"], order["total"]);
    }
    app.finish().await;
}

#[tokio::test]
async fn orders_of_others_are_not_there() {
    let app = TestApp::start().await;
    let (ada, bob, merchant) = (app.shopper().await, app.new_account().await, app.merchant().await);
    let order = ada.order("K").await;
    let path = format!("/v1/orders/{order}");
    let unknown = "/v1/orders/ord_00000000000000000000000000000000";
    let not_mine = bob.get(&path).await.problem(404, "not_found").json();
    let not_there = bob.get(unknown).await.problem(404, "not_found").json();
    assert_eq!(not_mine["detail"], not_there["detail"]);
    bob.post_empty(&format!("{path}/cancel"), "K").await.problem(404, "not_found");
    bob.pay(&order, "K", "pm_card_ok").await.problem(404, "not_found");
    assert_eq!(bob.get(ORDERS).await.json()["data"], json!([]));
    merchant.get(&path).await.expect(200);
    assert_eq!(merchant.get(ORDERS).await.json()["data"][0]["id"], *order);
    // The refusals were not stored: the key is Bob's to use.
    let own = bob.order("K").await;
    assert_ne!(own, order);
    merchant.post_empty(&format!("{path}/cancel"), "M").await.expect(200);
    app.finish().await;
}

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let mut orders = Vec::new();
    for n in 0..5 {
        orders.insert(0, shopper.order(&format!("K{n}")).await);
    }
    let mut seen = Vec::new();
    let mut path = format!("{ORDERS}?limit=2");
    loop {
        let page = shopper.get(&path).await.expect(200).json();
        let ids = page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|order| order["id"].as_str().unwrap().to_owned());
        seen.extend(ids);
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("{ORDERS}?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, orders);
    app.finish().await;
}

#[tokio::test]
async fn cancelling_gives_the_goods_back_once() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.ordered("K", &[("enamel-mug", 7)]).await;
    let path = format!("/v1/orders/{}/cancel", order["id"].as_str().unwrap());
    let copies = together((0..20).map(|copy| {
        let (caller, path) = (shopper.clone(), path.clone());
        // Ten copies of one request, and ten requests of their own.
        let key = if copy < 10 { "C".to_owned() } else { format!("C{copy}") };
        async move { (copy < 10, caller.post_empty(&path, &key).await) }
    }))
    .await;
    let cancelled: Vec<_> = copies.iter().filter(|(_, answer)| answer.status == 200).collect();
    let executed = cancelled.iter().filter(|(_, answer)| !answer.is_replay());
    assert_eq!(executed.count(), 1);
    for (_, answer) in copies.iter().filter(|(_, answer)| answer.status != 200) {
        let document = answer.clone().problem(409, "invalid_transition").json();
        assert_eq!(document["state"], "cancelled");
    }
    let same: Vec<_> = copies.iter().filter(|(same, _)| *same).collect();
    assert!(same.iter().all(|(_, answer)| answer.status == same[0].1.status));
    assert_eq!(app.stock("enamel-mug").await, 400);
    app.finish().await;
}

#[tokio::test]
async fn an_unpaid_order_expires_once_and_gives_its_goods_back() {
    let app = TestApp::with(|options| options.reservation_ms(300)).await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let mut orders = Vec::new();
    for n in 0..5 {
        orders.push(shopper.ordered(&format!("K{n}"), &[("enamel-mug", 3)]).await);
    }
    let due = r#"select count(*) from "order" where reserved_until <= clock_timestamp()"#;
    eventually("the reservations run out", async || app.number(due).await == 5).await;
    let id = |n: usize| orders[n]["id"].as_str().unwrap().to_owned();
    let refused = shopper.pay(&id(0), "late", "pm_card_ok").await.problem(409, "order_expired");
    assert_eq!(refused.json()["resource"], format!("/v1/orders/{}", id(0)));
    let (here, there) = tokio::join!(expire::run_once(app.app()), expire::run_once(&second.app));
    assert_eq!(here.unwrap() + there.unwrap(), 5);
    assert_eq!(expire::run_once(app.app()).await.unwrap(), 0);
    assert_eq!(app.stock("enamel-mug").await, 400);
    let order = shopper.get(&format!("/v1/orders/{}", id(1))).await.json();
    assert_eq!(order["status"], "expired");
    let cancel = format!("/v1/orders/{}/cancel", id(1));
    shopper.post_empty(&cancel, "C").await.problem(409, "invalid_transition");
    shopper.pay(&id(2), "later", "pm_card_ok").await.problem(409, "order_expired");
    assert_eq!(app.number("select count(*) from provider.charge").await, 0);
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn orders_expire_by_themselves_where_jobs_run() {
    let app = TestApp::with(|options| options.reservation_ms(100).jobs()).await;
    let shopper = app.shopper().await;
    shopper.ordered("K", &[("enamel-mug", 3)]).await;
    eventually("the goods are back", async || app.stock("enamel-mug").await == 400).await;
    app.finish().await;
}
