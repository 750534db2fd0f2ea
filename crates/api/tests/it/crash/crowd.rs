//! A crowd at one key must not be in the way of anybody else.

use std::time::{Duration, Instant};

use crate::app::Caller;
use crate::app::{TestApp, basket, eventually, together};

const DUPLICATES: usize = 1000;
const OTHERS: usize = 150;
const CONNECTIONS_FOR_ONE_KEY: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_duplicates_of_a_running_key_slow_nobody_down() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let other = app.new_account().await;
    let idle = p99(&other, "idle").await;
    let order = shopper.order("order").await;

    let duplicates: Vec<_> = (0..DUPLICATES).map(|_| (shopper.clone(), order.clone())).collect();
    let crowd = tokio::spawn(together(duplicates.into_iter().map(|(shopper, order)| async move {
        shopper.pay(&order, "crowd", "pm_card_slow").await
    })));
    eventually("the charge is under way", async || !app.provider_charges(&order).await.is_empty())
        .await;
    let mut most = 0;
    for _ in 0..50 {
        most = most.max(app.app().db.usage().0);
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    let busy = p99(&other, "busy").await;
    let answers = crowd.await.unwrap();

    assert!(answers.iter().all(|answer| answer.status == 201), "every duplicate is answered");
    let fresh = answers.iter().filter(|answer| answer.header("Idempotency-Replayed").is_none());
    assert_eq!(fresh.count(), 1, "one of them was the first");
    assert!(most <= CONNECTIONS_FOR_ONE_KEY, "{most} connections for one key");
    assert_eq!(app.captures(&order).await, 1);
    eprintln!(
        "p99 of other requests: {:.1} ms idle, {:.1} ms beside {DUPLICATES} duplicates ({:.2}×), {most} connections",
        idle * 1e3,
        busy * 1e3,
        busy / idle
    );
    app.finish().await;
}

/// Of orders by somebody else, one after the other, in seconds.
async fn p99(caller: &Caller, name: &str) -> f64 {
    let mut times = Vec::new();
    for number in 0..OTHERS {
        let started = Instant::now();
        let lines = basket(&[("enamel-mug", 1)]);
        let answer = caller.post("/v1/orders", &format!("{name}-{number}"), &lines).await;
        times.push(started.elapsed().as_secs_f64());
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    times.sort_by(f64::total_cmp);
    times[OTHERS * 99 / 100]
}
