//! The one integration test binary: real processes, a real database per test.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(dead_code, reason = "what tests share is there before the last of them uses it")]

mod accounts;
mod app;
mod bodies;
mod chromium;
mod clients;
mod crash;
mod documents;
mod due;
mod embedded;
mod examples;
mod expiry;
mod failures;
mod fingerprints;
mod fuzz;
mod histories;
mod invariants;
mod keys;
mod lab;
mod log;
mod mails;
mod memory;
mod methods;
mod metrics;
mod openapi;
mod orders;
mod pages;
mod payments;
mod pool;
mod postgres;
mod problems;
mod process;
mod provider;
mod raw;
mod receipts;
mod redis;
mod refunds;
mod replays;
mod roles;
mod schema;
mod secrets;
mod shapes;
mod stock;
mod sweep;
mod unseen;
mod webhooks_in;
mod webhooks_out;
