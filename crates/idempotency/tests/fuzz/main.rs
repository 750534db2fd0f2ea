//! What a stranger can send, by the thousand: each parser against a second, simpler one.
//!
//! `PROPTEST_CASES` says how many documents each test tries; `scripts/soak fuzz` tries a million.
//! `tests/corpus` holds texts that were found to matter, one a line; they are tried as they are and
//! as the starting point of changes.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "small numbers")]
#![allow(clippy::cast_sign_loss, reason = "small numbers")]
#![allow(clippy::cast_precision_loss, clippy::float_cmp, reason = "exact numbers are compared")]

mod codec;
mod corpus;
mod fingerprint;
mod json;
mod key;
mod prefer;
