//! What every process does once in a while. Each job has a `run_once` that does one round.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::app::App;
use crate::orders::expire;
use crate::payments::recover;

const CLOCK_EVERY: Duration = Duration::from_secs(30);
const EXPIRE_EVERY: Duration = Duration::from_secs(2);

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
pub fn start(app: &App) -> Jobs {
    Jobs(vec![
        every("recover", app, app.limits.recover_every, |app| async move {
            recover::run_once(&app).await.map(|(taken, _)| taken)
        }),
        every("expire", app, EXPIRE_EVERY, |app| async move { expire::run_once(&app).await }),
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
            match round(app.clone()).await {
                Ok(0) => {}
                Ok(done) => tracing::info!(job = name, done, "job"),
                Err(error) => {
                    metrics::counter!("payonce_job_failures_total", "job" => name).increment(1);
                    tracing::warn!(job = name, %error, "job failed");
                }
            }
            metrics::counter!("payonce_job_rounds_total", "job" => name).increment(1);
            sleep(pause).await;
        }
    })
}
