//! The talk with the provider about one charge: send, ask, send again, under one provider key.
//!
//! What may be concluded is decided here, and errs on the safe side:
//! - an answer for the provider key is final, whoever asked;
//! - "no such charge" is never "failed": an attempt may still be under way, so the charge is sent,
//!   which is harmless, since the provider makes it once per key;
//! - only the first owner may conclude that nothing was sent, and only if every attempt it made
//!   was a definite not-sent. After a take-over somebody else's attempt may still arrive, so the
//!   way out is to have the provider promise never to make the charge.

use std::time::Duration;

use domain::ChargeOutcome;
use tokio::time::{Instant, sleep};

use super::Payment;
use crate::app::App;
use crate::fault;
use crate::operation::Stop;
use crate::problem::{Code, Problem};
use crate::provider::client::{Answer, ChargeRequest};

/// How often the first owner tries to get through before it gives up.
const SENDS_MAX: usize = 3;
/// How often a lost answer is asked for before the outcome counts as unknown.
const ASKS_MAX: usize = 3;
/// How many executions a charge that cannot be sent gets before it is called off.
const CALL_OFF_AFTER: i32 = 4;
const PAUSE: Duration = Duration::from_millis(150);
const PENDING_PAUSE_MAX: Duration = Duration::from_millis(500);

/// What the talk came to.
pub enum Talk {
    /// The provider's final word.
    Settled(ChargeOutcome),
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
pub async fn converse(app: &App, payment: &Payment, taken_over: Option<i32>) -> Result<Talk, Stop> {
    let until = Instant::now() + app.limits.deadline;
    let mut talk = Conversation { app, payment, until, all_unsent: taken_over.is_none() };
    match taken_over {
        None => talk.send().await,
        Some(attempts) => talk.ask_first(attempts).await,
    }
}

struct Conversation<'a> {
    app: &'a App,
    payment: &'a Payment,
    until: Instant,
    all_unsent: bool,
}

impl Conversation<'_> {
    async fn send(&mut self) -> Result<Talk, Stop> {
        let request = self.request();
        let mut sends = 0;
        let mut asks = 0;
        loop {
            fault::point("before_send").await?;
            tracing::info!(target: "payonce::flow", step = "charge", payment = %self.payment.id,
                amount = %self.payment.amount, "asks the provider to charge");
            let answer = self.app.provider.charge(&request).await;
            fault::point("after_send").await?;
            let unsent = match answer {
                Answer::Settled(outcome) => return Ok(Talk::Settled(outcome)),
                Answer::Pending { retry_after } => {
                    self.all_unsent = false;
                    if !self.pause(retry_after.min(PENDING_PAUSE_MAX)).await {
                        return Ok(Talk::Unknown);
                    }
                    continue;
                }
                Answer::Refused { reason } if self.all_unsent => {
                    return Ok(Talk::NothingSent(Problem::invalid("/payment_method", reason)));
                }
                Answer::Refused { .. } => return Ok(Talk::Unknown),
                Answer::NotSent { reason } => {
                    sends += 1;
                    Some(reason)
                }
                Answer::Lost { reason } => {
                    self.all_unsent = false;
                    tracing::warn!(%reason, payment = %self.payment.id, "the answer was lost");
                    None
                }
            };
            match unsent {
                Some(_) if sends < SENDS_MAX => {}
                Some(reason) if self.all_unsent => {
                    return Ok(Talk::NothingSent(unavailable(&reason)));
                }
                Some(_) => return Ok(Talk::Unknown),
                None => {
                    if let Some(outcome) = self.ask().await {
                        return Ok(Talk::Settled(outcome));
                    }
                    asks += 1;
                    if asks == ASKS_MAX {
                        return Ok(Talk::Unknown);
                    }
                }
            }
            if !self.pause(PAUSE).await {
                return Ok(Talk::Unknown);
            }
        }
    }

    /// After a take-over: what became of it? Only if the provider has never heard of it, send.
    async fn ask_first(&mut self, attempts: i32) -> Result<Talk, Stop> {
        if let Some(outcome) = self.ask().await {
            return Ok(Talk::Settled(outcome));
        }
        match self.send().await? {
            Talk::Unknown | Talk::NothingSent(_) if attempts >= CALL_OFF_AFTER => {
                Ok(self.call_off().await)
            }
            talk => Ok(talk),
        }
    }

    /// The provider's final word, if it has one by the time that is left.
    async fn ask(&self) -> Option<ChargeOutcome> {
        loop {
            tracing::info!(target: "payonce::flow", step = "ask", payment = %self.payment.id,
                "asks the provider what became of the charge");
            let charge = self.app.provider.find_charge(&self.payment.provider_key).await.ok()??;
            match charge.outcome {
                Some(outcome) => return Some(outcome),
                None if self.pause(PENDING_PAUSE_MAX).await => {}
                None => return None,
            }
        }
    }

    async fn call_off(&self) -> Talk {
        match self.app.provider.cancel_charge(&self.payment.provider_key).await {
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

    fn request(&self) -> ChargeRequest {
        ChargeRequest {
            provider_key: self.payment.provider_key.clone(),
            reference: self.payment.order_id.to_string(),
            amount: self.payment.amount,
            payment_method: self.payment.payment_method.clone(),
        }
    }
}

fn unavailable(reason: &str) -> Problem {
    tracing::warn!(%reason, "the provider takes nothing");
    Problem::new(
        Code::ProviderUnavailable,
        "The payment provider does not answer. Nothing was charged. Send the same request again.",
    )
    .retry_after(2)
}
