//! Requests in the words of the pages: what each press did.

use super::marks::{Chip, Mark};
use super::moment::Moment;
use crate::presses::sql::{Requests, Want};

/// What the request did, as a sentence.
pub(super) fn says(requests: &Requests) -> String {
    let many = requests.times > 1;
    let words = match (requests.told.as_str(), many) {
        ("executed", _) => return executed(requests),
        ("joined", false) => "waited for the first and got its answer",
        ("joined", true) => "waited for the first and got its answer, each of them",
        ("replayed", false) => "got the stored answer again",
        ("replayed", true) => "got the stored answer again, each of them",
        ("request_in_progress", _) => "was told that the first is still at work",
        ("outcome_unknown", _) => "was told that nobody knows the outcome yet",
        ("idempotency_key_reused", _) => "was refused: the key belongs to another request",
        ("idempotency_key_expired", _) => "was told what the key had made",
        (code, _) => return format!("{} was told {code}", subject(requests)),
    };
    format!("{} {words}", subject(requests))
}

fn executed(requests: &Requests) -> String {
    let did = match requests.want {
        Want::Order => "placed the order",
        Want::Payment => "began the payment",
        Want::Refund => "began the refund",
    };
    match requests.attempts {
        Some(attempts @ 2..) => {
            format!("{} {did}; attempt {attempts} went on with it", subject(requests))
        }
        _ => format!("{} {did}", subject(requests)),
    }
}

/// "Request 2", "Requests 2 to 5"
fn subject(requests: &Requests) -> String {
    let (first, last) = (requests.number, requests.number + requests.times - 1);
    match requests.times {
        ..=1 => format!("Request {first}"),
        _ => format!("Requests {first} to {last}, the last at {}", last_at(requests)),
    }
}

fn last_at(requests: &Requests) -> String {
    format!("{},", Moment::from(requests.last_at).clock())
}

/// What the request was told, in one word.
pub(super) fn chip(requests: &Requests) -> Chip {
    let (mark, word) = match requests.told.as_str() {
        "executed" => (Mark::Plain, "executed"),
        "joined" => (Mark::Replay, "joined"),
        "replayed" => (Mark::Replay, "replayed"),
        "outcome_unknown" => (Mark::Unsure, "not known"),
        "request_in_progress" => (Mark::Quiet, "come again"),
        _ => (Mark::Refused, "refused"),
    };
    Chip::new(mark, word)
}
