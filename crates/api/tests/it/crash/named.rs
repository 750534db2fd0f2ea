//! Cells that have a name of their own: a first owner stops between intent and send, somebody
//! takes over, and the first owner wakes.

use std::time::{Duration, Instant};

use serde_json::json;

use super::checks::{self, ensure};
use super::scene::{Scene, Setting};
use crate::process::{Answer, Meeting, Request};

/// What the one who takes over gets to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taker {
    /// Nothing: the provider is down.
    Refused,
    /// It charges, and its answer is lost.
    Unheard,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_owner_that_wakes_while_the_provider_is_down_frees_nothing() {
    let setting = Setting { with_other: true, ..Setting::default() };
    let mut scene = Scene::set(&setting).await;
    stop_take_over_wake(&mut scene, Taker::Refused).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_owner_that_wakes_does_not_free_what_another_has_sent() {
    let setting = Setting { with_other: true, ..Setting::default() };
    let mut scene = Scene::set(&setting).await;
    stop_take_over_wake(&mut scene, Taker::Unheard).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_owner_that_wakes_before_it_gives_up_does_not_free_what_another_works_on() {
    let setting = Setting { with_other: true, ..Setting::default() };
    let mut scene = Scene::set(&setting).await;
    release_late(&mut scene).await.unwrap();
}

/// The first owner was refused by the provider and stops just before it frees its key. Another
/// takes over, charges, and is held before it settles. The first owner wakes, and a second key
/// pays, if it is let: that is where money moves twice.
pub(super) async fn release_late(scene: &mut Scene) -> Result<(), String> {
    let order = scene.ordered().await;
    let (first_key, second_key) = (scene.key("first"), scene.key("second"));
    let first = scene.payment(&order, &first_key, "pm_card_ok").header("prefer", "wait=0");
    let second = scene.payment(&order, &second_key, "pm_card_ok").header("prefer", "wait=0");
    let other = scene.other.as_ref().expect("a second replica").port();

    scene.control_provider(&json!({ "down": true })).await;
    let (giving_up, paying) = (Meeting::new().await, Meeting::new().await);
    let armed =
        first.clone().header("x-payonce-fault", format!("before_release:{}", giving_up.action()));
    let call = armed.send(scene.shop.port()).await.map_err(|error| error.to_string())?;
    let owner = giving_up.arrived().await.map_err(|_| "nobody gave up".to_owned())?;
    scene.pause_shop();
    let waking = tokio::spawn(call.answer());
    arm_jobs(scene, other, format!("answered:{}", paying.action())).await?;
    scene.control_provider(&json!({ "down": false })).await;
    let taker = paying.arrived().await.map_err(|_| "nobody took over".to_owned())?;

    scene.wake_shop();
    drop(owner);
    let woken = waking.await.unwrap().map_err(|error| error.to_string())?;
    // Whether or not it was let, what counts is what the provider's books say in the end.
    let late = second.ask(other).await.map_err(|error| error.to_string())?;
    checks::charged_once(scene, &order).await?;
    drop(taker);
    settled(scene, &order, &first, other).await?;
    let honest = matches!(woken.text("code").as_str(), "outcome_unknown" | "request_in_progress");
    ensure(honest || woken.status == 201, || {
        format!("the owner that woke was told {}", woken.shown())
    })?;
    ensure(late.status == 409, || format!("the second key was told {}", late.shown()))?;
    checks::invariants(scene, &order, "paid").await
}

/// Arms a point for whoever comes to it, in a process that has no request for it yet.
async fn arm_jobs(scene: &mut Scene, port: u16, fault: String) -> Result<(), String> {
    let key = scene.key("arming");
    let order = scene.order(&key).header("x-payonce-job-fault", fault);
    checks::answered(&order, port, false).await.map(drop)
}

/// SIGSTOP between intent and send × a provider that fails the taker × a second key × SIGCONT.
pub(crate) async fn stop_take_over_wake(scene: &mut Scene, taker: Taker) -> Result<(), String> {
    let order = scene.ordered().await;
    let (first_key, second_key) = (scene.key("first"), scene.key("second"));
    let card = match taker {
        Taker::Refused => "pm_card_ok",
        // The charge is made only when everybody has given up on it.
        Taker::Unheard => "pm_card_slow",
    };
    let first = scene.payment(&order, &first_key, card).header("prefer", "wait=0");
    let second = scene.payment(&order, &second_key, "pm_card_ok").header("prefer", "wait=0");
    let other = scene.other.as_ref().expect("a second replica").port();

    let meeting = Meeting::new().await;
    let armed =
        first.clone().header("x-payonce-fault", format!("intent_committed:{}", meeting.action()));
    let call = armed.send(scene.shop.port()).await.map_err(|error| error.to_string())?;
    let here = meeting.arrived().await.map_err(|_| "the point was not reached".to_owned())?;
    scene.pause_shop();
    let waking = tokio::spawn(call.answer());

    fail_the_taker(scene, taker, &first, other).await?;
    let refused = told(&second, other, "payment_in_progress").await?;
    ensure(refused.status == 409, || format!("a second key was told {}", refused.shown()))?;

    scene.wake_shop();
    drop(here);
    let woken = waking.await.unwrap().map_err(|error| error.to_string())?;
    let honest = matches!(woken.text("code").as_str(), "outcome_unknown" | "request_in_progress");
    let freed = !(honest || woken.status == 201);
    scene.control_provider(&json!({ "down": false })).await;
    let late = second.ask(other).await.map_err(|error| error.to_string())?;
    settled(scene, &order, &first, other).await?;
    ensure(!freed, || format!("the owner that woke was told {}", woken.shown()))?;
    ensure(late.status == 409, || format!("the second key was told {}", late.shown()))?;
    checks::left_over(scene).await
}

async fn fail_the_taker(
    scene: &Scene,
    taker: Taker,
    first: &Request,
    other: u16,
) -> Result<(), String> {
    match taker {
        Taker::Refused => scene.control_provider(&json!({ "down": true })).await,
        Taker::Unheard => {
            let until = Instant::now() + checks::STUCK_AFTER;
            while !scene.was_charged().await {
                ensure(Instant::now() < until, || "nobody took over".to_owned())?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            scene.control_provider(&json!({ "down": true })).await;
        }
    }
    told(first, other, "outcome_unknown").await.map(drop)
}

/// Asks until the answer has this code.
async fn told(request: &Request, port: u16, code: &str) -> Result<Answer, String> {
    let until = Instant::now() + checks::STUCK_AFTER;
    let mut last = String::new();
    while Instant::now() < until {
        let answer = request.ask(port).await.map_err(|error| error.to_string())?;
        if answer.text("code") == code {
            return Ok(answer);
        }
        last = answer.shown();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(format!("not {code} but {last}"))
}

/// The first key ends with the money moved once, or called off and never moved.
async fn settled(scene: &Scene, order: &str, first: &Request, port: u16) -> Result<(), String> {
    let called_off =
        |answer: &Answer| answer.status == 409 && answer.text("code") == "invalid_transition";
    let until = Instant::now() + checks::STUCK_AFTER;
    loop {
        let answer = first.ask(port).await.map_err(|error| error.to_string())?;
        if answer.status == 201 || called_off(&answer) {
            break;
        }
        ensure(Instant::now() < until, || format!("stuck at {}", answer.shown()))?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let charges = scene.charges(order).await;
    let captures = charges.iter().filter(|charge| charge["status"] == "succeeded").count();
    ensure(captures <= 1, || format!("{captures} captures"))?;
    let (code, differences) = scene.reconcile();
    ensure(code == 0, || format!("reconcile: {code} {differences}"))
}
