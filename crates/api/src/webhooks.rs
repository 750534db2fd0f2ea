//! Webhooks, in both directions.

pub mod signature;
