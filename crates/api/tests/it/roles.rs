//! Who may do what: everybody at every route of the API description, against one table.
//!
//! Each cell has goods of its own: an order that the owner has made, and, where the route is about
//! money, paid and partly refunded. A refusal has to leave every table as it was.

use serde_json::{Value, json};

use crate::app::{Caller, Response, TestApp, basket};
use crate::openapi::{Described, described};
use crate::pages::Browser;

/// Whoever comes to a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// Without a token.
    Nobody,
    /// Without a token, but with the cookie of a guest of the pages.
    Guest,
    /// With what is in that cookie as a token.
    GuestsToken,
    /// Signed in, but all this is somebody else's.
    Stranger,
    /// The shopper whose order it is.
    Owner,
    /// The merchant.
    Merchant,
}

const ALL: [Who; 6] =
    [Who::Nobody, Who::Guest, Who::GuestsToken, Who::Stranger, Who::Owner, Who::Merchant];

/// What each of them is answered, in the order of [`ALL`].
const TABLE: &[(&str, [u16; 6])] = &[
    ("POST /v1/accounts", [201; 6]),
    ("GET /v1/accounts/me", [401, 401, 401, 200, 200, 200]),
    ("GET /v1/accounts/{id}", [401, 401, 401, 404, 200, 404]),
    ("POST /v1/sessions", [201; 6]),
    ("DELETE /v1/sessions/current", [401, 401, 401, 204, 204, 204]),
    ("GET /v1/products", [200; 6]),
    ("GET /v1/products/{sku}", [200; 6]),
    ("POST /v1/products/{sku}/stock-movements", [401, 401, 401, 403, 403, 201]),
    ("GET /v1/products/{sku}/stock-movements/{id}", [401, 401, 401, 403, 403, 200]),
    ("POST /v1/orders", [401, 401, 401, 201, 201, 201]),
    ("GET /v1/orders", [401, 401, 401, 200, 200, 200]),
    ("GET /v1/orders/{id}", [401, 401, 401, 404, 200, 200]),
    ("POST /v1/orders/{id}/cancel", [401, 401, 401, 404, 200, 200]),
    ("POST /v1/orders/{id}/receipts", [401, 401, 401, 404, 202, 404]),
    ("POST /v1/orders/{id}/payments", [401, 401, 401, 404, 201, 404]),
    ("GET /v1/payments/{id}", [401, 401, 401, 404, 200, 200]),
    ("POST /v1/payments/{id}/refunds", [401, 401, 401, 404, 201, 201]),
    ("GET /v1/refunds/{id}", [401, 401, 401, 404, 200, 200]),
    ("POST /v1/webhook-endpoints", [401, 401, 401, 403, 403, 201]),
    ("GET /v1/webhook-endpoints", [401, 401, 401, 403, 403, 200]),
    ("GET /v1/webhook-endpoints/{id}", [401, 401, 401, 403, 403, 200]),
    ("GET /v1/webhook-endpoints/{id}/secret", [401, 401, 401, 403, 403, 200]),
    ("DELETE /v1/webhook-endpoints/{id}", [401, 401, 401, 403, 403, 204]),
    ("POST /v1/webhooks/provider", [401; 6]),
    ("GET /v1/idempotency-keys/{key}", [401, 401, 401, 404, 200, 404]),
    ("GET /.well-known/idempotency", [200; 6]),
];

/// Rows of everything that a request can leave behind.
const ROWS: &str = r#"(select count(*) from idempotency_record) + (select count(*) from "order")
    + (select count(*) from payment) + (select count(*) from refund)
    + (select count(*) from stock_change) + (select count(*) from ledger_posting)
    + (select count(*) from mail) + (select count(*) from webhook_endpoint)
    + (select count(*) from delivery) + (select count(*) from account)
    + (select count(*) from provider.charge) + (select count(*) from provider.refund)
    + (select count(*) from "order" where status = 'cancelled')"#;

/// What a cell is about.
struct Goods {
    order: String,
    payment: String,
    refund: String,
    endpoint: String,
    account: String,
    movement: String,
    key: String,
}

struct Stage {
    app: TestApp,
    owner: Caller,
    stranger: Caller,
    merchant: Caller,
    cookie: String,
    cells: usize,
}

