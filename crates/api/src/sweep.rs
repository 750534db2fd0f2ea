//! Removes what has had its day, in small batches beside the running business.
//!
//! Each batch is one short statement that takes its rows in order and skips those that others
//! hold, so that any number of sweeps may run at once and none waits for an order, nor an order
//! for it. Expired counts as absent already; sweeping only gives the room back. What protects
//! against a second effect stays: orders, payments, refunds and events remember their keys for
//! ever, and a mail keeps its row and loses its text. An unfinished record is never touched.

pub mod schedule;
mod sql;

use std::time::Duration;

use sqlx::PgConnection;
use tokio::time::{Instant, sleep};

use crate::app::App;
use crate::db;
use crate::telemetry::metrics::{SWEPT, took};

/// Rows of one statement.
pub const BATCH: i64 = 1000;
/// A run ends after so many batches of one kind: the next one goes on.
const BATCHES_MAX: usize = 2000;
/// A run ends after this long, whatever is left.
const RUN_MAX: Duration = Duration::from_mins(20);

/// What one run removed, by kind.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Swept(pub Vec<(&'static str, u64)>);

impl Swept {
    /// Rows of all kinds.
    pub fn rows(&self) -> u64 {
        self.0.iter().map(|(_, rows)| rows).sum()
    }
}

/// One run over everything that can be swept.
///
/// # Errors
/// Those of the database. What was removed before stays removed.
pub async fn run_once(app: &App) -> sqlx::Result<Swept> {
    let started = Instant::now();
    let mut conn = app.db.connection().await?;
    let swept = run(&mut conn, started + RUN_MAX).await;
    took("payonce_sweep_duration_seconds", started.elapsed());
    match &swept {
        Ok(swept) => {
            metrics::counter!("payonce_sweep_runs_total").increment(1);
            tracing::info!(rows = swept.rows(), ?swept, "swept");
        }
        Err(error) => {
            metrics::counter!("payonce_sweep_failures_total").increment(1);
            tracing::error!(%error, "a sweep failed");
        }
    }
    conn.end(swept)
}

/// One run on a connection of its own, for the command.
///
/// # Errors
/// Those of the database.
pub async fn run_on(conn: &mut PgConnection) -> sqlx::Result<Swept> {
    run(conn, Instant::now() + RUN_MAX).await
}

async fn run(conn: &mut PgConnection, until: Instant) -> sqlx::Result<Swept> {
    let mut swept = Swept::default();
    for kind in SWEPT {
        let rows = kind_of(conn, kind, until).await?;
        swept.0.push((kind, rows));
    }
    Ok(swept)
}

/// Batch after batch, with a rest as long as the work was: half of one connection at most.
async fn kind_of(conn: &mut PgConnection, kind: &'static str, until: Instant) -> sqlx::Result<u64> {
    let mut cursor = sql::Cursor::default();
    let mut rows = 0;
    for _ in 0..BATCHES_MAX {
        let started = Instant::now();
        let batch = batch(conn, kind, &mut cursor).await?;
        rows += batch.removed;
        metrics::counter!("payonce_sweep_rows_total", "kind" => kind).increment(batch.removed);
        if batch.last || Instant::now() >= until {
            break;
        }
        sleep(started.elapsed()).await;
    }
    Ok(rows)
}

/// A conflict undoes one batch, which is then tried again.
async fn batch(
    conn: &mut PgConnection,
    kind: &'static str,
    cursor: &mut sql::Cursor,
) -> sqlx::Result<sql::Batch> {
    match db::answered(db::SILENCE, sql::sweep(conn, kind, cursor)).await {
        Err(error) if db::is_conflict(&error) => sql::sweep(conn, kind, cursor).await,
        swept => swept,
    }
}
