//! One cell of the matrix: one point, one fault, then everything that has to hold.

use std::time::{Duration, Instant};

use super::checks::{self, ensure};
use super::scene::Scene;
use crate::process::{Answer, Meeting, Request};

/// Where something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) name: &'static str,
    pub(crate) during: During,
}

/// What the request is doing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum During {
    /// Placing an order.
    Order,
    /// Paying.
    Payment,
    /// Replaying a payment in a process that does not remember it.
    Replay,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Kill,
    Reset,
    AckLost,
    DatabaseRestart,
    RedisFlush,
    Stop,
}

const fn point(name: &'static str, during: During) -> Point {
    Point { name, during }
}

pub(crate) const POINTS: [Point; 13] = [
    point("before_order", During::Order),
    point("order_committed", During::Order),
    point("before_claim", During::Payment),
    point("claimed", During::Payment),
    point("before_intent_commit", During::Payment),
    point("intent_committed", During::Payment),
    point("before_send", During::Payment),
    point("after_send", During::Payment),
    point("answered", During::Payment),
    point("before_settle_commit", During::Payment),
    point("settle_committed", During::Payment),
    point("before_cache_write", During::Replay),
    point("after_cache_write", During::Replay),
];

pub(crate) const FAULTS: [Fault; 6] = [
    Fault::Stop,
    Fault::DatabaseRestart,
    Fault::Kill,
    Fault::AckLost,
    Fault::Reset,
    Fault::RedisFlush,
];

impl Fault {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL",
            Self::Reset => "TCP reset",
            Self::AckLost => "commit answer lost",
            Self::DatabaseRestart => "database restart",
            Self::RedisFlush => "Redis flush",
            Self::Stop => "SIGSTOP past the lease",
        }
    }

    fn hits_database(self) -> bool {
        matches!(self, Self::AckLost | Self::DatabaseRestart)
    }
}

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
const NOT_REACHED: &str = "the point was not reached";

async fn once(scene: &mut Scene, point: Point, fault: Fault) -> Outcome {
    let order_key = scene.key("order");
    let ordering = scene.order(&order_key);
    if point.during == During::Order {
        let (placed, took) = strike(scene, &ordering, point, fault).await?;
        let order = placed.text("id");
        pay(scene, &order).await?;
        one_order(scene, &order_key).await?;
        checks::invariants(scene, &order).await?;
        return Ok(took);
    }
    let placed = checks::answered(&ordering, scene.shop.port(), false).await?;
    let order = placed.text("id");
    let key = scene.key("pay");
    let paying = scene.payment(&order, &key, "pm_card_ok");
    if point.during == During::Replay {
        checks::answered(&paying, scene.shop.port(), false).await?;
        scene.restart_shop();
    }
    let (_, took) = strike(scene, &paying, point, fault).await?;
    checks::invariants(scene, &order).await?;
    // A stopped owner may wake and send what it was about to send: harmless, and allowed. A
    // provider whose database restarts refuses calls, which need no question before the next.
    if !matches!(fault, Fault::Stop | Fault::DatabaseRestart) {
        checks::asked_before_sending_again(scene, &order).await?;
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
    let mut struck = Instant::now();
    let survivor = match (fault, &scene.other) {
        (Fault::Stop, Some(other)) => other.port(),
        _ => 0,
    };
    let first = match fault {
        Fault::Reset => {
            call.reset();
            None
        }
        _ => Some(tokio::spawn(call.answer())),
    };
    match fault {
        Fault::Kill => {
            scene.restart_shop();
            struck = Instant::now();
        }
        Fault::DatabaseRestart => scene.database.restart_immediate(),
        Fault::RedisFlush => scene.redis.flush().await,
        Fault::AckLost => scene.proxy.cut_next_commit(),
        Fault::Stop => scene.pause_shop(),
        Fault::Reset => {}
    }
    let mut here = Some(here);
    if fault != Fault::Stop {
        here.take();
    }
    let port = if survivor == 0 { scene.shop.port() } else { survivor };
    let answer = checks::answered(request, port, fault.hits_database()).await?;
    let took = struck.elapsed();
    if fault == Fault::Stop {
        scene.wake_shop();
        here.take();
    }
    scene.proxy.cut_no_more();
    if let (Some(first), true) = (first, fault != Fault::Kill) {
        first_answer(first, &answer, fault).await?;
    }
    checks::same_bytes(scene, request, &answer).await?;
    Ok((answer, took))
}

/// Whoever asked first, and was still there, was told the same or to ask again.
async fn first_answer(
    first: tokio::task::JoinHandle<std::io::Result<Answer>>,
    answer: &Answer,
    fault: Fault,
) -> Result<(), String> {
    let first = first.await.unwrap().map_err(|error| format!("the first request: {error}"))?;
    let again =
        matches!(first.text("code").as_str(), "request_in_progress" | "outcome_unknown" | "busy");
    let same = first.status == answer.status && first.body == answer.body;
    let failed = first.status == 500 && fault.hits_database();
    ensure(same || again || failed, || format!("the first request was told {}", first.shown()))
}

async fn pay(scene: &mut Scene, order: &str) -> Result<(), String> {
    let key = scene.key("pay");
    let paying = scene.payment(order, &key, "pm_card_ok");
    checks::answered(&paying, scene.shop.port(), false).await.map(drop)
}

async fn one_order(scene: &Scene, key: &str) -> Result<(), String> {
    let mut look = scene.look().await;
    let orders: i64 = sqlx::query_scalar(r#"select count(*) from "order" where key = $1"#)
        .bind(key)
        .fetch_one(&mut look)
        .await
        .map_err(|error| error.to_string())?;
    ensure(orders == 1, || format!("{orders} orders under one key"))
}
