//! How every guarded operation runs: one execution for a key, everybody gets its answer.
//!
//! The work is a task of its own; the request, and every duplicate of it in this process, only
//! watches. A client that hangs up stops nothing. Replies, refusals and conflicts all meet in
//! `decide`, the one place that says what a key that is already known gets:
//!
//! 1. a live record: compare, then replay, refuse, wait, or take over;
//! 2. no record, but something that this key made: its record has expired;
//! 3. an expired record and nothing made: delete it and run again;
//! 4. nothing at all: run again, three times at most.
//!
//! A final refusal is answered only after its own record was inserted: another process may have
//! won with a success in the meantime.

use std::sync::Arc;
use std::time::Duration;

use idempotency::flight::{Waited, Waiter};
use idempotency::postgres::{self, Attempt, Ending};
use idempotency::{Admission, Claim, Entry, Finished, Outcome, Reply};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::app::App;
use crate::db::{self, AsDatabaseError, Tx};
use crate::problem::{Code, Problem};
use crate::{fault, made_by, telemetry};

/// Conflicts are rare and settle themselves; more rounds than this are a bug.
const ROUNDS_MAX: usize = 3;
/// How often a duplicate looks whether another process has finished.
const POLL: std::ops::Range<u64> = 50..250;

/// Something that must not happen twice.
pub trait Operation: Send + Sync + 'static {
    /// `POST /v1/orders`
    const NAME: &'static str;
    /// Whether to look the key up before executing. An operation that does so inside its own
    /// statement says no.
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
        let answer = admitted(finished.admit(claim), Source::Memory);
        app.presses.note(&claim.identity, &answer, app.clock.now());
        return answer;
    }
    let identity = claim.identity.clone();
    let (answer, repeat) = fly(app, asked, operation).await;
    if repeat {
        app.presses.note(&identity, &answer, app.clock.now());
    }
    answer
}

/// In the flight of the key; also says whether this request executed nothing.
async fn fly<O: Operation>(app: &App, asked: Asked, operation: O) -> (Answer, bool) {
    let (claim, wait) = (&asked.claim, asked.wait);
    match app.flights.enter(claim) {
        Entry::Lead(ticket) => {
            let waiter = ticket.waiter();
            let (doing, watched) = watch::channel(Doing::Work);
            app.spawn({
                let app = app.clone();
                async move {
                    let answer = lead(&app, &asked, &operation, &doing).await;
                    ticket.land(answer);
                }
            });
            let answer = follow_own(waiter, wait, watched.clone()).await;
            let found = *watched.borrow() != Doing::Work || is_found(&answer);
            (answer, found)
        }
        Entry::Join(waiter) => {
            tracing::info!(target: "payonce::flow", step = "join", "waits for the first request");
            let deadline = Instant::now() + wait;
            let answer = match waiter.wait(deadline - Instant::now()).await {
                Waited::Landed(Answer::Finished(finished, Source::Executed)) => {
                    Answer::Finished(finished, Source::Joined)
                }
                Waited::Landed(answer) => answer,
                Waited::TimedOut => problem(in_progress()),
                Waited::Lost => problem(lost()),
            };
            (answer, true)
        }
        Entry::Differs(differences) => (problem(reused(differences)), true),
        Entry::Full => (problem(Problem::new(Code::Busy, "Too many requests are running.")), false),
    }
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
    Wait { unknown: bool },
}

/// The leader waits as long as its operation runs; only waiting for another process is bounded.
async fn follow_own(
    waiter: Waiter<Answer>,
    wait: Duration,
    doing: watch::Receiver<Doing>,
) -> Answer {
    tokio::select! {
        biased;
        waited = waiter.wait(Duration::from_mins(1)) => match waited {
            Waited::Landed(answer) => answer,
            Waited::Lost => problem(lost()),
            Waited::TimedOut => problem(in_progress()),
        },
        refusal = waited_in_vain(wait, doing) => problem(refusal),
    }
}

/// Ends when the time to wait is over and there is nothing to do but wait.
async fn waited_in_vain(wait: Duration, mut doing: watch::Receiver<Doing>) -> Problem {
    tokio::time::sleep(wait).await;
    match doing.wait_for(|doing| *doing != Doing::Work).await.map(|doing| *doing) {
        Ok(Doing::Wait { unknown: true }) => outcome_unknown(),
        Ok(_) => in_progress(),
        // The leader has ended, so its answer has landed.
        Err(_) => std::future::pending().await,
    }
}

async fn lead<O: Operation>(
    app: &App,
    asked: &Asked,
    operation: &O,
    doing: &watch::Sender<Doing>,
) -> Answer {
    let claim = &asked.claim;
    if let Some(finished) = app.cached(&claim.identity).await {
        app.remember(claim, &finished);
        return admitted(finished.admit(claim), Source::Redis);
    }
    match settle(app, asked, operation, doing).await {
        Ok((finished, source)) => {
            app.remember(claim, &finished);
            if source == Source::Postgres {
                app.cache(claim, &finished).await;
            }
            Answer::Finished(Arc::new(finished), source)
        }
        Err(refusal) => problem(refusal),
    }
}

