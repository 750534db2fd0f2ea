//! The talk with the provider about one errand: send, ask, send again, under one provider key.
//!
//! What may be concluded is decided here, for charges and refunds alike, and errs on the safe side:
//! - an answer for the provider key is final, whoever asked, if order and amount are those we asked for;
//!   else it is an anomaly, and settles nothing;
//! - "no such charge" is never "failed": an attempt may still be under way, so the errand is sent,
//!   which is harmless, since the provider runs it once per key;
//! - whatever may have been sent is sent again only after the provider has said that it has nothing;
//! - only the first owner may conclude that nothing was sent, and only if every attempt it made
//!   was a definite not-sent. After a take-over somebody else's attempt may still arrive, so the
//!   way out is to have the provider promise never to run the errand.

use std::time::Duration;

use domain::PaymentId;
use tokio::time::{Instant, sleep};

use super::client::{Answer, ProviderClient, Unreachable};
use crate::app::App;
use crate::fault;
use crate::operation::Stop;
use crate::problem::{Code, Problem};

/// How often the first owner tries to get through before it gives up.
const SENDS_MAX: usize = 3;
/// How often a lost answer is asked for before the outcome counts as unknown.
const ASKS_MAX: usize = 3;
/// How many executions an errand that cannot be sent gets before it is called off.
const CALL_OFF_AFTER: i32 = 4;
const PAUSE: Duration = Duration::from_millis(150);
const PENDING_PAUSE_MAX: Duration = Duration::from_millis(500);

/// Something that the provider does for us, once per provider key.
pub trait Errand: Sync {
    /// What can become of it.
    type Outcome: Send;
    /// `charge`, `refund`
    const NAME: &'static str;
    /// The fault points around a call.
    const POINTS: Points;

    /// The payment that it is about.
    fn payment(&self) -> PaymentId;

    /// Whether it may be given up for good when it cannot be sent.
    fn may_be_called_off(&self) -> bool;

    /// One attempt.
    fn send(&self, provider: &ProviderClient)
    -> impl Future<Output = Answer<Self::Outcome>> + Send;

    /// What the provider has under the key: nothing, something pending, or an outcome.
    fn find(
        &self,
        provider: &ProviderClient,
    ) -> impl Future<Output = Result<Option<Option<Self::Outcome>>, Unreachable>> + Send;

    /// Asks for the promise never to do it.
    fn call_off(
        &self,
        provider: &ProviderClient,
    ) -> impl Future<Output = Answer<Self::Outcome>> + Send;

    /// What the caller is told when the provider does not take such an errand.
    fn refused(reason: String) -> Problem;
}

/// Names of fault points.
pub struct Points {
    /// Nothing of this attempt has left.
    pub before_send: &'static str,
    /// Its answer has come, and nobody else has seen it.
    pub after_send: &'static str,
}

/// What the talk came to.
pub enum Talk<Outcome> {
    /// The provider's final word.
    Settled(Outcome),
    /// Certainly nothing was sent; the problem says why.
    NothingSent(Problem),
    /// Nobody knows.
    Unknown,
}

/// Talks within the deadline. `taken_over` is the number of executions where a holder before
/// this one may have sent something.
///
/// # Errors
/// Only what a fault point injects.
pub async fn converse<E: Errand>(
    app: &App,
    errand: &E,
    taken_over: Option<i32>,
) -> Result<Talk<E::Outcome>, Stop> {
    let until = Instant::now() + app.limits.deadline;
    let mut talk = Conversation { app, errand, until, all_unsent: taken_over.is_none(), asks: 0 };
    match taken_over {
        None => talk.send().await,
        Some(attempts) => talk.ask_first(attempts).await,
    }
}

/// What the provider says about the key.
enum Word<Outcome> {
    Final(Outcome),
    /// It has never heard of it.
    Nothing,
    /// It said nothing, or nothing final, in the time that there is.
    Silence,
}

struct Conversation<'a, E> {
    app: &'a App,
    errand: &'a E,
    until: Instant,
    all_unsent: bool,
    asks: usize,
}

