//! Two processes on one database: one of them dies, one of them has its clock wrong.

use crate::process::{Meeting, Request};

use super::checks;
use super::scene::{Scene, Setting};

const DUPLICATES: usize = 10;

/// Duplicates of one key at both, the owner dies after it sent; whoever lives tells the one answer.
async fn split_and_kill(setting: &Setting) {
    let mut scene = Scene::set(setting).await;
    let order = scene.ordered().await;
    let key = scene.key("pay");
    let paying = scene.payment(&order, &key, "pm_card_ok");
    let other = scene.other.as_ref().expect("a second replica").port();

    let meeting = Meeting::new().await;
    let armed = paying.clone().header("x-payonce-fault", format!("answered:{}", meeting.action()));
    let _owner = armed.send(scene.shop.port()).await.unwrap();
    let here = meeting.arrived().await.unwrap();
    let doomed: Vec<_> = asks(&paying, scene.shop.port());
    let waiting: Vec<_> = asks(&paying, other);
    scene.shop.kill();
    drop(here);
    for ask in doomed {
        // Some were not even accepted.
        let _ = ask.await.unwrap();
    }
    for ask in waiting {
        let answer = ask.await.unwrap().expect("the living one answers");
        let code = answer.text("code");
        let waits = ["request_in_progress", "outcome_unknown"].contains(&code.as_str());
        assert!(answer.status == 201 || waits, "{}", answer.shown());
    }
    let answer = checks::answered(&paying, other, false).await.unwrap();
    scene.restart_shop();
    checks::same_bytes(&scene, &paying, &answer).await.unwrap();
    checks::invariants(&scene, &order, "paid").await.unwrap();
}

type Ask = tokio::task::JoinHandle<std::io::Result<crate::process::Answer>>;

fn asks(request: &Request, port: u16) -> Vec<Ask> {
    let ask = |_| {
        let request = request.clone();
        tokio::spawn(async move { request.ask(port).await })
    };
    (0..DUPLICATES).map(ask).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn duplicates_at_two_processes_survive_the_death_of_one() {
    split_and_kill(&Setting { with_other: true, ..Setting::default() }).await;
}

/// Leases and lifetimes go by the database's clock, so a wrong one in a process changes nothing.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_clock_that_is_an_hour_wrong_changes_nothing() {
    for skew in ["+1h", "-1h"] {
        let setting = Setting { with_other: true, skew: Some(skew), ..Setting::default() };
        split_and_kill(&setting).await;
    }
}
