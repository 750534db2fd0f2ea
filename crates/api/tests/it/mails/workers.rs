//! Three worker processes, one mail server, and the death of a process in the middle of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::catalog::demo;
use api::courier::Courier as _;
use api::mail::deliver::Mails;
use serde_json::json;
use sqlx::PgConnection;

use super::sink::{Manner, Sink};
use crate::process::{Answer, Database, Launch, Payonce, Request};

const ORDERS: usize = 500;
const BUYERS: usize = 12;
/// So many mails are out when the process dies.
const MIDWAY: usize = 150;

/// Everybody who sells; the dead ones refuse.
struct Shops {
    ports: Vec<u16>,
    token: String,
    next: AtomicUsize,
}

impl Shops {
    /// As a client does that does not know who is alive: the same key, at one after the other.
    async fn ask(&self, request: &Request) -> Answer {
        for _ in 0..200 {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let port = self.ports[number % self.ports.len()];
            match request.ask(port).await {
                Ok(answer) if answer.status != 409 && answer.status < 500 => return answer,
                _ => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
        panic!("nobody answers");
    }

    async fn buy(&self, number: usize) {
        let request = |path: String, key: String| {
            Request::new("POST", path)
                .header("authorization", format!("Bearer {}", self.token))
                .header("idempotency-key", key)
        };
        let lines = json!({ "lines": [{ "sku": "order-book", "quantity": 1 }] });
        let order =
            self.ask(&request("/v1/orders".into(), format!("o{number}")).json(&lines)).await;
        assert_eq!(order.status, 201, "{}", order.shown());
        let path = format!("/v1/orders/{}/payments", order.text("id"));
        let card = json!({ "payment_method": "pm_card_ok" });
        let paid = self.ask(&request(path, format!("p{number}")).json(&card)).await;
        assert_eq!(paid.status, 201, "{}", paid.shown());
    }
}

/// A loaded machine takes its time for five hundred orders.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..3000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("did not happen: {what}")
}

async fn sign_in(port: u16) -> String {
    let shopper = json!({ "email": demo::SHOPPER, "password": demo::PASSWORD });
    let session = Request::new("POST", "/v1/sessions").json(&shopper).ask(port).await.unwrap();
    session.text("token")
}

async fn count(database: &Database, query: &'static str) -> i64 {
    let mut conn: PgConnection = database.connect("shop").await;
    sqlx::query_scalar(query).fetch_one(&mut conn).await.unwrap()
}

fn start(database: &Database, provider: &Payonce, sink: &Sink) -> Payonce {
    Launch::new("serve", &database.url("shop"))
        .flag("--demo")
        .flag("--port=0")
        .flag("--workers=1")
        .flag("--db-connections=8")
        .flag("--lease-ms=3000")
        .flag("--deadline-ms=2500")
        .flag("--provider-timeout-ms=1000")
        .flag("--log=warn")
        .flag(&format!("--provider-url={}", provider.url()))
        .flag(&format!("--smtp-url={}", sink.url()))
        .start()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_hundred_orders_give_five_hundred_mails_though_a_process_is_killed() {
    let sink = Sink::open(Manner::TakesItsTime).await;
    let database = Database::start();
    database.create("shop").await;
    database.create("provider").await;
    let provider = Launch::new("provider", &database.url("provider"))
        .flag("--provider-port=0")
        .flag("--log=warn")
        .start();
    let mut shops: Vec<Payonce> = (0..3).map(|_| start(&database, &provider, &sink)).collect();
    let token = sign_in(shops[0].port()).await;
    let ports = shops.iter().map(Payonce::port).collect();
    let ask = Arc::new(Shops { ports, token, next: AtomicUsize::new(0) });
    let ordered = Arc::new(AtomicUsize::new(0));
    let buyers: Vec<_> = (0..BUYERS)
        .map(|_| {
            let (ask, ordered) = (Arc::clone(&ask), Arc::clone(&ordered));
            tokio::spawn(async move {
                loop {
                    match ordered.fetch_add(1, Ordering::Relaxed) {
                        number if number < ORDERS => ask.buy(number).await,
                        _ => return,
                    }
                }
            })
        })
        .collect();
    until("mails go out", async || sink.mails().len() >= MIDWAY).await;
    shops[0].kill();
    for buyer in buyers {
        buyer.await.unwrap();
    }
    let sent = "select count(*) from mail where state = 'sent'";
    let carried = i64::try_from(Mails::AT_ONCE).unwrap();
    until("the living ones send the rest", async || count(&database, sent).await >= 500 - carried)
        .await;
    // What the dead one carried is due when its lease is over; let that be now.
    let mut conn = database.connect("shop").await;
    sqlx::query(
        "update mail set lease_until = clock_timestamp(), next_attempt_at = clock_timestamp()
         where state = 'queued'",
    )
    .execute(&mut conn)
    .await
    .unwrap();
    until("what the dead one carried is sent too", async || count(&database, sent).await == 500)
        .await;

    let mut times: HashMap<String, usize> = HashMap::new();
    for mail in sink.mails() {
        *times.entry(mail.header("Message-ID")).or_default() += 1;
    }
    assert_eq!(times.len(), ORDERS);
    let repeated: usize = times.values().map(|times| times - 1).sum();
    assert!(repeated <= Mails::AT_ONCE, "{repeated} repeated: at most those the dead one carried");
    assert_eq!(count(&database, "select count(distinct message_id) from mail").await, 500);
    assert_eq!(
        count(&database, r#"select count(*) from "order" where status = 'paid'"#).await,
        500
    );
}