impl Stage {
    async fn set() -> Self {
        let app = TestApp::start().await;
        let guest = Browser::new(&app);
        guest.get("/checkout").await;
        let cookie = guest.cookie("payonce_session").expect("a guest has a cookie");
        let (owner, stranger) = (app.shopper().await, app.new_account().await);
        let merchant = app.merchant().await;
        Self { app, owner, stranger, merchant, cookie, cells: 0 }
    }

    /// Fresh goods; paid and refunded only where that is what the route is about.
    async fn goods(&mut self, route: &str) -> Goods {
        self.cells += 1;
        let cell = self.cells;
        let key = format!("order-{cell}");
        let order = self.owner.order(&key).await;
        let mut goods = Goods {
            order,
            payment: "pay_x".to_owned(),
            refund: "ref_x".to_owned(),
            endpoint: "whe_x".to_owned(),
            account: self.owner.account().id.to_string(),
            movement: "stm_x".to_owned(),
            key,
        };
        if route.contains("/payments/{id}") || route.contains("refund") || route.contains("receipt")
        {
            let paid = self.owner.pay(&goods.order, &format!("pay-{cell}"), "pm_card_ok").await;
            goods.payment = paid.expect(201).text("id");
        }
        if route.contains("/refunds/{id}") {
            let path = format!("/v1/payments/{}/refunds", goods.payment);
            let part = json!({ "amount": { "amount": 1, "currency": "USD" } });
            let refund = self.owner.post(&path, &format!("refund-{cell}"), &part).await;
            goods.refund = refund.expect(201).text("id");
        }
        if route.contains("/stock-movements/{id}") {
            let movement = json!({ "delta": 1, "reason": "A delivery." });
            let path = "/v1/products/enamel-mug/stock-movements";
            let moved = self.merchant.post(path, &format!("movement-{cell}"), &movement).await;
            goods.movement = moved.expect(201).text("id");
        }
        if route.contains("/webhook-endpoints/{id}") {
            let endpoint = json!({ "url": "http://127.0.0.1:9/hook", "events": ["order.paid"] });
            let key = format!("endpoint-{cell}");
            let made = self.merchant.post("/v1/webhook-endpoints", &key, &endpoint).await;
            goods.endpoint = made.expect(201).text("id");
        }
        goods
    }

    fn caller(&self, who: Who) -> Caller {
        match who {
            Who::Nobody | Who::Guest => self.app.anonymous(),
            Who::GuestsToken => self.app.anonymous().bearing(&self.cookie),
            Who::Stranger => self.stranger.clone(),
            Who::Owner => self.owner.clone(),
            Who::Merchant => self.merchant.clone(),
        }
    }

    async fn ask(&self, who: Who, one: &Described, goods: &Goods, key: &str) -> Response {
        let caller = match one.name().as_str() {
            // This one costs a token.
            "DELETE /v1/sessions/current" if self.caller(who).is_signed_in() => {
                self.app.new_account().await
            }
            _ => self.caller(who),
        };
        let mut request = caller.request(&one.method, &path(one, goods)).key(key);
        if who == Who::Guest {
            let cookie = format!("payonce_session={}", self.cookie);
            request = request.header("Cookie", cookie.as_bytes());
        }
        match body(&one.name(), key) {
            Some(body) => request.json(&body).send().await,
            None => request.send().await,
        }
    }
}

fn path(one: &Described, goods: &Goods) -> String {
    let id = match one.path.split('/').nth(2) {
        Some("orders") => &goods.order,
        Some("payments") => &goods.payment,
        Some("refunds") => &goods.refund,
        Some("accounts") => &goods.account,
        Some("products") => &goods.movement,
        _ => &goods.endpoint,
    };
    one.path.replace("{id}", id).replace("{sku}", "enamel-mug").replace("{key}", &goods.key)
}

