//! Cells of what leaves by itself: a mail, and an event for a merchant. Nobody waits for them, so
//! nobody asks again; they have to arrive all the same, and a repeat has to be the same thing.

use std::time::{Duration, Instant};

use super::cell::{NOT_REACHED, Outcome, inflict};
use super::checks::{self, ensure};
use super::rows::{Deed, Fault, Point};
use super::scene::Scene;
use crate::process::Meeting;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// One by the process that was struck, one by whoever came after it.
const ARRIVALS_MAX: usize = 2;

/// A lease of a second, where the product has longer ones, and no pause after a failure; for the
/// attempt that was struck. Who comes after it may be slow.
const HURRY: [&str; 2] = [
    "update mail set lease_until = least(lease_until, clock_timestamp() + interval '1 second'),
            next_attempt_at = least(lease_until, clock_timestamp() + interval '1 second')
     where state = 'queued' and next_attempt_at > clock_timestamp() + interval '1 second'
       and attempts <= 1",
    "update delivery set lease_until = least(lease_until, clock_timestamp() + interval '1 second'),
            next_attempt_at = least(lease_until, clock_timestamp() + interval '1 second')
     where state = 'queued' and next_attempt_at > clock_timestamp() + interval '1 second'
       and attempts <= 1",
];

pub(super) async fn once(scene: &mut Scene, point: Point, fault: Fault) -> Outcome {
    empty(scene).await?;
    let order = scene.placed().await?;
    let key = scene.key("pay");
    let meeting = Meeting::new().await;
    let armed = format!("{}:{}", point.name, meeting.action());
    let paying = scene.payment(&order, &key, "pm_card_ok").header("x-payonce-job-fault", armed);
    // It must be the one that is struck who takes it.
    scene.pause_other();
    checks::answered(&paying, scene.shop.port(), false).await?;
    let here = meeting.arrived().await;
    scene.wake_other();
    let here = here.map_err(|_| NOT_REACHED.to_owned())?;
    if fault == Fault::Reset {
        scene.receiver.reset_next();
    }
    let struck = inflict(scene, fault).await;
    let mut here = Some(here);
    if fault != Fault::Stop {
        here.take();
    }
    empty(scene).await?;
    let took = struck.elapsed();
    if fault == Fault::Stop {
        scene.wake_shop();
        here.take();
    }
    scene.proxy.cut_no_more();
    arrived(scene, point.deed, &order).await?;
    checks::invariants(scene, &order, "paid").await?;
    Ok(took)
}

/// Until nothing is on its way any more.
pub(super) async fn empty(scene: &Scene) -> Result<(), String> {
    let until = Instant::now() + checks::STUCK_AFTER;
    let mut left = -1;
    while Instant::now() < until {
        left = on_the_way(scene).await.unwrap_or(left);
        if left == 0 {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Err(format!("{left} mails and events never left"))
}

async fn on_the_way(scene: &Scene) -> sqlx::Result<i64> {
    let mut look = scene.try_look().await?;
    for hurry in HURRY {
        sqlx::query(hurry).execute(&mut look).await?;
    }
    let left = "select (select count(*) from mail where state <> 'sent')
                     + (select count(*) from delivery where state <> 'delivered')";
    sqlx::query_scalar(left).fetch_one(&mut look).await
}

/// It came, at most once more than it had to, and under one id.
async fn arrived(scene: &Scene, deed: Deed, order: &str) -> Result<(), String> {
    let id = match deed {
        Deed::Mail => {
            "select message_id from mail where kind = 'receipt'
             and subject_id = replace($1, 'ord_', '')::uuid"
        }
        _ => {
            "select 'evt_' || replace(id::text, '-', '') from event where kind = 'order.paid'
             and subject_id = replace($1, 'ord_', '')::uuid"
        }
    };
    let mut look = scene.look().await;
    let ids = sqlx::query_scalar(id).bind(order).fetch_all(&mut look).await;
    let ids: Vec<String> = ids.map_err(|error| error.to_string())?;
    let [id] = &ids[..] else { return Err(format!("{} of them for one order", ids.len())) };
    let came = match deed {
        Deed::Mail => scene.mails.mails().iter().filter(|m| m.header("Message-ID") == *id).count(),
        _ => scene.receiver.times(id),
    };
    ensure((1..=ARRIVALS_MAX).contains(&came), || format!("it came {came} times"))
}
