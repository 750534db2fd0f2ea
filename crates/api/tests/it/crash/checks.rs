//! What must hold after every crash, whatever it was.

use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::PgConnection;

use super::scene::Scene;
use crate::process::{Answer, Request};

/// A dead holder's lease, and ten seconds for everything that comes after it.
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(11);
const AGAIN: Duration = Duration::from_millis(100);

/// Sends the same request until its answer is final, as a careful client does.
/// `faulty_database`: a server whose database has just died may say that it failed.
pub(crate) async fn answered(
    request: &Request,
    port: u16,
    faulty_database: bool,
) -> Result<Answer, String> {
    let until = Instant::now() + STUCK_AFTER;
    let mut last = "nothing".to_owned();
    while Instant::now() < until {
        match request.ask(port).await {
            Ok(answer) if (200..300).contains(&answer.status) || answer.status == 402 => {
                return Ok(answer);
            }
            Ok(answer) => {
                let excused = faulty_database && answer.status == 500;
                if !(passes(&answer) || excused) {
                    return Err(format!("a retry was answered {}", answer.shown()));
                }
                last = answer.shown();
            }
            Err(error) => last = error.to_string(),
        }
        tokio::time::sleep(AGAIN).await;
    }
    Err(format!("the key is stuck: no final answer, but {last}"))
}

/// Whether an answer says to send the same request again.
pub(crate) fn passes(answer: &Answer) -> bool {
    matches!(
        answer.text("code").as_str(),
        "request_in_progress" | "outcome_unknown" | "busy" | "provider_unavailable"
    )
}

/// Every further retry, here and elsewhere, gets the same bytes.
pub(crate) async fn same_bytes(
    scene: &Scene,
    request: &Request,
    first: &Answer,
) -> Result<(), String> {
    let other = scene.other.as_ref().map(super::super::process::Payonce::port);
    for port in [Some(scene.shop.port()), Some(scene.shop.port()), other].into_iter().flatten() {
        let again = request.ask(port).await.map_err(|error| error.to_string())?;
        let same = again.body == first.body
            && again.status == first.status
            && again.header("location") == first.header("location")
            && again.header("content-digest") == first.header("content-digest")
            && again.header("idempotency-replayed") == Some("true");
        ensure(same, || format!("{} became {}", first.shown(), again.shown()))?;
    }
    Ok(())
}

/// One capture, an order in its right state, books that agree, nothing left over.
pub(crate) async fn invariants(scene: &Scene, order: &str, right: &str) -> Result<(), String> {
    let shown = scene.get(format!("/v1/orders/{order}")).ask(scene.shop.port()).await;
    let shown = shown.map_err(|error| error.to_string())?;
    ensure(shown.text("status") == right, || format!("the order is {}", shown.shown()))?;
    charged_once(scene, order).await?;
    let (code, differences) = scene.reconcile();
    ensure(code == 0, || format!("reconcile: {code} {differences}"))?;
    left_over(scene).await
}

/// What the provider's own books say.
pub(crate) async fn charged_once(scene: &Scene, order: &str) -> Result<(), String> {
    let charges = scene.charges(order).await;
    let captures = charges.iter().filter(|charge| charge["status"] == "succeeded").count();
    ensure(captures <= 1, || format!("charged more than once: {captures} captures"))?;
    ensure(captures == 1, || "nothing was charged".to_owned())
}

/// What must not stay: a machine that has no time may show it for a moment.
const STAYS: [(&str, &str); 2] = [
    (
        "records that nobody works on",
        "select count(*) from idempotency_record where state in ('processing', 'unknown')
         and lease_until < clock_timestamp() - interval '5 seconds'",
    ),
    (
        "open transactions that do nothing",
        "select count(*) from pg_stat_activity where application_name = 'payonce'
         and state like 'idle in transaction%' and state_change < clock_timestamp() - interval '1 second'",
    ),
];

