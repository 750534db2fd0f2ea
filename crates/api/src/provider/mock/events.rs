//! Webhooks: recorded with what they tell about, delivered later, as real networks deliver.
//!
//! An event keeps its id and its bytes on every attempt; only the timestamp and with it the
//! signature are new. It is tried until it has arrived as often as it should, or is dead.

mod sql;

use std::sync::Mutex;
use std::time::Duration;

use actix_web::web::Data;
use anyhow::Context;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::redirect::Policy;
use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;
use time::format_description::well_known::Rfc3339;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::refusal::Refusal;
use super::{Mock, MockSettings, WebhookOrder, id};
use crate::webhooks::signature::{self, Secret};

/// One attempt; shorter than the lease an event is claimed under.
const ATTEMPT_TIME: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(2);
const ATTEMPTS_MAX: i32 = 30;
const BACKOFF_MAX_SECONDS: f64 = 30.0;

/// Where events go, and how.
pub(super) struct Deliveries {
    url: String,
    secret: Secret,
    http: reqwest::Client,
    /// `None`: in order.
    shuffle: Option<Mutex<StdRng>>,
    wake: watch::Sender<()>,
}

/// When and how often an event is to arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plan {
    copies: i32,
    delay_seconds: f64,
}

impl Deliveries {
    pub(super) fn new(settings: MockSettings) -> anyhow::Result<Option<Self>> {
        let Some(url) = settings.webhook_url else {
            return Ok(None);
        };
        let secret = settings.webhook_secrets.into_iter().next();
        Ok(Some(Self {
            url,
            secret: secret.context("webhooks need a secret to sign with")?,
            http: http_client()?,
            shuffle: match settings.webhook_order {
                WebhookOrder::Straight => None,
                WebhookOrder::Shuffled { seed } => Some(Mutex::new(StdRng::seed_from_u64(seed))),
            },
            wake: watch::Sender::new(()),
        }))
    }

    pub(super) fn wake(&self) {
        self.wake.send_replace(());
    }

    /// One event in four comes twice; half of them late enough to be overtaken.
    fn plan(&self) -> Plan {
        let Some(shuffle) = &self.shuffle else {
            return Plan { copies: 1, delay_seconds: 0.0 };
        };
        let mut rng = shuffle.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let copies = if rng.random_ratio(1, 4) { 2 } else { 1 };
        let late = if rng.random_ratio(1, 2) { 2.0 } else { 0.1 };
        Plan { copies, delay_seconds: rng.random_range(0.0..late) }
    }

    async fn send(&self, event: &sql::Due) -> anyhow::Result<()> {
        let signature = signature::sign(&self.secret, &event.id, event.now, &event.body);
        self.http
            .post(&self.url)
            .header("content-type", "application/json")
            .header(signature::ID, &event.id)
            .header(signature::TIMESTAMP, event.now)
            .header(signature::SIGNATURE, signature)
            .body(event.body.clone())
            .send()
            .await?
            .error_for_status()
            .map(drop)
            .map_err(Into::into)
    }
}

/// Writes the event in the transaction that makes it true.
pub(super) async fn record(
    mock: &Mock,
    tx: &mut PgConnection,
    kind: &str,
    data: &impl Serialize,
) -> Result<(), Refusal> {
    let Some(deliveries) = &mock.deliveries else {
        return Ok(());
    };
    let id = id("evt");
    let created_at = sql::now(tx).await?.format(&Rfc3339)?;
    let event = json!({ "id": id, "type": kind, "created_at": created_at, "data": data });
    let plan = deliveries.plan();
    sql::insert(tx, &id, event.to_string().as_bytes(), plan.copies, plan.delay_seconds).await?;
    Ok(())
}

/// One worker keeps the order; several let a slow attempt be overtaken.
pub(super) fn start(mock: &Data<Mock>) -> Vec<JoinHandle<()>> {
    let workers = match mock.deliveries.as_ref().map(|deliveries| &deliveries.shuffle) {
        None => 0,
        Some(None) => 1,
        Some(Some(_)) => 3,
    };
    (0..workers).map(|_| tokio::spawn(work(mock.clone()))).collect()
}

async fn work(mock: Data<Mock>) {
    let Some(deliveries) = &mock.deliveries else {
        return;
    };
    let mut woken = deliveries.wake.subscribe();
    loop {
        let pause = tokio::select! {
            () = mock.stopped() => return,
            pause = deliver_next(&mock, deliveries) => pause,
        };
        tokio::select! {
            () = mock.stopped() => return,
            _ = woken.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Delivers one event if one is due; returns how long to wait for the next.
async fn deliver_next(mock: &Mock, deliveries: &Deliveries) -> Duration {
    if mock.control.switches().hold_webhooks {
        return IDLE;
    }
    match attempt(mock, deliveries).await {
        Ok(pause) => pause.min(IDLE),
        Err(error) => {
            tracing::warn!(%error, "webhooks wait for the provider's database");
            IDLE
        }
    }
}

async fn attempt(mock: &Mock, deliveries: &Deliveries) -> sqlx::Result<Duration> {
    let due = sql::claim(&mut *mock.pool.acquire().await?).await?;
    let Some(event) = due else {
        let seconds = sql::seconds_to_next(&mut *mock.pool.acquire().await?).await?;
        return Ok(seconds.map_or(IDLE, |seconds| Duration::from_secs_f64(seconds.max(0.001))));
    };
    let sent = deliveries.send(&event).await;
    let mut connection = mock.pool.acquire().await?;
    match sent {
        Ok(()) => sql::arrived(&mut connection, &event.id, deliveries.plan().delay_seconds).await?,
        Err(error) => {
            tracing::debug!(
                event = event.id,
                error = format!("{error:#}"),
                "a webhook did not arrive"
            );
            sql::failed(&mut connection, &event.id, backoff_seconds(event.attempts), ATTEMPTS_MAX)
                .await?;
        }
    }
    Ok(Duration::ZERO)
}

fn backoff_seconds(attempts: i32) -> f64 {
    (0.25 * 2_f64.powi(attempts.clamp(0, 16))).min(BACKOFF_MAX_SECONDS)
}

/// Follows no redirects and asks no proxy.
fn http_client() -> anyhow::Result<reqwest::Client> {
    // Only the first call installs it; an application that chose another one keeps it.
    rustls::crypto::ring::default_provider().install_default().ok();
    let client =
        reqwest::Client::builder().timeout(ATTEMPT_TIME).redirect(Policy::none()).no_proxy();
    Ok(client.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_spread_wider_and_wider_up_to_half_a_minute() {
        let pauses: Vec<f64> = [1, 2, 3, 8, 30].map(backoff_seconds).into();
        assert_eq!(pauses, [0.5, 1.0, 2.0, 30.0, 30.0]);
    }
}
