//! Phases two and three of what somebody else does for us: the talk with the provider, then what
//! it says. By the first owner, right after the intent, or by whoever comes after a crash.
//!
//! Payments and refunds differ in their rows and in what an outcome means; who may free a key, and
//! what may be said when the database has no time, is the same for both and stands here.

use idempotency::Finished;
use idempotency::postgres::{self, Attempt};
use sqlx::PgConnection;
use tokio::time::Instant;
use uuid::Uuid;

use crate::app::App;
use crate::db::{self, AsDatabaseError as _};
use crate::fault;
use crate::operation::Stop;
use crate::problem::Problem;
use crate::provider::converse::{self, Errand, Talk};
use crate::telemetry::metrics::took;

/// A payment or a refund: an errand with a record, rows of its own, and a reply.
pub trait TwoPhase: Errand + Clone + Send + 'static {
    /// The fault point between the talk and its settling.
    const ANSWERED: &'static str;

    /// The row that a record is about.
    fn read(
        conn: &mut PgConnection,
        subject: Uuid,
    ) -> impl Future<Output = sqlx::Result<Option<Self>>> + Send;

    /// From `processing` to `unknown`, here and in the row; unknown already stays so.
    fn lose_answer(
        &mut self,
        conn: &mut PgConnection,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// As if it had never been asked for. Nothing was sent.
    fn take_back(&self, conn: &mut PgConnection) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Writes the outcome and the reply down together; tries until then.
    fn settle(
        &self,
        app: &App,
        attempt: &Attempt,
        outcome: Self::Outcome,
        until: Instant,
    ) -> impl Future<Output = Result<Finished, Stop>> + Send;

    /// What a caller is told while nobody knows.
    fn unknown(subject: Uuid) -> Problem;
}

/// Goes on where a holder died or lost the answer; `attempts` executions so far.
///
/// # Errors
/// [`Stop::Passing`] with `outcome_unknown` when the provider does not tell.
pub async fn resume<E: TwoPhase>(
    app: &App,
    attempt: Attempt,
    attempts: i32,
) -> Result<Finished, Stop> {
    let known = db::retrying(|| forget_answer::<E>(app, &attempt)).await;
    let errand = known.map_err(|stop| match stop {
        Stop::Database(error) if !db::is_disconnect(&error) => {
            tracing::warn!(%error, subject = %attempt.subject, "a take-over has to wait");
            Stop::Passing(E::unknown(attempt.subject))
        }
        stop => stop,
    })?;
    go_on(app, &attempt, &errand, Some(attempts)).await
}

/// A lease ran out: from now on the outcome is unknown, until the provider has told.
async fn forget_answer<E: TwoPhase>(app: &App, attempt: &Attempt) -> Result<E, Stop> {
    let mut tx = app.db.begin().await?;
    if !postgres::lock(&mut tx, attempt).await? {
        return Err(Stop::Taken);
    }
    let errand = E::read(&mut tx, attempt.subject).await?;
    let mut errand = errand
        .ok_or_else(|| Stop::Passing(Problem::internal(&"a record without what it is about")))?;
    errand.lose_answer(&mut tx).await?;
    tx.commit().await?;
    Ok(errand)
}

/// The provider, then what it says. `taken_over` counts executions. From here on nobody may say
/// that nothing was done, whatever the database has no time for.
///
/// # Errors
/// As [`resume`], and [`Stop::Overtaken`] for the first owner where that has `Taken`.
pub async fn go_on<E: TwoPhase>(
    app: &App,
    attempt: &Attempt,
    errand: &E,
    taken_over: Option<i32>,
) -> Result<Finished, Stop> {
    match talk_and_settle(app, attempt, errand, taken_over).await {
        Err(Stop::Database(error)) if !db::is_disconnect(&error) => {
            tracing::error!(%error, errand = E::NAME, payment = %errand.payment(),
                "an outcome could not be written down");
            Err(Stop::Passing(E::unknown(attempt.subject)))
        }
        Err(Stop::Taken) if taken_over.is_none() => Err(Stop::Overtaken),
        result => result,
    }
}

async fn talk_and_settle<E: TwoPhase>(
    app: &App,
    attempt: &Attempt,
    errand: &E,
    taken_over: Option<i32>,
) -> Result<Finished, Stop> {
    let until = Instant::now() + app.limits.deadline;
    match converse::converse(app, errand, taken_over).await? {
        Talk::Settled(outcome) => {
            fault::point(E::ANSWERED).await?;
            let started = Instant::now();
            let settled = errand.settle(app, attempt, outcome, until).await;
            took("payonce_settle_duration_seconds", started.elapsed());
            settled
        }
        Talk::NothingSent(problem) => match release(app, attempt, errand, until).await {
            Ok(()) => Err(Stop::Passing(problem)),
            Err(stop) if stop.sqlx().is_some_and(db::is_disconnect) => {
                Err(Stop::GivingBack(problem))
            }
            Err(stop) => Err(stop),
        },
        Talk::Unknown => Err(lose_answer(app, attempt, errand).await?),
    }
}

/// The first owner knows that nothing was sent: as if nothing had been asked.
async fn release<E: TwoPhase>(
    app: &App,
    attempt: &Attempt,
    errand: &E,
    until: Instant,
) -> Result<(), Stop> {
    fault::point("before_release").await?;
    db::insisting(until, || async {
        let mut tx = app.db.begin().await?;
        #[cfg(feature = "faults")]
        crate::payments::planted::lower_fence(&mut tx, attempt).await?;
        if !postgres::release(&mut tx, attempt).await? {
            return Err(Stop::Taken);
        }
        errand.take_back(&mut tx).await?;
        tx.commit().await?;
        Ok(())
    })
    .await?;
    tracing::info!(target: "payonce::flow", step = "release", errand = E::NAME,
        payment = %errand.payment(), "nothing was sent; the key is free");
    Ok(())
}

/// The answer is lost: say so, and let recovery find it.
async fn lose_answer<E: TwoPhase>(app: &App, attempt: &Attempt, errand: &E) -> Result<Stop, Stop> {
    let marked = db::retrying(|| async {
        let mut tx = app.db.begin().await?;
        if !postgres::mark_unknown(&mut tx, attempt, app.limits.recover_every).await? {
            return Ok::<_, Stop>(false);
        }
        errand.clone().lose_answer(&mut tx).await?;
        tx.commit().await?;
        Ok(true)
    })
    .await?;
    if !marked {
        return Ok(Stop::Taken);
    }
    metrics::counter!("payonce_answers_lost_total").increment(1);
    tracing::warn!(target: "payonce::flow", step = "unknown", errand = E::NAME,
        payment = %errand.payment(), "the provider's answer is lost");
    Ok(Stop::Passing(E::unknown(attempt.subject)))
}
