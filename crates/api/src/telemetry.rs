//! Logging, installed once: what people read goes to the standard error.
//!
//! The filter belongs to the log alone, so that other listeners hear every event.

pub mod metrics;
pub mod observe;
pub mod trace;

use std::io::IsTerminal;

use anyhow::anyhow;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use crate::config::{Log, LogFormat};
use crate::operation::Answer;
use crate::problem::Code;

/// Something else that listens to the events of this process.
pub type Listener = Box<dyn Layer<Registry> + Send + Sync>;

/// Fails with a sentence on a filter that cannot be read, and when called twice.
pub fn install(log: &Log, mut listeners: Vec<Listener>) -> anyhow::Result<()> {
    listeners.push(written(log)?);
    tracing_subscriber::registry().with(listeners).try_init().map_err(Into::into)
}

fn written(log: &Log) -> anyhow::Result<Listener> {
    let filter = filter(&log.filter)?;
    let layer =
        fmt::layer().with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr);
    Ok(match log.log_format {
        LogFormat::Pretty => layer.with_target(false).with_filter(filter).boxed(),
        LogFormat::Json => layer.json().with_filter(filter).boxed(),
    })
}

/// Noise unless asked for: workers that start.
fn filter(text: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(format!("actix_server=warn,{text}"))
        .map_err(|_| anyhow!("RUST_LOG cannot be read: write it as `info` or `info,sqlx=debug`"))
}

/// Counts and logs what a guarded request was told.
pub fn answered(operation: &'static str, answer: &Answer) {
    let outcome = match answer {
        Answer::Finished(_, source) => source.as_str(),
        Answer::Problem(problem) => match problem.code {
            Code::RequestInProgress => "in_progress",
            Code::IdempotencyKeyReused => "reused",
            Code::OutcomeUnknown => "unknown",
            _ => "refused",
        },
    };
    ::metrics::counter!("payonce_records_total", "outcome" => outcome).increment(1);
    tracing::Span::current().record("outcome", outcome);
    tracing::info!(target: "payonce::flow", step = "answer", operation, outcome, "answered");
}
