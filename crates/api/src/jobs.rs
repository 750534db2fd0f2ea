//! What every process does once in a while. Each job has a `run_once` that does one round.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::app::App;
use crate::courier;
use crate::db;
use crate::mail::deliver::Mails;
use crate::orders::expire;
use crate::payments::recover;
use crate::presses;
use crate::sweep::{self, schedule::Schedule};
use crate::telemetry::metrics::{JOBS, float};
use crate::telemetry::observe;
use crate::webhooks::deliver::Events;

const CLOCK_EVERY: Duration = Duration::from_secs(30);
const OBSERVE_EVERY: Duration = Duration::from_secs(15);
const PRESSES_EVERY: Duration = Duration::from_secs(1);
const EXPIRE_EVERY: Duration = Duration::from_secs(2);
/// A round that takes longer than this waits for a database that is silent.
const ROUND_MAX: Duration = Duration::from_secs(75);

/// Running jobs; they end when this is dropped.
pub struct Jobs(Vec<JoinHandle<()>>);

impl Drop for Jobs {
    fn drop(&mut self) {
        for job in &self.0 {
            job.abort();
        }
    }
}

/// Starts all jobs.
pub fn start(app: &App, sweep: Schedule) -> Jobs {
    for job in JOBS {
        succeeded(app, job);
    }
    Jobs(vec![
        every("observe", app, OBSERVE_EVERY, |app| async move { observe::run_once(&app).await }),
        tokio::spawn(sweeping(app.clone(), sweep)),
        every("recover", app, app.limits.recover_every, |app| async move {
            recover::run_once(&app).await.map(|(taken, _)| taken)
        }),
        every("expire", app, EXPIRE_EVERY, |app| async move { expire::run_once(&app).await }),
        every(
            "presses",
            app,
            PRESSES_EVERY,
            |app| async move { presses::write(&app).await.map(|_| 0) },
        ),
        courier::start::<Mails>(app),
        courier::start::<Events>(app),
        every("clock", app, CLOCK_EVERY, |app| async move { app.set_clock().await.map(|()| 0) }),
    ])
}

/// Runs a job again and again, with a pause between the end of one round and the next.
pub fn every<F>(
    name: &'static str,
    app: &App,
    pause: Duration,
    round: impl Fn(App) -> F + Send + 'static,
) -> JoinHandle<()>
where
    F: Future<Output = sqlx::Result<usize>> + Send,
{
    let app = app.clone();
    tokio::spawn(async move {
        loop {
            match db::answered(ROUND_MAX, round(app.clone())).await {
                Ok(done) => {
                    succeeded(&app, name);
                    if done > 0 {
                        tracing::info!(job = name, done, "job");
                    }
                }
                Err(error) => failed(name, &error),
            }
            metrics::counter!("payonce_job_rounds_total", "job" => name).increment(1);
            sleep(pause).await;
        }
    })
}

/// Sweeps on schedule. Replicas that wake together skip each other's rows.
async fn sweeping(app: App, schedule: Schedule) {
    while let Some(wait) = schedule.wait(app.clock.now()) {
        sleep(wait).await;
        match sweep::run_once(&app).await {
            Ok(_) => succeeded(&app, "sweep"),
            Err(error) => failed("sweep", &error),
        }
        metrics::counter!("payonce_job_rounds_total", "job" => "sweep").increment(1);
    }
    tracing::warn!("the sweep is never due: its quiet hours cover its schedule");
}

fn succeeded(app: &App, job: &'static str) {
    let now = float(app.clock.now().unix_timestamp());
    metrics::gauge!("payonce_job_last_success_timestamp_seconds", "job" => job).set(now);
}

fn failed(job: &'static str, error: &sqlx::Error) {
    metrics::counter!("payonce_job_failures_total", "job" => job).increment(1);
    tracing::warn!(job, %error, "job failed");
}
