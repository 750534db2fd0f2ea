//! What a server keeps of what it does not want.
#![cfg(target_os = "linux")]

use std::net::SocketAddr;

use crate::app::together;
use crate::process::{Database, Launch, Payonce};
use crate::raw;

const BODY: usize = 16 * 1024 * 1024;
const SENDERS: usize = 20;
/// A tenth of what is sent; what the process needs for itself is in both figures.
const GROWTH_MAX: u64 = 32 * 1024 * 1024;

async fn demo() -> (Database, Payonce, SocketAddr) {
    let database = Database::start();
    database.create("shop").await;
    let shop = Launch::new("serve", &database.url("shop"))
        .flag("--demo")
        .flag("--port=0")
        .flag("--provider-port=0")
        .start();
    let address = SocketAddr::from(([127, 0, 0, 1], shop.port()));
    (database, shop, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_bodies_without_an_end_cost_no_memory() {
    let (_database, shop, address) = demo().await;
    // Hashing a password takes memory too.
    let token = crate::crash::sign_in(shop.port()).await;
    let before = shop.most_memory();
    let token = format!("Authorization: Bearer {token}");
    let headers = [&*token, "Idempotency-Key: K", "Content-Type: application/json"];
    let bytes = raw::chunked("POST /v1/orders", &headers, &vec![b' '; BODY], 64 * 1024);
    let answers = together((0..SENDERS).map(|_| {
        let bytes = bytes.clone();
        async move { raw::send(address, &bytes).await }
    }))
    .await;
    for answer in answers {
        // One that is still writing when the server hangs up may not see the answer.
        assert!(matches!(answer.status, 0 | 413), "{answer:?}");
    }
    let grown = shop.most_memory().saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{grown} bytes more");
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_wrong_passwords_at_once_cost_the_memory_of_two() {
    let (_database, shop, address) = demo().await;
    crate::crash::sign_in(shop.port()).await;
    let before = shop.most_memory();
    let answers = together((0..50).map(|guess| async move {
        let body = format!(r#"{{"email":"x{guess}@x.test","password":"0123456789"}}"#);
        let headers = ["Content-Type: application/json"];
        raw::send(address, &raw::request("POST /v1/sessions", &headers, &body)).await
    }))
    .await;
    assert!(answers.iter().all(|answer| answer.status == 401), "{answers:?}");
    let grown = shop.most_memory().saturating_sub(before);
    // One more room of 19 MiB than the first sign-in took, and what threads take.
    assert!(grown < 64 * 1024 * 1024, "{grown} bytes more");
}
