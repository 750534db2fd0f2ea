//! Ends of processes, wanted and not, while the provider takes its time.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::checks;
use super::scene::{Scene, Setting};
use crate::process::Answer;

/// The slow card takes two seconds, which these let it.
const PATIENT: [&str; 3] = ["--provider-timeout-ms=3500", "--deadline-ms=4000", "--lease-ms=4500"];
const LEASE: Duration = Duration::from_millis(4500);

async fn patient(grace: &'static str) -> Scene {
    let flags = PATIENT.into_iter().chain([grace]).collect();
    Scene::set(&Setting { flags, ..Setting::default() }).await
}

/// Until the provider has begun to charge for an order.
async fn begun(scene: &Scene, order: &str) {
    while scene.charges(order).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn paid(scene: &Scene, order: &str) -> bool {
    let path = format!("/v1/orders/{order}");
    scene.get(path).ask(scene.shop.port()).await.is_ok_and(|answer| answer.text("status") == "paid")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_middle_of_a_charge_costs_one_charge_and_no_answer() {
    let mut scene = patient("--grace-ms=8000").await;
    let order = scene.ordered().await;
    let key = scene.key("slow");
    let paying = scene.payment(&order, &key, "pm_card_slow");
    let _lost = paying.send(scene.shop.port()).await.unwrap();
    begun(&scene, &order).await;
    scene.restart_shop();
    let answer = checks::answered(&paying, scene.shop.port(), false).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.shown());
    checks::same_bytes(&scene, &paying, &answer).await.unwrap();
    checks::invariants(&scene, &order, "paid").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_whose_buyer_never_comes_back_is_paid_all_the_same() {
    let mut scene = patient("--grace-ms=8000").await;
    let order = scene.ordered().await;
    let key = scene.key("slow");
    let paying = scene.payment(&order, &key, "pm_card_slow");
    let _lost = paying.send(scene.shop.port()).await.unwrap();
    begun(&scene, &order).await;
    scene.restart_shop();
    let until = Instant::now() + LEASE + Duration::from_secs(10);
    while !paid(&scene, &order).await {
        assert!(Instant::now() < until, "not paid within lease and ten seconds");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    checks::invariants(&scene, &order, "paid").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_wish_to_stop_lets_running_work_end_and_takes_no_more() {
    let mut scene = patient("--grace-ms=10000").await;
    let mut running = Vec::new();
    for _ in 0..5 {
        let order = scene.ordered().await;
        let key = scene.key("slow");
        let paying = scene.payment(&order, &key, "pm_card_slow");
        let call = paying.send(scene.shop.port()).await.unwrap();
        begun(&scene, &order).await;
        running.push((order, paying, tokio::spawn(call.answer())));
    }
    let load = tokio::spawn(ordering_until_refused(scene.order("load"), scene.shop.port()));
    let asked = Instant::now();
    scene.shop.signal(Signal::TERM);
    let ended = scene.shop.wait(Duration::from_secs(12)).expect("it ends in its grace time");
    assert!(ended.success(), "{ended}: {}", scene.shop.log());
    eprintln!(
        "ended {:.1} s after SIGTERM with slow charges running",
        asked.elapsed().as_secs_f64()
    );
    let refused = load.await.unwrap();
    assert!(refused, "new connections are refused");

    scene.restart_shop();
    for (order, paying, first) in running {
        let first = first.await.unwrap().expect("running work is answered");
        assert_eq!(first.status, 201, "{}", first.shown());
        checks::same_bytes(&scene, &paying, &first).await.unwrap();
        checks::invariants(&scene, &order, "paid").await.unwrap();
    }
}

/// The same order again and again, which is harmless; ends when nobody listens any more.
async fn ordering_until_refused(order: crate::process::Request, port: u16) -> bool {
    for _ in 0..10_000 {
        match order.send(port).await {
            Ok(call) => drop(call.answer().await),
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionRefused,
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_past_the_grace_time_is_recovered_at_the_next_start() {
    let mut scene = patient("--grace-ms=200").await;
    let order = scene.ordered().await;
    let key = scene.key("slow");
    let paying = scene.payment(&order, &key, "pm_card_slow");
    let cut = tokio::spawn(paying.send(scene.shop.port()).await.unwrap().answer());
    begun(&scene, &order).await;
    let asked = Instant::now();
    scene.shop.signal(Signal::TERM);
    assert!(scene.shop.wait(Duration::from_secs(8)).is_some(), "it ends, work or no work");
    eprintln!("ended {:.1} s after SIGTERM, grace 0.2 s", asked.elapsed().as_secs_f64());
    let told: Result<Answer, _> = cut.await.unwrap();
    assert!(
        told.is_err() || told.unwrap().status != 201,
        "the work did not end before the process"
    );

    scene.restart_shop();
    let answer = checks::answered(&paying, scene.shop.port(), false).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.shown());
    checks::invariants(&scene, &order, "paid").await.unwrap();
}
