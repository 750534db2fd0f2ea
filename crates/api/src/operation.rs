//! How every guarded operation runs: one execution for a key, everybody gets its answer.
//!
//! The work is a task of its own; the request, and every duplicate of it in this process, only
//! watches. A client that hangs up stops nothing. Replies, refusals and conflicts all meet in
//! `decide`, the one place that says what a key that is already known gets; in `flight` requests meet, and
//! `lead` executes.

mod decide;
mod flight;
mod lead;
mod lookups;
mod refusals;
mod repeats;

use std::sync::Arc;
use std::time::Duration;

use idempotency::postgres::{self, Attempt, Ending};
use idempotency::{Claim, Finished, Outcome, Reply};
use tokio::time::Instant;
use uuid::Uuid;

use self::flight::fly;
pub use self::lookups::Lookups;
use self::refusals::reused;
pub use self::refusals::{in_progress, outcome_unknown};
pub use self::repeats::Repeats;
use crate::app::App;
use crate::db::{self, AsDatabaseError, Tx};
use crate::problem::Problem;
use crate::{fault, telemetry};

/// Something that must not happen twice.
pub trait Operation: Send + Sync + 'static {
    /// `POST /v1/orders`
    const NAME: &'static str;
    /// Whether always to look the key up before executing. An operation that does so inside its
    /// own statement says no: it is looked up first only while repeats are likely.
    const LOOKS_FIRST: bool = true;

    /// Executes for a key that was not used before.
    fn execute(
        &self,
        app: &App,
        claim: &Claim,
    ) -> impl Future<Output = Result<Finished, Stop>> + Send;

    /// Goes on where a holder died or lost the answer.
    fn resume(
        &self,
        _app: &App,
        _attempt: Attempt,
    ) -> impl Future<Output = Result<Finished, Stop>> + Send {
        // Only operations of two phases leave unfinished records.
        std::future::ready(Err(Stop::Passing(Problem::internal(&"nothing to resume"))))
    }

    /// The order or payment it acts on, where a merchant may act on another's: whoever is no merchant
    /// any more is not told an old reply about it.
    fn shared(&self) -> Option<Uuid> {
        None
    }

    /// What a request is told while nobody knows what became of `subject`.
    fn unknown(_subject: Uuid) -> Problem {
        outcome_unknown()
    }
}

/// Why an operation has no reply of its own.
#[derive(Debug)]
pub enum Stop {
    /// Refused for good: this becomes the reply.
    Refused(Problem),
    /// Refused for now, or before the operation began: not stored, the key stays free.
    Passing(Problem),
    /// Somebody else used this key at the same time: look again.
    Taken,
    /// Nothing was sent, and the key was to be given back, but whether it was is not known: look.
    GivingBack(Problem),
    /// Somebody else has settled what this request began: look what they wrote.
    Overtaken,
    /// The database says no.
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Stop {
    fn from(error: sqlx::Error) -> Self {
        match db::violated(&error) {
            Some(postgres::DUPLICATE) => Self::Taken,
            Some(constraint) if constraint.ends_with("_made_by_key") => Self::Taken,
            _ => Self::Database(error),
        }
    }
}

impl AsDatabaseError for Stop {
    fn sqlx(&self) -> Option<&sqlx::Error> {
        match self {
            Self::Database(error) => Some(error),
            _ => None,
        }
    }
}

/// What a request is told.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A reply, and where it came from.
    Finished(Arc<Finished>, Source),
    /// Nothing was stored.
    Problem(Arc<Problem>),
}

/// Where a reply came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It was made just now, for this request.
    Executed,
    /// Made just now, for another request with the same key.
    Joined,
    /// Out of this process's memory.
    Memory,
    /// Out of Redis.
    Redis,
    /// Out of the database.
    Postgres,
}

impl Source {
    /// As metrics and logs have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Joined => "joined",
            Self::Memory => "replayed_memory",
            Self::Redis => "replayed_redis",
            Self::Postgres => "replayed_postgres",
        }
    }
}

/// A request that has come as far as its key.
pub struct Asked {
    /// Whose key, and for what.
    pub claim: Claim,
    /// The path it came to: the `instance` of a refusal that is stored.
    pub path: String,
    /// How long it waits for a duplicate that is running.
    pub wait: Duration,
    /// Since when it is here.
    pub arrived: Instant,
}

/// Runs the operation, or gives what its key already has.
pub async fn perform<O: Operation>(app: &App, asked: Asked, operation: O) -> Answer {
    let answer = answer(app, asked, operation).await;
    telemetry::answered(O::NAME, &answer);
    answer
}

async fn answer<O: Operation>(app: &App, asked: Asked, operation: O) -> Answer {
    let claim = &asked.claim;
    if let Some(finished) = app.remembered(&claim.identity) {
        let answer = replay(finished, claim, Source::Memory);
        app.presses.note(&claim.identity, &answer, app.clock.now());
        return answer;
    }
    let identity = claim.identity.clone();
    // In a box, so that a replay does not carry about the room that an execution takes.
    let (answer, repeat) = Box::pin(fly(app, asked, operation)).await;
    if repeat {
        app.presses.note(&identity, &answer, app.clock.now());
    }
    answer
}

/// How a single-phase operation ended.
pub struct Ended<'a> {
    /// The operation's name.
    pub operation: &'a str,
    /// With its effect, or refused.
    pub outcome: Outcome,
    /// The reply for ever.
    pub reply: &'a Reply,
    /// What was made, as a path.
    pub resource: Option<&'a str>,
}

/// The end of a single-phase operation: its record, already finished, last; then commit.
///
/// # Errors
/// [`Stop::Taken`] when the key was used meanwhile; everything in `tx` is then undone.
pub async fn commit(
    app: &App,
    mut tx: Tx,
    claim: &Claim,
    ended: Ended<'_>,
) -> Result<Finished, Stop> {
    let Ended { operation, outcome, reply, resource } = ended;
    let ending = Ending { outcome, reply, resource, retention: app.limits.retention };
    fault::point("effects_written").await?;
    let expires_at = postgres::insert_finished(&mut tx, claim, operation, &ending).await?;
    fault::point("record_inserted").await?;
    tx.commit().await?;
    fault::point("operation_committed").await?;
    Ok(postgres::finished(claim, &ending, expires_at))
}

/// A reply out of a cache, for its own request only.
fn replay(finished: Arc<Finished>, claim: &Claim, source: Source) -> Answer {
    match finished.differences(claim) {
        None => Answer::Finished(finished, source),
        Some(differences) => problem(reused(differences)),
    }
}

fn problem(problem: Problem) -> Answer {
    Answer::Problem(Arc::new(problem))
}