/// A body that would do, for the routes that have one.
pub(crate) fn body(route: &str, unique: &str) -> Option<Value> {
    Some(match route {
        "POST /v1/accounts" => json!({
            "email": format!("{unique}@payonce.test"), "password": "ten characters", "name": "Ada"
        }),
        "POST /v1/sessions" => json!({
            "email": api::catalog::demo::SHOPPER, "password": crate::app::PASSWORD
        }),
        "POST /v1/products/{sku}/stock-movements" => json!({ "delta": 1, "reason": "A delivery." }),
        "POST /v1/orders" => {
            let mut order = basket(&[("enamel-mug", 1), ("order-book", 1)]);
            order["note"] = json!("At the door.");
            order["email"] = json!("ada@example.com");
            order
        }
        "POST /v1/orders/{id}/payments" => json!({ "payment_method": "pm_card_ok" }),
        "POST /v1/payments/{id}/refunds" => json!({
            "amount": { "amount": 1, "currency": "USD" }, "reason": "It came broken."
        }),
        "POST /v1/webhook-endpoints" => {
            json!({ "url": "http://127.0.0.1:9/hook", "events": ["order.paid"] })
        }
        "POST /v1/webhooks/provider" => json!({ "type": "charge.succeeded", "data": {} }),
        _ => return None,
    })
}

#[tokio::test]
async fn everybody_gets_at_every_route_what_the_table_says() {
    let mut stage = Stage::set().await;
    let mut cells = 0;
    for one in described() {
        let expected = TABLE.iter().find(|(route, _)| *route == one.name());
        let (_, expected) =
            expected.unwrap_or_else(|| panic!("{} is not in the table", one.name()));
        for (who, expected) in ALL.into_iter().zip(expected) {
            let goods = stage.goods(&one.name()).await;
            let before = stage.app.number(ROWS).await;
            let key = format!("cell-{cells}");
            let answer = stage.ask(who, &one, &goods, &key).await;
            assert_eq!(answer.status, *expected, "{who:?} at {}: {answer:?}", one.name());
            if *expected >= 400 {
                let after = stage.app.number(ROWS).await;
                assert_eq!(after, before, "{who:?} at {} left something", one.name());
                says_no_more_than_that(&answer, &goods, *expected);
            }
            cells += 1;
        }
    }
    assert_eq!(cells, TABLE.len() * ALL.len(), "routes in the table and in the description");
    stage.app.finish().await;
}

/// A problem with its code; nothing of the thing that is refused but the path that was asked.
fn says_no_more_than_that(answer: &Response, goods: &Goods, status: u16) {
    let code = match status {
        401 => "unauthenticated",
        403 => "forbidden",
        _ => "not_found",
    };
    let mut document = answer.clone().problem(status, code).json();
    document.as_object_mut().unwrap().remove("instance");
    let text = document.to_string();
    let Goods { order, payment, refund, endpoint, account, movement, key } = goods;
    for id in [order, payment, refund, endpoint, account, movement, key] {
        assert!(!text.contains(id.as_str()), "{text}");
    }
}

#[tokio::test]
async fn what_is_somebody_elses_looks_like_what_is_not_there() {
    let mut stage = Stage::set().await;
    for one in described() {
        if !one.path.contains("{id}") && !one.path.contains("{key}") {
            continue;
        }
        let goods = stage.goods(&one.name()).await;
        let nothing = Goods {
            order: stage.app.app().clock.new_id().simple().to_string(),
            ..stage.goods("nothing").await
        };
        let nothing = Goods {
            order: format!("ord_{}", nothing.order),
            payment: format!("pay_{}", nothing.order),
            refund: format!("ref_{}", nothing.order),
            endpoint: format!("whe_{}", nothing.order),
            account: format!("acc_{}", nothing.order),
            movement: format!("stm_{}", nothing.order),
            key: "never-used".to_owned(),
        };
        let theirs = stage.ask(Who::Stranger, &one, &goods, "K").await;
        let missing = stage.ask(Who::Stranger, &one, &nothing, "K").await;
        let facts = |answer: &Response| {
            let mut document = answer.json();
            document.as_object_mut().unwrap().remove("instance");
            (answer.status, document)
        };
        assert_eq!(facts(&theirs), facts(&missing), "{}", one.name());
    }
    stage.app.finish().await;
}

