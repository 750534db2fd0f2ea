//! What a request is told instead of a reply: the refusals that a key itself brings about.

use idempotency::fingerprint::Differences;

use crate::problem::{Code, Problem};

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

/// The execution ended without an answer.
pub(super) fn lost() -> Problem {
    Problem::new(
        Code::Internal,
        "The server failed while it worked on this. Send the same request again.",
    )
}

/// The reply is gone, what it was about is not.
pub(super) fn key_expired(resource: &str) -> Problem {
    Problem::new(
        Code::IdempotencyKeyExpired,
        "This key made something more than its lifetime ago. It is not made again.",
    )
    .resource(resource)
}

/// Another request under a key that was used.
pub(super) fn reused(differences: Differences) -> Problem {
    Problem::new(
        Code::IdempotencyKeyReused,
        "This key was sent before with another request. Use a new key for a new request.",
    )
    .member("pointers", differences.pointers)
    .member("differs", differences.differs)
}

/// The request that this one waited for could not reach the provider, and its key is free again.
pub(super) fn given_back() -> Problem {
    Problem::new(
        Code::ProviderUnavailable,
        "The first request with this key did not reach the payment provider. No money moved. Send the \
         same request again.",
    )
    .retry_after(2)
}

/// Somebody else was faster time and again. Nothing was done.
pub(super) fn contested() -> Problem {
    Problem::new(
        Code::Busy,
        "Many requests want the same thing at this moment. Nothing was done; send this one again.",
    )
}
