//! The Payonce server.

pub mod webhooks;