/// A role is looked at again before an old reply is told, also on routes that are not for it alone.
#[tokio::test]
async fn who_is_no_merchant_any_more_is_not_told_what_was_done_to_others() {
    let mut stage = Stage::set().await;
    let clerk = stage.app.new_account().await;
    let id = clerk.account().id.uuid();
    let role = |role: &str| format!("update account set role = '{role}' where id = '{id}'");
    stage.app.execute(role("merchant")).await;
    let [open, paid] = [stage.owner.order("open").await, stage.owner.order("paid").await];
    let payment = stage.owner.pay(&paid, "pay", "pm_card_ok").await.expect(201).text("id");
    let own = clerk.order("own").await;
    let part = json!({ "amount": { "amount": 1, "currency": "USD" } });
    let asked = [
        (format!("/v1/orders/{open}/cancel"), None, 200),
        (format!("/v1/orders/{paid}/cancel"), None, 409),
        (format!("/v1/payments/{payment}/refunds"), Some(part), 201),
        (format!("/v1/orders/{own}/cancel"), None, 200),
    ];
    let ask = async |number: usize| {
        let (path, body, _) = &asked[number];
        match body {
            Some(body) => clerk.post(path, &format!("clerk-{number}"), body).await,
            None => clerk.post_empty(path, &format!("clerk-{number}")).await,
        }
    };
    let mut told = Vec::new();
    for (number, (_, _, status)) in asked.iter().enumerate() {
        told.push(ask(number).await.expect(*status));
    }

    stage.app.execute(role("shopper")).await;
    stage.app.restart().await;
    let before = stage.app.number(ROWS).await;
    // Out of the database, then out of memory.
    for _ in 0..2 {
        for number in 0..3 {
            let refused = ask(number).await.problem(404, "not_found");
            let body = String::from_utf8(refused.body.clone()).unwrap();
            assert!(!body.contains("ada@") && !body.contains("enamel-mug"), "{body}");
        }
        ask(3).await.replays(&told[3]);
    }
    assert_eq!(stage.app.number(ROWS).await, before);

    stage.app.execute(role("merchant")).await;
    stage.app.restart().await;
    for (number, told) in told.iter().enumerate() {
        ask(number).await.replays(told);
    }
    stage.app.finish().await;
}

#[tokio::test]
async fn a_list_shows_nothing_of_others() {
    let stage = Stage::set().await;
    let order = stage.owner.order("K").await;
    let lists = async |caller: &Caller| {
        String::from_utf8(caller.get("/v1/orders?limit=100").await.expect(200).body).unwrap()
    };
    assert!(lists(&stage.owner).await.contains(&order));
    assert!(lists(&stage.merchant).await.contains(&order));
    assert!(!lists(&stage.stranger).await.contains(&order));
    // A cursor of somebody else's list opens nothing either.
    stage.owner.order("K2").await;
    let page = stage.owner.get("/v1/orders?limit=1").await.expect(200).json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = stage.stranger.get(&format!("/v1/orders?cursor={cursor}")).await.expect(200).json();
    assert_eq!(next["data"], json!([]));
    stage.app.finish().await;
}

/// Whatever else is wrong with a request, whoever is not known hears only that.
#[tokio::test]
async fn who_asks_is_the_first_question_of_all() {
    let stage = Stage::set().await;
    let mut asked = 0;
    for one in described().into_iter().filter(|one| one.operation["security"] != json!([])) {
        let path = one.concrete();
        for query in ["", "?limit=x", "?limit=1&limit=2", "?cursor=%00", "?offset=1", "?%FF=%"] {
            for caller in [stage.app.anonymous(), stage.owner.bearing("no-token-of-ours")] {
                let ask = || caller.request(&one.method, &format!("{path}{query}"));
                ask().send().await.problem(401, "unauthenticated");
                ask().key("a,b").send().await.problem(401, "unauthenticated");
                let broken = ask().key("K").body("text/plain", "{");
                broken.send().await.problem(401, "unauthenticated");
                asked += 3;
            }
        }
        let huge = stage.app.anonymous().request(&one.method, &path).key("K");
        let huge = huge.body("application/json", vec![b' '; 65_537]).send().await;
        huge.problem(401, "unauthenticated");
    }
    assert!(asked > 400, "{asked}");
    assert_eq!(stage.app.number("select count(*) from idempotency_record").await, 0);
    stage.app.finish().await;
}
