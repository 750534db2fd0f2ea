//! The customer's side: real requests over real sockets, and what came of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::events::{self, Event};
use super::shop::{Answer, Purchase, Refused};
use super::spec::Guard;

/// How long a patient customer waits for an answer.
pub(super) const PATIENT: Duration = Duration::from_secs(20);

/// What somebody who pressed Pay got to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Saw {
    Paid,
    /// The answer of an earlier press.
    PaidAgain,
    /// "Paid", for another cart than the one on the screen.
    PaidOther,
    Declined,
    StillWorking,
    KeyReused,
    PaidBefore,
    Failed,
    /// The server did not answer in time.
    NoAnswer,
    /// The connection broke.
    ConnectionLost,
    /// The button was disabled: nothing left the browser.
    NothingSent,
}

impl Saw {
    /// In texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paid => "paid",
            Self::PaidAgain => "paid-again",
            Self::PaidOther => "paid-other",
            Self::Declined => "declined",
            Self::StillWorking => "still-working",
            Self::KeyReused => "key-reused",
            Self::PaidBefore => "paid-before",
            Self::Failed => "failed",
            Self::NoAnswer => "no-answer",
            Self::ConnectionLost => "connection-lost",
            Self::NothingSent => "nothing-sent",
        }
    }
}

/// One press of one customer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Press {
    pub number: u32,
    pub customer: u32,
    pub saw: Saw,
    /// The cart on the screen.
    pub cart: u32,
    /// The order that a decline left behind.
    #[serde(skip)]
    pub(super) order: Option<String>,
}

/// How one request is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sending<'a> {
    pub(super) url: &'a str,
    /// `A` or `B`.
    pub(super) server: &'a str,
    pub(super) press: u32,
    pub(super) patience: Duration,
    /// The answer gets lost on its way.
    pub(super) loses: bool,
    /// Whether the run draws it.
    pub(super) drawn: bool,
    /// Which tab, from 0.
    pub(super) tab: u32,
}

/// Sends one press and tells what it saw.
pub(super) async fn press(
    http: &reqwest::Client,
    guard: Guard,
    purchase: &Purchase,
    sending: Sending<'_>,
) -> Press {
    let note = |step: &str| {
        let event = Event::outside(&purchase.run, sending.press, step);
        let event = event.with("to", sending.server).with("tab", sending.tab);
        Event { customer: purchase.customer, ..event }
    };
    if sending.drawn {
        events::tell(note("press"));
    }
    let number = if sending.drawn { sending.press } else { 0 };
    let request = http
        .post(format!("{}/lab/api/{}/pay", sending.url, guard.name()))
        .header("x-lab-press", number.to_string())
        .header("x-lab-lose", if sending.loses { "1" } else { "0" })
        .timeout(sending.patience)
        .json(purchase);
    let (saw, order) = match request.send().await {
        Ok(response) => read(response.json().await, purchase),
        Err(error) if error.is_timeout() => (Saw::NoAnswer, None),
        Err(_) => (Saw::ConnectionLost, None),
    };
    if sending.drawn {
        events::tell(note("saw").with("saw", saw.name()));
    }
    Press { number: sending.press, customer: purchase.customer, saw, cart: purchase.cart, order }
}

fn read(answer: reqwest::Result<Answer>, purchase: &Purchase) -> (Saw, Option<String>) {
    let Ok(answer) = answer else { return (Saw::ConnectionLost, None) };
    match answer {
        Ok(paid) if paid.cart != purchase.cart => (Saw::PaidOther, None),
        Ok(paid) if paid.again => (Saw::PaidAgain, None),
        Ok(_) => (Saw::Paid, None),
        Err(Refused::Declined) => (Saw::Declined, None),
        Err(Refused::DeclinedFor(order)) => (Saw::Declined, Some(order)),
        Err(Refused::InProgress) => (Saw::StillWorking, None),
        Err(Refused::KeyReused) => (Saw::KeyReused, None),
        Err(Refused::PaidBefore) => (Saw::PaidBefore, None),
        Err(Refused::Other(_)) => (Saw::Failed, None),
    }
}
