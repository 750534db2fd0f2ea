//! Events on their way to the endpoints that listen: signed, the same id and bytes every time.

pub mod sql;

use std::error::Error;

use domain::EventId;
use sqlx::PgConnection;

use super::endpoints::secret;
use super::signature;
use crate::app::App;
use crate::courier::{Counts, Courier, pause_seconds, run_once as run};
use crate::db;
use crate::fault;

/// A day and a half in all; then the delivery is dead.
const SCHEDULE_SECONDS: &[f64] =
    &[5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 10_800.0, 21_600.0, 43_200.0, 43_200.0];

/// Carries events.
pub struct Events;

impl Courier for Events {
    type Due = sql::Due;
    const NAME: &'static str = "delivery";
    const AT_ONCE: usize = 32;

    async fn claim(conn: &mut PgConnection) -> sqlx::Result<Option<sql::Due>> {
        sql::claim(conn).await
    }

    async fn deliver(app: App, mut due: sql::Due) -> bool {
        due.deleted |= !app.knows(due.owner.as_deref());
        fault::at("delivery_claimed").await;
        let sent = send(&app, &due).await;
        fault::at("delivery_sent").await;
        if let Err(error) = db::retrying(|| note(&app, &due, &sent)).await {
            // The lease runs out, and it is sent again under the same id.
            tracing::warn!(%error, "could not write down what came of a delivery");
        }
        fault::at("delivery_noted").await;
        sent.is_ok()
    }
}

/// Delivers everything that is due now.
///
/// # Errors
/// Those of the database while looking for work.
pub async fn run_once(app: &App) -> sqlx::Result<Counts> {
    run::<Events>(app).await
}

/// One attempt. What the receiver says beyond its status is not read.
async fn send(app: &App, due: &sql::Due) -> Result<(), String> {
    if due.deleted {
        return Err("the endpoint was deleted".to_owned());
    }
    let secret = secret::open(&app.secrets, due.endpoint, &due.sealed_secret)
        .ok_or("the signing secret was sealed under another key")?;
    let id = EventId::from_uuid(due.event).to_string();
    let timestamp = app.clock.now().unix_timestamp();
    let request = app.targets.post(&due.url).map_err(|refused| refused.to_string())?;
    let response = request
        .header("content-type", "application/json")
        .header(signature::ID, &id)
        .header(signature::TIMESTAMP, timestamp)
        .header(signature::SIGNATURE, signature::sign(&secret, &id, timestamp, &due.body))
        .body(due.body.clone())
        .send()
        .await
        .map_err(|error| chain(&error.without_url()))?;
    let status = response.status();
    if status.is_success() { Ok(()) } else { Err(format!("the receiver answered {status}")) }
}

async fn note(app: &App, due: &sql::Due, sent: &Result<(), String>) -> sqlx::Result<()> {
    let mut conn = app.db.connection().await?;
    let noted = match sent {
        Ok(()) => sql::delivered(&mut conn, due).await,
        Err(reason) => {
            let pause = pause_seconds(due.attempts, SCHEDULE_SECONDS).filter(|_| !due.deleted);
            tracing::info!(event = %due.event, endpoint = %due.endpoint, attempts = due.attempts,
                reason, dead = pause.is_none(), "an event did not arrive");
            sql::failed(&mut conn, due, reason, pause).await
        }
    };
    conn.end(noted).map(drop)
}

/// The reasons behind a reason: the first one alone says only that sending failed.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
