//! One cell of the matrix: one point, one fault, then everything that has to hold.

use std::time::{Duration, Instant};

use super::checks::{self, ensure};
use super::rows::{Deed, Fault, Point};
use super::scene::Scene;
use super::{couriers, deed};
use crate::process::{Answer, Meeting, Request};

/// How long it took from the fault to the final answer, or what did not hold.
pub(crate) type Outcome = Result<Duration, String>;

/// On a machine that has no time for it a request may be answered before it comes to its point.
/// Then nothing was tried, so it is tried again.
pub(crate) async fn run(scene: &mut Scene, point: Point, fault: Fault) -> Outcome {
    for _ in 1..TRIES {
        match once(scene, point, fault).await {
            Err(why) if why == NOT_REACHED => {}
            outcome => return outcome,
        }
    }
    once(scene, point, fault).await
}

const TRIES: usize = 4;
pub(super) const NOT_REACHED: &str = "the point was not reached";

async fn once(scene: &mut Scene, point: Point, fault: Fault) -> Outcome {
    if point.deed.is_courier() {
        return couriers::once(scene, point, fault).await;
    }
    let prepared = deed::prepare(scene, point.deed).await?;
    let (answer, took) = strike(scene, &prepared.request, point, fault).await?;
    deed::check(scene, point.deed, &prepared, &answer).await?;
    // A stopped owner may wake and send what it was about to send: harmless, and allowed. A
    // provider whose database restarts refuses calls, which need no question before the next.
    if !matches!(fault, Fault::Stop | Fault::DatabaseRestart) {
        match point.deed {
            Deed::Payment | Deed::Replay => {
                checks::asked_before_charging_again(scene, &prepared.order).await?;
            }
            Deed::Refund => checks::asked_before_refunding_again(scene, &prepared.order).await?,
            _ => {}
        }
    }
    Ok(took)
}

/// Sends the request, strikes at the point, sends it again until it is answered for good.
async fn strike(
    scene: &mut Scene,
    request: &Request,
    point: Point,
    fault: Fault,
) -> Result<(Answer, Duration), String> {
    let meeting = Meeting::new().await;
    let armed =
        request.clone().header("x-payonce-fault", format!("{}:{}", point.name, meeting.action()));
    let call = armed.send(scene.shop.port()).await.map_err(|error| error.to_string())?;
    let here = meeting.arrived().await.map_err(|_| NOT_REACHED.to_owned())?;
    let first = match fault {
        Fault::Reset => {
            call.reset();
            None
        }
        _ => Some(tokio::spawn(call.answer())),
    };
    let struck = inflict(scene, fault).await;
    let mut here = Some(here);
    if fault != Fault::Stop {
        here.take();
    }
    let answer = checks::answered(request, scene.living_port(fault), fault.hits_database()).await?;
    let took = struck.elapsed();
    if fault == Fault::Stop {
        scene.wake_shop();
        here.take();
    }
    scene.proxy.cut_no_more();
    if let (Some(first), true) = (first, fault != Fault::Kill) {
        first_answer(first, &answer, point, fault).await?;
    }
    if point.deed != Deed::Event {
        checks::same_bytes(scene, request, &answer).await?;
    }
    Ok((answer, took))
}

/// Lets it go wrong; says when the retries begin. A killed server is started again before them.
pub(super) async fn inflict(scene: &mut Scene, fault: Fault) -> Instant {
    let struck = Instant::now();
    match fault {
        Fault::Kill => {
            scene.restart_shop();
            return Instant::now();
        }
        Fault::DatabaseRestart => scene.database.restart_immediate(),
        Fault::RedisFlush => scene.redis.flush().await,
        Fault::AckLost => scene.proxy.cut_next_commit(),
        Fault::Stop => scene.pause_shop(),
        Fault::Reset => {}
    }
    struck
}

/// Whoever asked first, and was still there, was told the same or to ask again.
async fn first_answer(
    first: tokio::task::JoinHandle<std::io::Result<Answer>>,
    answer: &Answer,
    point: Point,
    fault: Fault,
) -> Result<(), String> {
    let first = first.await.unwrap().map_err(|error| format!("the first request: {error}"))?;
    let again = checks::passes(&first);
    let same =
        first.status == answer.status && (first.body == answer.body || point.deed == Deed::Event);
    let failed = first.status == 500 && fault.hits_database();
    ensure(same || again || failed, || format!("the first request was told {}", first.shown()))
}
