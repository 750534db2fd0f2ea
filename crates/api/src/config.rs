//! Every setting, as an environment variable and as a flag; `--help` prints this file.
//!
//! [`Config`] is what was written, [`Settings`] what it means: checked, with secrets wrapped.

mod clients;
mod refusal;
mod secret;
mod settings;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use clients::Limits;
pub use refusal::refusal;
pub use secret::Redacted;
pub use settings::{Database, Mail, Settings, Timing};

/// Click twice. Pay once. An order and payment service that is safe to retry.
#[derive(Clone, Debug, Parser)]
#[command(name = "payonce", version, propagate_version = true)]
pub struct Config {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub listen: Listen,
    #[command(flatten)]
    pub clients: Clients,
    #[command(flatten)]
    pub stores: Stores,
    #[command(flatten)]
    pub provider: Provider,
    #[command(flatten)]
    pub timing: Times,
    #[command(flatten)]
    pub webhooks: Webhooks,
    #[command(flatten)]
    pub mail: MailServer,
    #[command(flatten)]
    pub log: Log,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Run the shop, the API and, unless PROVIDER_URL is set, the mock provider (the default)
    #[default]
    Serve,
    /// Run the mock payment provider alone
    Provider,
    /// Bring the database schema up to date and stop
    Migrate,
    /// Print the OpenAPI document
    Openapi,
    /// Remove what has expired, once
    Sweep,
    /// Compare the provider's books with ours: 1 on a difference, 2 if it cannot be asked
    Reconcile,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Listening")]
pub struct Listen {
    /// Address to listen on; 0.0.0.0 for every interface
    #[arg(long, global = true, env = "PAYONCE_HOST", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port of the shop and the API; 0 takes a free one
    #[arg(long, global = true, env = "PAYONCE_PORT", default_value = "8080")]
    pub port: u16,
    /// Threads that serve requests; as many as there are processors if not set
    #[arg(long, global = true, env = "PAYONCE_WORKERS", value_parser = count)]
    pub workers: Option<usize>,
    /// Answer /metrics to other machines too
    #[arg(long, global = true, env = "PAYONCE_METRICS_OPEN")]
    pub metrics_open: bool,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Clients")]
pub struct Clients {
    /// Origins whose pages may call the API from a browser, as in `https://shop.example.com`, a comma
    /// between two; none if not set
    #[arg(long, global = true, env = "PAYONCE_CORS_ORIGINS")]
    pub cors_origins: Option<String>,
    /// How long the head of a request, and its body, may take to arrive, milliseconds
    #[arg(long, global = true, env = "PAYONCE_PATIENCE_MS", default_value = "15000", value_parser = millis)]
    pub patience_ms: Duration,
    /// Payments and refunds of one account that may be without an outcome at the same time; 200 if
    /// not set, and any number in a demo
    #[arg(long, global = true, env = "PAYONCE_UNRESOLVED_KEYS_MAX", value_parser = keys)]
    pub unresolved_keys_max: Option<u32>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Data")]
pub struct Stores {
    /// Postgres to use, postgres://user:password@host:port/database, several hosts with commas, of
    /// which the one that takes writes is found; an embedded one if not set
    #[arg(long, global = true, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Redis to keep finished replies in, redis://host:port; memory only if not set
    #[arg(long, global = true, env = "REDIS_URL", hide_env_values = true)]
    pub redis_url: Option<String>,
    /// Folder of the embedded data; the user's data folder, or /var/lib/payonce for root, if not set
    #[arg(long, global = true, env = "PAYONCE_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// 64 hex digits that sign cookies, caches and secret members; required with DATABASE_URL, the
    /// same on every replica; made and kept in the data folder when embedded
    #[arg(long, global = true, env = "PAYONCE_SECRET", hide_env_values = true)]
    pub secret: Option<String>,
    /// Connections to Postgres in all
    #[arg(long, global = true, env = "PAYONCE_DB_CONNECTIONS", default_value = "16", value_parser = connections)]
    pub db_connections: usize,
    /// Demo products, accounts and lab; on if not set and the database is embedded, else off
    #[arg(long, global = true, env = "PAYONCE_DEMO", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub demo: Option<bool>,
    /// No demo, whatever else is set
    #[arg(long, global = true)]
    pub no_demo: bool,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Payment provider")]
pub struct Provider {
    /// Provider to use, http://host:port; the mock provider runs in this process if not set
    #[arg(long, global = true, env = "PROVIDER_URL")]
    pub provider_url: Option<String>,
    /// Address the mock provider listens on
    #[arg(long, global = true, env = "PAYONCE_PROVIDER_HOST", default_value = "127.0.0.1")]
    pub provider_host: IpAddr,
    /// Port of the mock provider; 0 takes a free one
    #[arg(long, global = true, env = "PAYONCE_PROVIDER_PORT", default_value = "8081")]
    pub provider_port: u16,
    /// Secrets of inbound webhooks, whsec_ and base64, a comma between two; made from the secret if
    /// not set, but required when provider and shop run apart on a DATABASE_URL
    #[arg(long, global = true, env = "PROVIDER_WEBHOOK_SECRET", hide_env_values = true)]
    pub provider_webhook_secret: Option<String>,
    /// Where the mock provider sends its webhooks; this server, or port 8080 here when it runs
    /// alone, if not set
    #[arg(long, global = true, env = "PROVIDER_WEBHOOK_URL")]
    pub provider_webhook_url: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Time")]
pub struct Times {
    /// How long a claim holds without an answer, milliseconds
    #[arg(long, global = true, env = "PAYONCE_LEASE_MS", default_value = "30000", value_parser = millis)]
    pub lease_ms: Duration,
    /// How long an operation may take in all, milliseconds; must be below the lease
    #[arg(long, global = true, env = "PAYONCE_DEADLINE_MS", default_value = "20000", value_parser = millis)]
    pub deadline_ms: Duration,
    /// How long one call to the provider may take, milliseconds
    #[arg(long, global = true, env = "PAYONCE_PROVIDER_TIMEOUT_MS", default_value = "5000", value_parser = millis)]
    pub provider_timeout_ms: Duration,
    /// How long a finished key replays, seconds
    #[arg(long, global = true, env = "PAYONCE_RETENTION_S", default_value = "86400", value_parser = seconds)]
    pub retention_s: Duration,
    /// How long an unpaid order holds its stock, seconds
    #[arg(long, global = true, env = "PAYONCE_RESERVATION_S", default_value = "900", value_parser = seconds)]
    pub reservation_s: Duration,
    /// How often unfinished payments and refunds are looked for, milliseconds
    #[arg(long, global = true, env = "PAYONCE_RECOVER_EVERY_MS", default_value = "2000", value_parser = millis)]
    pub recover_every_ms: Duration,
    /// How long running requests get to finish when the server is told to stop, milliseconds
    #[arg(long, global = true, env = "PAYONCE_GRACE_MS", default_value = "25000", value_parser = millis)]
    pub grace_ms: Duration,
    /// When expired records, sessions, events and guests are removed, a cron expression in UTC
    #[arg(long, global = true, env = "PAYONCE_SWEEP_CRON", default_value = "0 * * * *")]
    pub sweep_cron: String,
    /// Hours in UTC in which nothing is removed, as in 11-14
    #[arg(long, global = true, env = "PAYONCE_SWEEP_QUIET")]
    pub sweep_quiet: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Outbound webhooks")]
pub struct Webhooks {
    /// Let webhook endpoints be on this machine; in demo mode only
    #[arg(long, global = true, env = "PAYONCE_ALLOW_LOOPBACK_WEBHOOKS", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_parser = clap::builder::BoolishValueParser::new())]
    pub allow_loopback_webhooks: bool,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Mail")]
pub struct MailServer {
    /// Mail server, smtp://host:port or smtps://user:password@host; the page /mailbox only if not set
    #[arg(long, global = true, env = "SMTP_URL", hide_env_values = true)]
    pub smtp_url: Option<String>,
    /// Sender of every mail
    #[arg(long, global = true, env = "MAIL_FROM", default_value = "Payonce <shop@payonce.test>")]
    pub mail_from: String,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Log")]
pub struct Log {
    /// How log lines look
    #[arg(long, global = true, env = "PAYONCE_LOG_FORMAT", value_enum, default_value = "pretty")]
    pub log_format: LogFormat,
    /// What is logged, as in `info` or `info,sqlx=debug`
    #[arg(long = "log", global = true, env = "RUST_LOG", default_value = "info")]
    pub filter: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Pretty,
    /// One JSON object a line
    Json,
}

fn millis(text: &str) -> Result<Duration, String> {
    positive(text, "milliseconds").map(Duration::from_millis)
}

fn seconds(text: &str) -> Result<Duration, String> {
    positive(text, "seconds").map(Duration::from_secs)
}

/// A year at most: far above any sense, far below what overflows a time stamp.
fn positive(text: &str, unit: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number @ 1..=31_536_000_000) => Ok(number),
        _ => Err(format!("give a whole number of {unit}, 1 or more")),
    }
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=256) => Ok(number),
        _ => Err("give a whole number from 1 to 256".to_owned()),
    }
}

fn keys(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=1_000_000) => Ok(number),
        _ => Err("give a whole number from 1 to 1000000".to_owned()),
    }
}

/// Two at least: a request that holds one must never wait for a job that needs another.
fn connections(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 2..=256) => Ok(number),
        _ => Err("give a whole number from 2 to 256".to_owned()),
    }
}
