//! The one integration test binary: real processes, a real database per test.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod embedded;
mod postgres;
mod provider;
