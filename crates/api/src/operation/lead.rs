//! The leader of a flight: it decides and executes until there is an answer.
//!
//! A final refusal is answered only after its own record was inserted: another process may have
//! won with a success in the meantime.

use std::sync::Arc;
use std::time::Duration;

use idempotency::flight::Ticket;
use idempotency::postgres::{self, presence};
use idempotency::{Finished, Outcome};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::decide::{Decision, decide};
use super::flight::Doing;
use super::refusals::{contested, given_back, in_progress};
use super::{Answer, Asked, Ended, Operation, Source, Stop, commit, problem, replay};
use crate::app::App;
use crate::db::{self, AsDatabaseError as _};
use crate::made_by;
use crate::problem::Problem;

/// Conflicts are rare and settle themselves.
const ROUNDS_MAX: usize = 3;
/// How often a duplicate looks whether another process has finished.
const POLL: std::ops::Range<u64> = 50..250;

/// Whoever executes for a key in this process.
pub(super) struct Leader<'a, O> {
    pub app: &'a App,
    pub asked: &'a Asked,
    pub operation: &'a O,
    pub doing: &'a watch::Sender<Doing>,
    /// For those who joined it.
    pub ticket: &'a Ticket<Answer>,
    /// Until when it waits for another process.
    pub until: Instant,
}