/// Statements that count what must never be there, each with its name.
const WRONG: [(&str, &str); 8] = [
    (
        "ledger transactions that do not balance",
        "select count(*) from (select from ledger_posting group by transaction_id, currency
         having sum(amount) <> 0) as l",
    ),
    (
        "products whose stock is not what moved",
        "select count(*) from product p where stock <> initial_stock
         + (select coalesce(sum(delta), 0) from stock_change c where c.product_id = p.id)",
    ),
    (
        "orders without lines",
        r#"select count(*) from "order" o where not exists (select from order_line l
         where l.order_id = o.id)"#,
    ),
    (
        "orders paid twice",
        "select count(*) from (select from payment where status = 'succeeded' and not misdirected
         group by order_id having count(*) > 1) as p",
    ),
    (
        "mails sent twice",
        "select count(*) from (select from mail group by kind, subject_id having count(*) > 1) as m",
    ),
    (
        "paid orders without their one receipt",
        r#"select count(*) from "order" o where status = 'paid' and email is not null
           and not exists (select from mail m where m.kind = 'receipt' and m.subject_id = o.id)"#,
    ),
    (
        "refunds without their one notice",
        r#"select count(*) from refund r join payment p on p.id = r.payment_id
           join "order" o on o.id = p.order_id
           where r.status = 'succeeded' and o.email is not null and not exists
           (select from mail m where m.kind = 'refund_notice' and m.subject_id = r.id)"#,
    ),
    (
        "refunds above what was captured",
        "select count(*) from payment p where amount < (select coalesce(sum(amount), 0) from refund r
         where r.payment_id = p.id and r.status <> 'failed')",
    ),
];

/// Nothing is left that should not be there.
pub(crate) async fn left_over(scene: &Scene) -> Result<(), String> {
    let mut look = scene.look().await;
    for (name, statement) in WRONG {
        let count = count(&mut look, statement).await?;
        ensure(count == 0, || format!("{count} {name}"))?;
    }
    for (name, statement) in STAYS {
        let until = Instant::now() + STUCK_AFTER;
        while count(&mut look, statement).await? > 0 {
            ensure(Instant::now() < until, || format!("still there: {name}"))?;
            tokio::time::sleep(AGAIN).await;
        }
    }
    Ok(())
}

async fn count(look: &mut PgConnection, statement: &'static str) -> Result<i64, String> {
    let counted = sqlx::query_scalar(statement).fetch_one(look).await;
    counted.map_err(|error| error.to_string())
}

/// The whole charge went back once, at the provider too.
pub(crate) async fn refunded_once(scene: &Scene, order: &str) -> Result<(), String> {
    let refunds = scene.refunds(order).await;
    let made = refunds.iter().filter(|refund| refund["status"] == "succeeded").count();
    ensure(made == 1, || format!("{made} refunds at the provider"))
}

/// Whoever takes over asks before sending again what may have been sent.
pub(crate) async fn asked_before_charging_again(scene: &Scene, order: &str) -> Result<(), String> {
    asked_before_sending_again(scene, &scene.charges(order).await, "POST /charges").await
}

/// The same for a refund.
pub(crate) async fn asked_before_refunding_again(scene: &Scene, order: &str) -> Result<(), String> {
    asked_before_sending_again(scene, &scene.refunds(order).await, "POST /refunds").await
}

async fn asked_before_sending_again(
    scene: &Scene,
    errands: &[Value],
    call: &str,
) -> Result<(), String> {
    let provider_key = errands.first().and_then(|errand| errand["provider_key"].as_str());
    let Some(provider_key) = provider_key else { return Err(format!("no {call}")) };
    let calls = scene.calls(provider_key).await;
    let unasked = calls.windows(2).any(|two| two[0] == two[1] && two[0] == call);
    ensure(!unasked, || format!("sent again without asking: {calls:?}"))
}

pub(crate) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}
