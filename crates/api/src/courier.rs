//! How what left a transaction is carried out: taken one by one, each in a task of its own.
//!
//! Nothing is taken in batches: a batch under one lease lets one slow receiver hold up the rest,
//! or outlive the lease so that another process sends the rest again. Whoever dies leaves what it
//! had taken to the end of its lease; then it is due again, under the same id.

use std::time::Duration;

use sqlx::PgConnection;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::app::App;
use crate::db;

/// How long to wait when nothing is due. Nobody is woken on the order path.
const IDLE: Duration = Duration::from_millis(500);

/// One attempt and its row; more than any receiver gets.
const CARRIED_MAX: Duration = Duration::from_mins(2);

/// A kind of thing that is carried out.
pub trait Courier: Send + Sync + 'static {
    /// One that was taken.
    type Due: Send + 'static;
    /// For metrics and logs.
    const NAME: &'static str;
    /// How many this process carries at the same time.
    const AT_ONCE: usize;

    /// Takes one that is due, under a lease of its own.
    fn claim(
        conn: &mut PgConnection,
    ) -> impl Future<Output = sqlx::Result<Option<Self::Due>>> + Send;

    /// Carries it out and writes down what came of it. Returns whether it arrived.
    fn deliver(app: App, due: Self::Due) -> impl Future<Output = bool> + Send;
}

/// What one round came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attempts.
    pub taken: usize,
    /// Of these, those that arrived.
    pub delivered: usize,
}

/// Carries out everything that is due now, and waits for the end.
///
/// # Errors
/// Those of the database while looking for work.
pub async fn run_once<C: Courier>(app: &App) -> sqlx::Result<Counts> {
    let mut counts = Counts::default();
    let mut running = JoinSet::new();
    loop {
        while running.len() >= C::AT_ONCE {
            counts.delivered += arrived(running.join_next().await);
        }
        let Some(due) = claim::<C>(app).await? else { break };
        counts.taken += 1;
        running.spawn(C::deliver(app.clone(), due));
    }
    while !running.is_empty() {
        counts.delivered += arrived(running.join_next().await);
    }
    Ok(counts)
}

/// Carries out what becomes due, for as long as the process lives.
pub fn start<C: Courier>(app: &App) -> JoinHandle<()> {
    let app = app.clone();
    tokio::spawn(async move {
        let mut running = JoinSet::new();
        loop {
            while running.try_join_next().is_some() {}
            if running.len() < C::AT_ONCE {
                match claim::<C>(&app).await {
                    Ok(Some(due)) => {
                        let carried = C::deliver(app.clone(), due);
                        running
                            .spawn(async move { timeout(CARRIED_MAX, carried).await == Ok(true) });
                        continue;
                    }
                    Ok(None) => {}
                    Err(error) => tracing::warn!(courier = C::NAME, %error, "cannot look for work"),
                }
            }
            tokio::select! {
                _ = running.join_next(), if running.len() >= C::AT_ONCE => {}
                () = sleep(IDLE) => {}
            }
        }
    })
}

/// Waits longer after every attempt, and not for all at the same moment. `None`: given up.
pub fn pause_seconds(attempts: i32, schedule: &[f64]) -> Option<f64> {
    let index = usize::try_from(attempts.max(1) - 1).ok()?;
    schedule.get(index).map(|seconds| seconds * rand::random_range(0.8..1.2))
}

async fn claim<C: Courier>(app: &App) -> sqlx::Result<Option<C::Due>> {
    let mut conn = app.db.connection().await?;
    let due = db::answered(db::SILENCE, C::claim(&mut conn)).await;
    conn.end(due)
}

/// A task that panicked delivered nothing; its lease runs out.
fn arrived(ended: Option<Result<bool, tokio::task::JoinError>>) -> usize {
    usize::from(ended.is_some_and(|joined| joined.unwrap_or(false)))
}

#[cfg(test)]
mod tests {
    use super::pause_seconds;

    #[test]
    fn pauses_follow_the_schedule_and_then_it_is_over() {
        let schedule = [5.0, 60.0];
        for (attempts, around) in [(1, 5.0), (2, 60.0)] {
            let pause = pause_seconds(attempts, &schedule).unwrap();
            assert!((around * 0.8..around * 1.2).contains(&pause), "{pause}");
        }
        assert_eq!(pause_seconds(3, &schedule), None);
    }
}
