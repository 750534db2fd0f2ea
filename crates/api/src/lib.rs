//! The Payonce server.

pub mod config;
pub mod parts;
pub mod serve;

pub mod app;
pub mod routes;

pub mod guard;
pub mod lab;
pub mod operation;
pub mod presses;
pub mod problem;

pub mod accounts;
pub mod catalog;
pub mod orders;
pub mod payments;
pub mod refunds;

pub mod courier;
pub mod made_by;
pub mod mail;
pub mod outbox;
pub mod provider;
pub mod reconcile;
pub mod records;
pub mod two_phase;
pub mod webhooks;

pub mod pages;

#[cfg(feature = "bench")]
pub mod bench;
pub mod budget;
pub mod clock;
pub mod db;
pub mod embedded;
pub mod fault;
pub mod health;
pub mod jobs;
pub mod money;
pub mod openapi;
pub mod page;
pub mod secrets;
pub mod stop;
pub mod sweep;
pub mod telemetry;
