//! The Payonce server.

pub mod config;
pub mod embedded;
pub mod pages;
pub mod parts;
pub mod provider;
pub mod serve;
pub mod stop;
pub mod telemetry;
pub mod webhooks;
