//! Where the requests under one key meet in this process: one leads, the same request joins it, and
//! another one is told so, once the record says which of them the key belongs to.

use std::sync::Arc;
use std::time::Duration;

use idempotency::fingerprint::Differences;
use idempotency::flight::{Ticket, Waited, Waiter};
use idempotency::{Claim, Entry};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::decide::{Decision, decide};
use super::lead::Leader;
use super::refusals::{in_progress, lost, reused};
use super::{Answer, Asked, Operation, Source, problem};
use crate::app::App;
use crate::db;
use crate::problem::{Code, Problem};

/// How often to look whether another request under the same key is gone.
const BESIDE: Duration = Duration::from_millis(20);

/// In the flight of the key; also says whether this request executed nothing.
pub(super) async fn fly<O: Operation>(app: &App, asked: Asked, operation: O) -> (Answer, bool) {
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
                let problem =
                    Problem::new(Code::Busy, "Too many requests are running.").key_unread();
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
pub(super) enum Doing {
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
