//! How every guarded operation runs: one execution for a key, everybody gets its answer.
//!
//! The work is a task of its own; the request, and every duplicate of it in this process, only
//! watches. A client that hangs up stops nothing. Replies, refusals and conflicts all meet in
//! `decide`, the one place that says what a key that is already known gets; `lead` executes.

mod decide;
mod lead;
mod lookups;
mod refusals;
mod repeats;

use std::sync::Arc;
use std::time::Duration;

use idempotency::fingerprint::Differences;
use idempotency::flight::{Ticket, Waited, Waiter};
use idempotency::postgres::{self, Attempt, Ending};
use idempotency::{Claim, Entry, Finished, Outcome, Reply};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use self::decide::{Decision, decide};
use self::lead::Leader;
pub use self::lookups::Lookups;
pub use self::refusals::{in_progress, outcome_unknown};
use self::refusals::{lost, reused};
pub use self::repeats::Repeats;
use crate::app::App;
use crate::db::{self, AsDatabaseError, Tx};
use crate::problem::{Code, Problem};
use crate::{fault, telemetry};

/// How often to look whether another request under the same key is gone.
const BESIDE: Duration = Duration::from_millis(20);

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

/// In the flight of the key; also says whether this request executed nothing.
async fn fly<O: Operation>(app: &App, asked: Asked, operation: O) -> (Answer, bool) {
    let deadline = Instant::now() + asked.wait;
    loop {
        match app.flights.enter(&asked.claim) {
            Entry::Lead(ticket) => return lead(app, asked, operation, ticket).await,
            Entry::Join(waiter) => {
                tracing::info!(target: "payonce::flow", step = "join", "waits for the first request");
                return (join(waiter, deadline).await, true);
            }
            Entry::Differs(differences) => {
                if let Some(answer) = beside::<O>(app, &asked.claim, differences, deadline).await {
                    return (answer, true);
                }
            }
            Entry::Full => {
                let problem = Problem::new(Code::Busy, "Too many requests are running.");
                return (self::problem(problem), false);
            }
        }
    }
}

/// Executes, or finds what the key has already, for all who join.
async fn lead<O: Operation>(
    app: &App,
    asked: Asked,
    operation: O,
    ticket: Ticket<Answer>,
) -> (Answer, bool) {
    let (waiter, wait) = (ticket.waiter(), asked.wait);
    let (doing, watched) = watch::channel(Doing::Work);
    app.spawn_here({
        let app = app.clone();
        async move {
            let until = Instant::now() + idempotency::prefer::WAIT_MAX;
            let leader = Leader {
                app: &app,
                asked: &asked,
                operation: &operation,
                doing: &doing,
                ticket: &ticket,
                until,
            };
            let answer = leader.answer().await;
            ticket.land(answer);
        }
    });
    let answer = follow_own::<O>(waiter, wait, watched.clone()).await;
    let found = *watched.borrow() != Doing::Work || is_found(&answer);
    (answer, found)
}

async fn join(waiter: Waiter<Answer>, deadline: Instant) -> Answer {
    match waiter.wait(deadline - Instant::now()).await {
        Waited::Landed(Answer::Finished(finished, Source::Executed)) => {
            Answer::Finished(finished, Source::Joined)
        }
        Waited::Landed(answer) => answer,
        Waited::TimedOut(word) => word.unwrap_or_else(|| problem(in_progress())),
        Waited::Lost => problem(lost()),
    }
}

/// Another request is at this key. Which of the two the key belongs to, its record says: the other
/// one may be the one to be refused, and not know it yet. Without a record it was there first.
/// `None`: this one has to wait until the other is gone.
async fn beside<O: Operation>(
    app: &App,
    claim: &Claim,
    differences: Differences,
    deadline: Instant,
) -> Option<Answer> {
    let unknown = match db::answered(db::SILENCE, decide(app, claim)).await {
        Ok(Decision::Execute) => return Some(problem(reused(differences))),
        Ok(Decision::Refuse(refusal)) => return Some(problem(*refusal)),
        Ok(Decision::Replay { finished, .. }) => {
            let finished = Arc::new(*finished);
            app.remember(claim, &finished);
            return Some(Answer::Finished(finished, Source::Postgres));
        }
        Ok(Decision::Wait { unknown }) => unknown,
        Ok(Decision::TakeOver { .. }) => None,
        Err(error) => return Some(problem(Problem::from(error))),
    };
    if Instant::now() >= deadline {
        return Some(problem(unknown.map_or_else(in_progress, O::unknown)));
    }
    tokio::time::sleep(BESIDE).await;
    None
}

/// Whether a leader only found what the key had already.
fn is_found(answer: &Answer) -> bool {
    match answer {
        Answer::Finished(_, source) => *source != Source::Executed,
        Answer::Problem(problem) => {
            matches!(problem.code, Code::IdempotencyKeyReused | Code::IdempotencyKeyExpired)
        }
    }
}

/// What the leader of a flight is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Looking the key up, or executing.
    Work,
    /// Waiting for another process that holds the key.
    Wait { unknown: Option<Uuid> },
}

/// The leader waits as long as its operation runs; only waiting for another process is bounded.
async fn follow_own<O: Operation>(
    waiter: Waiter<Answer>,
    wait: Duration,
    doing: watch::Receiver<Doing>,
) -> Answer {
    tokio::select! {
        biased;
        waited = waiter.wait(Duration::from_mins(1)) => match waited {
            Waited::Landed(answer) => answer,
            Waited::Lost => problem(lost()),
            Waited::TimedOut(_) => problem(in_progress()),
        },
        refusal = waited_in_vain::<O>(wait, doing) => problem(refusal),
    }
}

/// Ends when the time to wait is over and there is nothing to do but wait.
async fn waited_in_vain<O: Operation>(
    wait: Duration,
    mut doing: watch::Receiver<Doing>,
) -> Problem {
    tokio::time::sleep(wait).await;
    match doing.wait_for(|doing| *doing != Doing::Work).await.map(|doing| *doing) {
        Ok(Doing::Wait { unknown: Some(subject) }) => O::unknown(subject),
        Ok(_) => in_progress(),
        // The leader has ended, so its answer has landed.
        Err(_) => std::future::pending().await,
    }
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