impl<E: Errand> Conversation<'_, E> {
    async fn send(&mut self) -> Result<Talk<E::Outcome>, Stop> {
        let mut sends = 0;
        loop {
            match self.attempt().await? {
                Answer::Settled(outcome) => return Ok(Talk::Settled(outcome)),
                Answer::Pending { retry_after } => {
                    self.all_unsent = false;
                    if !self.pause(retry_after.min(PENDING_PAUSE_MAX)).await {
                        return Ok(Talk::Unknown);
                    }
                    continue;
                }
                Answer::Refused { reason } if self.all_unsent => {
                    return Ok(Talk::NothingSent(E::refused(reason)));
                }
                Answer::Refused { .. } => return Ok(Talk::Unknown),
                Answer::NotSent { reason } => {
                    sends += 1;
                    if sends == SENDS_MAX {
                        return Ok(match self.all_unsent {
                            true => Talk::NothingSent(unavailable(&reason)),
                            false => Talk::Unknown,
                        });
                    }
                }
                Answer::Lost { reason } => {
                    self.all_unsent = false;
                    tracing::warn!(%reason, payment = %self.errand.payment(), "the answer was lost");
                    match self.hear().await {
                        Word::Final(outcome) => return Ok(Talk::Settled(outcome)),
                        Word::Nothing => {}
                        Word::Silence => return Ok(Talk::Unknown),
                    }
                }
            }
            if !self.pause(PAUSE).await {
                return Ok(Talk::Unknown);
            }
        }
    }

    async fn attempt(&self) -> Result<Answer<E::Outcome>, Stop> {
        fault::point(E::POINTS.before_send).await?;
        tracing::info!(target: "payonce::flow", step = E::NAME, payment = %self.errand.payment(),
            "asks the provider for it");
        let answer = self.errand.send(&self.app.provider).await;
        fault::point(E::POINTS.after_send).await?;
        Ok(answer)
    }

    /// After a take-over: what became of it? Only if the provider has never heard of it, send.
    async fn ask_first(&mut self, attempts: i32) -> Result<Talk<E::Outcome>, Stop> {
        let word = match fault::defect("resend_unasked") {
            true => Word::Nothing,
            false => self.hear().await,
        };
        let talk = match word {
            Word::Final(outcome) => return Ok(Talk::Settled(outcome)),
            Word::Nothing => self.send().await?,
            Word::Silence => Talk::Unknown,
        };
        let given_up = attempts >= CALL_OFF_AFTER && self.errand.may_be_called_off();
        match talk {
            Talk::Unknown | Talk::NothingSent(_) if given_up => Ok(self.call_off().await),
            talk => Ok(talk),
        }
    }

    /// Asks until the provider says something, as often as there is time for.
    async fn hear(&mut self) -> Word<E::Outcome> {
        while self.asks < ASKS_MAX {
            self.asks += 1;
            match self.ask().await {
                Word::Silence if self.pause(PAUSE).await => {}
                word => return word,
            }
        }
        Word::Silence
    }

    /// One question; what is pending is asked for again until it is final.
    async fn ask(&self) -> Word<E::Outcome> {
        loop {
            tracing::info!(target: "payonce::flow", step = "ask", payment = %self.errand.payment(),
                "asks the provider what became of it");
            match self.errand.find(&self.app.provider).await {
                Ok(Some(Some(outcome))) => return Word::Final(outcome),
                Ok(Some(None)) if self.pause(PENDING_PAUSE_MAX).await => {}
                Ok(None) => return Word::Nothing,
                Ok(Some(None)) | Err(_) => return Word::Silence,
            }
        }
    }

    async fn call_off(&self) -> Talk<E::Outcome> {
        match self.errand.call_off(&self.app.provider).await {
            Answer::Settled(outcome) => Talk::Settled(outcome),
            Answer::Pending { .. }
            | Answer::Refused { .. }
            | Answer::NotSent { .. }
            | Answer::Lost { .. } => Talk::Unknown,
        }
    }

    /// Waits, unless the deadline would pass meanwhile.
    async fn pause(&self, pause: Duration) -> bool {
        let fits = Instant::now() + pause < self.until;
        if fits {
            sleep(pause).await;
        }
        fits
    }
}

fn unavailable(reason: &str) -> Problem {
    tracing::warn!(%reason, "the provider takes nothing");
    Problem::new(
        Code::ProviderUnavailable,
        "The payment provider does not answer. No money moved. Send the same request again.",
    )
    .retry_after(2)
}