impl<O: Operation> Leader<'_, O> {
    /// The answer for this request and all that joined it.
    pub(super) async fn answer(self) -> Answer {
        let claim = &self.asked.claim;
        if let Some(finished) = self.app.cached(&claim.identity).await.map(Arc::new) {
            self.app.repeats.note(true);
            self.app.remember(claim, &finished);
            return replay(finished, claim, Source::Redis);
        }
        let settled = self.settle().await;
        self.app.repeats.note(!matches!(settled, Ok((_, Source::Executed))));
        match settled {
            Ok((finished, source)) => {
                let finished = Arc::new(finished);
                self.app.remember(claim, &finished);
                if source == Source::Postgres {
                    self.app.cache(claim, &finished).await;
                }
                Answer::Finished(finished, source)
            }
            Err(refusal) => problem(refusal),
        }
    }

    async fn settle(&self) -> Result<(Finished, Source), Problem> {
        let mut looks_first = O::LOOKS_FIRST || self.app.repeats.are_likely();
        // After a lost commit nobody may say that nothing was done.
        let mut ambiguous = false;
        let mut began = false;
        for round in 1..=ROUNDS_MAX {
            if looks_first && let Some(known) = self.known(ambiguous, began).await? {
                return Ok(known);
            }
            if round == 1
                && let Err(limited) = self.app.budgets.execute(&self.asked.claim.identity.scope)
            {
                return self.replay_or(limited).await;
            }
            looks_first = true;
            let begin_until = (round == 1).then(|| self.asked.arrived + db::BEGIN_WITHIN);
            let executed = db::beginning_until(begin_until, self.execute(round));
            match db::answered(self.longest(), executed).await {
                Ok(finished) => return Ok((finished, Source::Executed)),
                Err(Stop::Taken) => {}
                Err(Stop::Overtaken) => began = true,
                // Whoever waited for this key may have been told that a new one is safe: no more rounds.
                Err(Stop::GivingBack(refusal)) => {
                    self.app.db.returned().await;
                    return self.at_last(ambiguous, true, refusal).await;
                }
                // Whether it took effect is not known: what the key says now decides.
                Err(Stop::Database(error)) if db::is_disconnect(&error) && round < ROUNDS_MAX => {
                    tracing::warn!(%error, "the database went away; looking again");
                    ambiguous = true;
                    self.app.db.returned().await;
                }
                // What stands in the way may be a commit of ours whose answer was lost.
                Err(stop) if stop.sqlx().is_some_and(db::is_busy) => {
                    return self.at_last(ambiguous, began, ended(stop)).await;
                }
                Err(stop) => return Err(ended(stop)),
            }
        }
        self.at_last(ambiguous, began, contested()).await
    }

    /// How it ends where no round brought a reply. That nothing was done, and a new key is safe, is
    /// said only of a key that was read since and that nobody is at, and never after a lost commit;
    /// and not before whoever came earlier has begun or given up.
    async fn at_last(
        &self,
        ambiguous: bool,
        began: bool,
        otherwise: Problem,
    ) -> Result<(Finished, Source), Problem> {
        loop {
            let at_work = self.is_at_work().await.map_err(|error| undecided(error, ambiguous))?;
            match self.known(ambiguous, began).await? {
                Some(known) => return Ok(known),
                // Its record is not to be seen before it commits.
                None if at_work => self.wait(None).await?,
                None if ambiguous => {
                    return Err(Problem::internal(&"a lost commit stayed contested"));
                }
                None if self.asked.arrived.elapsed() < db::BEGUN_AFTER => {
                    return Err(otherwise.key_unread());
                }
                None => return Err(otherwise),
            }
        }
    }

    /// Whether anybody executes for this key, a lost commit of ours included.
    async fn is_at_work(&self) -> sqlx::Result<bool> {
        db::answered(db::SILENCE, async {
            let mut conn = self.app.db.connection().await?;
            let at_work = presence::is_at_work(&mut conn, &self.asked.claim.identity).await;
            conn.end(at_work)
        })
        .await
    }

    /// What the key has, waiting while another process is at it. Nothing: execute. What this request
    /// began, and an event of the provider settled, nobody else was told: it is the first answer.
    async fn known(
        &self,
        ambiguous: bool,
        began: bool,
    ) -> Result<Option<(Finished, Source)>, Problem> {
        let mut waited = false;
        loop {
            let decided = db::answered(db::SILENCE, decide(self.app, &self.asked.claim)).await;
            match decided.map_err(|error| undecided(error, ambiguous))? {
                // Whoever it waited for gave the key back, and said that a new key is safe.
                Decision::Execute if waited => return Err(given_back()),
                Decision::Execute => return Ok(None),
                Decision::Replay { finished, attempts } => {
                    let own = began && attempts == 1;
                    let source = if own { Source::Executed } else { Source::Postgres };
                    return Ok(Some((*finished, source)));
                }
                Decision::Refuse(refusal) => return Err(*refusal),
                Decision::Wait { unknown } => {
                    self.wait(unknown).await?;
                    waited = true;
                }
                Decision::TakeOver { fence } => {
                    match db::answered(self.longest(), self.take_over(fence)).await {
                        Ok(finished) => return Ok(Some((finished, Source::Executed))),
                        Err(Stop::Taken) => {}
                        Err(stop) => return Err(ended(stop).key_unread()),
                    }
                }
            }
        }
    }

    /// What an execution may take: the talk with the provider, and then a database that is slow.
    fn longest(&self) -> Duration {
        self.app.limits.deadline + db::SILENCE
    }

    /// A pause, without a connection.
    async fn wait(&self, unknown: Option<Uuid>) -> Result<(), Problem> {
        if self.doing.send_replace(Doing::Wait { unknown }) == Doing::Work {
            tracing::info!(target: "payonce::flow", step = "wait", "another process is at it");
        }
        if let Some(subject) = unknown {
            self.ticket.meanwhile(problem(O::unknown(subject)));
        }
        if Instant::now() >= self.until {
            return Err(unknown.map_or_else(in_progress, O::unknown));
        }
        tokio::time::sleep(Duration::from_millis(rand::random_range(POLL))).await;
        Ok(())
    }

    async fn execute(&self, round: usize) -> Result<Finished, Stop> {
        self.doing.send_replace(Doing::Work);
        if round == 1 {
            tracing::Span::current().record("attempt", 1);
        }
        match self.operation.execute(self.app, &self.asked.claim).await {
            Err(Stop::Refused(refusal)) => {
                let refusal = refusal.at(&self.asked.path);
                db::retrying(|| self.store_refusal(&refusal)).await
            }
            executed => executed,
        }
    }

    async fn take_over(&self, fence: i64) -> Result<Finished, Stop> {
        self.doing.send_replace(Doing::Work);
        let (identity, lease) = (&self.asked.claim.identity, self.app.limits.lease);
        let mut conn = self.app.db.connection().await?;
        let taken = postgres::take_over(&mut conn, identity, fence, lease).await;
        let Some(attempt) = conn.end(taken)? else { return Err(Stop::Taken) };
        tracing::Span::current().record("attempt", attempt.fence);
        tracing::info!(target: "payonce::flow", step = "take_over", fence = attempt.fence,
            "the lease is over; takes the next fence");
        self.operation.resume(self.app, attempt).await
    }

    async fn store_refusal(&self, refusal: &Problem) -> Result<Finished, Stop> {
        let claim = &self.asked.claim;
        let reply = refusal.to_reply();
        let resource = refusal.get("resource").and_then(|path| path.as_str());
        let mut tx = self.app.db.begin_claim(&claim.identity).await?;
        // A key that made something is not told that nothing was done, however late it asks again.
        if made_by::resource(&mut tx, &claim.identity).await?.is_some() {
            tx.rollback().await;
            return Err(Stop::Taken);
        }
        let ended = Ended { operation: O::NAME, outcome: Outcome::Failed, reply: &reply, resource };
        commit(self.app, tx, claim, ended).await
    }

    /// A key that is known is answered, however much its account has asked for.
    async fn replay_or(&self, limited: Problem) -> Result<(Finished, Source), Problem> {
        let unread = |error| undecided(error, false);
        let at_work = self.is_at_work().await.map_err(unread)?;
        let decided = db::answered(db::SILENCE, decide(self.app, &self.asked.claim)).await;
        match decided.map_err(unread)? {
            Decision::Execute if at_work => Err(in_progress()),
            Decision::Execute => Err(limited),
            Decision::Replay { finished, .. } => Ok((*finished, Source::Postgres)),
            Decision::Refuse(refusal) => Err(*refusal),
            Decision::Wait { .. } | Decision::TakeOver { .. } => Err(in_progress()),
        }
    }
}

fn undecided(error: sqlx::Error, ambiguous: bool) -> Problem {
    if ambiguous { Problem::internal(&error) } else { Problem::from(error) }
}

fn ended(stop: Stop) -> Problem {
    match stop {
        Stop::Refused(problem) | Stop::Passing(problem) => problem,
        Stop::Taken | Stop::Overtaken | Stop::GivingBack(_) => in_progress(),
        Stop::Database(error) if db::is_busy(&error) => Problem::busy(&error),
        Stop::Database(error) => Problem::internal(&error),
    }
}