/// Rounds of deciding and executing until there is an answer.
async fn settle<O: Operation>(
    app: &App,
    asked: &Asked,
    operation: &O,
    doing: &watch::Sender<Doing>,
) -> Result<(Finished, Source), Problem> {
    let claim = &asked.claim;
    let until = Instant::now() + idempotency::prefer::WAIT_MAX;
    let mut looks_first = O::LOOKS_FIRST;
    let mut rounds = 0;
    let mut waits = false;
    // After a lost commit nobody may say that nothing was done.
    let mut ambiguous = false;
    loop {
        if looks_first {
            match decide(app, claim).await.map_err(|error| undecided(error, ambiguous))? {
                Decision::Execute => {}
                Decision::Replay(finished) => return Ok((*finished, Source::Postgres)),
                Decision::Refuse(refusal) => return Err(*refusal),
                Decision::Wait { unknown } => {
                    if !std::mem::replace(&mut waits, true) {
                        tracing::info!(target: "payonce::flow", step = "wait", "another process is at it");
                    }
                    doing.send_replace(Doing::Wait { unknown });
                    if Instant::now() >= until {
                        return Err(if unknown { outcome_unknown() } else { in_progress() });
                    }
                    let pause = Duration::from_millis(rand::random_range(POLL));
                    tokio::time::sleep(pause).await;
                    continue;
                }
                Decision::TakeOver { fence } => {
                    doing.send_replace(Doing::Work);
                    match take_over(app, claim, operation, fence).await {
                        Ok(finished) => return Ok((finished, Source::Executed)),
                        Err(Stop::Taken) => continue,
                        Err(stop) => return Err(ended(stop)),
                    }
                }
            }
        }
        if rounds == 0
            && let Err(limited) = app.budgets.execute(&claim.identity.scope)
        {
            // A key that is known is answered, however much its account has asked for.
            return known_or(app, claim, limited).await;
        }
        if rounds == ROUNDS_MAX {
            return Err(Problem::internal(&"a key stayed contested"));
        }
        rounds += 1;
        looks_first = true;
        doing.send_replace(Doing::Work);
        if rounds == 1 {
            tracing::Span::current().record("attempt", 1);
        }
        match operation.execute(app, claim).await {
            Ok(finished) => return Ok((finished, Source::Executed)),
            Err(Stop::Refused(refusal)) => {
                let refusal = refusal.at(&asked.path);
                match db::retrying(|| store_refusal(app, claim, O::NAME, &refusal)).await {
                    Ok(finished) => return Ok((finished, Source::Executed)),
                    Err(Stop::Taken) => {}
                    Err(stop) => return Err(ended(stop)),
                }
            }
            Err(Stop::Taken) => {}
            // Whether it took effect is not known: what the key says now decides.
            Err(Stop::Database(error)) if db::is_disconnect(&error) && rounds < ROUNDS_MAX => {
                tracing::warn!(%error, "the database went away; looking again");
                ambiguous = true;
                app.db.returned().await;
            }
            Err(stop) => return Err(ended(stop)),
        }
    }
}

async fn known_or(
    app: &App,
    claim: &Claim,
    problem: Problem,
) -> Result<(Finished, Source), Problem> {
    match decide(app, claim).await.map_err(Problem::from)? {
        Decision::Execute => Err(problem),
        Decision::Replay(finished) => Ok((*finished, Source::Postgres)),
        Decision::Refuse(refusal) => Err(*refusal),
        Decision::Wait { .. } | Decision::TakeOver { .. } => Err(in_progress()),
    }
}

fn undecided(error: sqlx::Error, ambiguous: bool) -> Problem {
    if ambiguous { Problem::internal(&error) } else { Problem::from(error) }
}

fn ended(stop: Stop) -> Problem {
    match stop {
        Stop::Refused(problem) | Stop::Passing(problem) => problem,
        Stop::Taken => in_progress(),
        Stop::Database(error) if db::is_busy(&error) => Problem::from(error),
        Stop::Database(error) => Problem::internal(&error),
    }
}

/// What a key that may be known already gets.
enum Decision {
    Execute,
    Replay(Box<Finished>),
    Refuse(Box<Problem>),
    Wait { unknown: bool },
    TakeOver { fence: i64 },
}

async fn decide(app: &App, claim: &Claim) -> sqlx::Result<Decision> {
    let mut conn = match app.db.connection().await {
        Err(error) if db::is_disconnect(&error) => {
            app.db.forget_idle();
            app.db.connection().await?
        }
        conn => conn?,
    };
    let decision = decide_on(&mut conn, claim).await;
    if let Err(error) = &decision
        && db::is_disconnect(error)
    {
        // A connection that died in the pool: nothing was done, so ask on a new one.
        app.db.forget_idle();
        let mut conn = app.db.connection().await?;
        let decision = decide_on(&mut conn, claim).await;
        return conn.end(decision);
    }
    conn.end(decision)
}

async fn decide_on(conn: &mut sqlx::PgConnection, claim: &Claim) -> sqlx::Result<Decision> {
    if let Some((record, now)) = postgres::find(conn, &claim.identity).await? {
        return match record.admit(claim, now) {
            Admission::Expired => expired(conn, claim).await,
            admission => Ok(by_record(admission)),
        };
    }
    let Some(made) = made_by::resource(conn, &claim.identity).await? else {
        return Ok(Decision::Execute);
    };
    // Record and resource commit together, but these are two looks: it may have happened between.
    match postgres::find(conn, &claim.identity).await? {
        Some((record, now)) => Ok(match record.admit(claim, now) {
            Admission::Expired => Decision::Refuse(Box::new(key_expired(&made.path))),
            admission => by_record(admission),
        }),
        None => Ok(Decision::Refuse(Box::new(key_expired(&made.path)))),
    }
}

fn by_record(admission: Admission) -> Decision {
    match admission {
        Admission::Replay(finished) => Decision::Replay(Box::new(finished)),
        Admission::Reused(differences) => Decision::Refuse(Box::new(reused(differences))),
        Admission::Running { unknown } => Decision::Wait { unknown },
        Admission::Abandoned { fence, .. } => Decision::TakeOver { fence },
        Admission::Expired => Decision::Execute,
    }
}

async fn expired(conn: &mut sqlx::PgConnection, claim: &Claim) -> sqlx::Result<Decision> {
    if let Some(made) = made_by::resource(conn, &claim.identity).await? {
        return Ok(Decision::Refuse(Box::new(key_expired(&made.path))));
    }
    postgres::delete_expired(conn, &claim.identity).await?;
    Ok(Decision::Execute)
}

async fn take_over<O: Operation>(
    app: &App,
    claim: &Claim,
    operation: &O,
    fence: i64,
) -> Result<Finished, Stop> {
    let mut conn = app.db.connection().await?;
    let taken = postgres::take_over(&mut conn, &claim.identity, fence, app.limits.lease).await;
    match conn.end(taken)? {
        Some(attempt) => {
            tracing::Span::current().record("attempt", attempt.fence);
            tracing::info!(target: "payonce::flow", step = "take_over", fence = attempt.fence,
                "the lease is over; takes the next fence");
            operation.resume(app, attempt).await
        }
        None => Err(Stop::Taken),
    }
}

async fn store_refusal(
    app: &App,
    claim: &Claim,
    operation: &str,
    refusal: &Problem,
) -> Result<Finished, Stop> {
    let reply = refusal.to_reply();
    let resource = refusal.get("resource").and_then(|path| path.as_str());
    let mut tx = app.db.begin().await?;
    // A key that made something is not told that nothing was done, however late it asks again.
    if made_by::resource(&mut tx, &claim.identity).await?.is_some() {
        tx.rollback().await;
        return Err(Stop::Taken);
    }
    let ended = Ended { operation, outcome: Outcome::Failed, reply: &reply, resource };
    commit(app, tx, claim, ended).await
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

fn admitted(admission: Admission, source: Source) -> Answer {
    match admission {
        Admission::Replay(finished) => Answer::Finished(Arc::new(finished), source),
        Admission::Reused(differences) => problem(reused(differences)),
        Admission::Running { .. } | Admission::Abandoned { .. } | Admission::Expired => {
            problem(in_progress())
        }
    }
}

fn problem(problem: Problem) -> Answer {
    Answer::Problem(Arc::new(problem))
}

/// The first request with this key has not ended.
pub fn in_progress() -> Problem {
    Problem::new(
        Code::RequestInProgress,
        "The first request with this key is still running. Send this one again in a moment.",
    )
}

/// Nobody knows yet.
pub fn outcome_unknown() -> Problem {
    Problem::new(
        Code::OutcomeUnknown,
        "The answer was lost. It is being found out; the same key will tell. Nothing happens twice.",
    )
    .retry_after(2)
}

fn lost() -> Problem {
    Problem::new(
        Code::Internal,
        "The server failed while it worked on this. Send the same request again.",
    )
}

fn key_expired(resource: &str) -> Problem {
    Problem::new(
        Code::IdempotencyKeyExpired,
        "This key made something more than its lifetime ago. It is not made again.",
    )
    .resource(resource)
}

fn reused(differences: idempotency::fingerprint::Differences) -> Problem {
    Problem::new(
        Code::IdempotencyKeyReused,
        "This key was sent before with another request. Use a new key for a new request.",
    )
    .member("pointers", differences.pointers)
    .member("differs", differences.differs)
}
