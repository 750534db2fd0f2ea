//! What the configuration means: every rule that concerns more than one value is checked here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use lettre::message::Mailbox;
use reqwest::Url;

use super::secret::{derived_webhook_secret, server_secret, webhook_secrets};
use super::{Command, Config, Limits, Log, Redacted, Times};
use crate::db::Hosts;
use crate::sweep::schedule::Schedule;
use crate::webhooks::signature::Secret;

/// The checked settings of one process.
#[derive(Clone, Debug)]
pub struct Settings {
    pub command: Command,
    pub listen: SocketAddr,
    pub workers: usize,
    pub metrics_open: bool,
    pub database: Database,
    pub redis_url: Option<Redacted<String>>,
    /// `None` means the one kept in the data directory, which only the embedded database has.
    pub secret: Option<Redacted<[u8; 32]>>,
    pub db_connections: usize,
    pub demo: bool,
    /// `None` means the mock provider in this process.
    pub provider_url: Option<Url>,
    pub provider_listen: SocketAddr,
    pub provider_webhook_url: Option<Url>,
    webhook_secrets: Option<Vec<Secret>>,
    pub timing: Timing,
    pub clients: Limits,
    /// Only ever true in demo mode.
    pub allow_loopback_webhooks: bool,
    pub sweep: Schedule,
    pub mail: Mail,
    pub log: Log,
}

#[derive(Clone, Debug)]
pub enum Database {
    /// A private server below this folder.
    Embedded(PathBuf),
    Url(Redacted<String>),
}

#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub lease: Duration,
    /// Always below the lease.
    pub deadline: Duration,
    pub provider_timeout: Duration,
    pub retention: Duration,
    pub reservation: Duration,
    pub recover_every: Duration,
    pub grace: Duration,
}

#[derive(Clone, Debug)]
pub struct Mail {
    /// `None` means that mails can be read on the page /mailbox only.
    pub smtp_url: Option<Redacted<String>>,
    pub from: Mailbox,
}

impl Settings {
    /// Fails with one sentence that says what to do.
    pub fn resolve(config: Config) -> anyhow::Result<Self> {
        let database = database(&config)?;
        let embedded = matches!(database, Database::Embedded(_));
        let demo = config.stores.demo.unwrap_or(embedded) && !config.stores.no_demo;
        let settings = Self {
            command: config.command.unwrap_or_default(),
            listen: SocketAddr::new(config.listen.host, config.listen.port),
            workers: config.listen.workers.unwrap_or_else(processors),
            metrics_open: config.listen.metrics_open,
            database,
            redis_url: redis_url(set(config.stores.redis_url))?,
            secret: secret(set(config.stores.secret))?,
            db_connections: config.stores.db_connections,
            demo,
            provider_url: url("PROVIDER_URL", set(config.provider.provider_url))?,
            provider_listen: SocketAddr::new(
                config.provider.provider_host,
                config.provider.provider_port,
            ),
            provider_webhook_url: url(
                "PROVIDER_WEBHOOK_URL",
                set(config.provider.provider_webhook_url),
            )?,
            webhook_secrets: webhooks(set(config.provider.provider_webhook_secret))?,
            timing: timing(&config.timing)?,
            clients: Limits::resolve(&config.clients, demo)?,
            allow_loopback_webhooks: config.webhooks.allow_loopback_webhooks,
            sweep: sweep(&config.timing)?,
            mail: mail(set(config.mail.smtp_url), &config.mail.mail_from)?,
            log: config.log,
        };
        settings.secrets_suffice(embedded)?;
        ensure!(
            settings.demo || !settings.allow_loopback_webhooks,
            "--allow-loopback-webhooks lets merchants reach this machine's own services, so it \
             works in demo mode only: leave it out, or add --demo"
        );
        Ok(settings)
    }

    /// Of inbound webhooks, the first one signs: those that were given, else one made from the server secret.
    pub fn webhook_secrets(&self, secret: &[u8; 32]) -> Vec<Secret> {
        self.webhook_secrets.clone().unwrap_or_else(|| vec![derived_webhook_secret(secret)])
    }

    /// Replicas, and a provider that runs elsewhere, must be told what they have to share.
    fn secrets_suffice(&self, embedded: bool) -> anyhow::Result<()> {
        let reads_secrets = !matches!(
            self.command,
            Command::Migrate | Command::Openapi | Command::Sweep | Command::Reconcile
        );
        if embedded || !reads_secrets {
            return Ok(());
        }
        let apart = self.command == Command::Provider || self.provider_url.is_some();
        ensure!(
            !apart || self.webhook_secrets.is_some(),
            "The provider runs apart from the shop, so both need PROVIDER_WEBHOOK_SECRET: set \
             it to whsec_ and the output of `openssl rand -base64 32`"
        );
        ensure!(
            self.command == Command::Provider || self.secret.is_some(),
            "DATABASE_URL is set, so PAYONCE_SECRET must be set as well: make one with \
             `openssl rand -hex 32` and give it to every replica"
        );
        Ok(())
    }
}

/// An empty variable, as compose files and .env files leave them, is one that is not set.
fn set(value: Option<String>) -> Option<String> {
    value.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn database(config: &Config) -> anyhow::Result<Database> {
    let Some(url) = set(config.stores.database_url.clone()) else {
        return data_dir(config.stores.data_dir.clone()).map(Database::Embedded);
    };
    let scheme = url.starts_with("postgres://") || url.starts_with("postgresql://");
    ensure!(
        scheme && Hosts::from_str(&url).is_ok(),
        "DATABASE_URL cannot be read: write it as postgres://user:password@host:5432/database"
    );
    Ok(Database::Url(Redacted::new(url)))
}

/// Root's home is closed to the user that Postgres runs as, so root's data lives elsewhere.
fn data_dir(chosen: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|at| at.is_absolute());
    if let Some(chosen) = chosen.filter(|path| !path.as_os_str().is_empty()) {
        return Ok(std::path::absolute(chosen)?);
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/payonce"));
    }
    folder("XDG_DATA_HOME")
        .or_else(|| Some(folder("HOME")?.join(".local/share")))
        .map(|data| data.join("payonce"))
        .ok_or_else(|| anyhow!("There is no home folder to keep data in: set --data-dir"))
}

fn redis_url(url: Option<String>) -> anyhow::Result<Option<Redacted<String>>> {
    let Some(url) = url else { return Ok(None) };
    match deadpool_redis::redis::Client::open(&*url) {
        Ok(_) => Ok(Some(Redacted::new(url))),
        Err(_) => bail!("REDIS_URL cannot be read: write it as redis://:password@host:6379"),
    }
}

fn secret(text: Option<String>) -> anyhow::Result<Option<Redacted<[u8; 32]>>> {
    let Some(text) = text else { return Ok(None) };
    match server_secret(&text) {
        Some(secret) => Ok(Some(Redacted::new(secret))),
        None => bail!(
            "PAYONCE_SECRET must be 64 hex digits (32 bytes): make one with `openssl rand -hex 32`"
        ),
    }
}

fn webhooks(text: Option<String>) -> anyhow::Result<Option<Vec<Secret>>> {
    let Some(text) = text else { return Ok(None) };
    match webhook_secrets(&text) {
        Some(secrets) => Ok(Some(secrets)),
        None => bail!(
            "PROVIDER_WEBHOOK_SECRET must be whsec_ and the base64 of 24 bytes or more, or two of \
             them with a comma between: make one from the output of `openssl rand -base64 32`"
        ),
    }
}

fn url(name: &str, text: Option<String>) -> anyhow::Result<Option<Url>> {
    let Some(text) = text else { return Ok(None) };
    match Url::parse(&text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Some(url)),
        _ => bail!("{name} cannot be read: write it as http://host:port"),
    }
}

fn timing(times: &Times) -> anyhow::Result<Timing> {
    let (lease, deadline) = (times.lease_ms.as_millis(), times.deadline_ms.as_millis());
    ensure!(
        deadline < lease,
        "--deadline-ms ({deadline}) must be below --lease-ms ({lease}), or a claim could be \
         taken over while its owner still works: lower the one or raise the other"
    );
    ensure!(
        times.provider_timeout_ms <= times.deadline_ms,
        "--provider-timeout-ms ({}) must not be above --deadline-ms ({deadline}): lower the one \
         or raise the other",
        times.provider_timeout_ms.as_millis()
    );
    Ok(Timing {
        lease: times.lease_ms,
        deadline: times.deadline_ms,
        provider_timeout: times.provider_timeout_ms,
        retention: times.retention_s,
        reservation: times.reservation_s,
        recover_every: times.recover_every_ms,
        grace: times.grace_ms,
    })
}

fn sweep(times: &Times) -> anyhow::Result<Schedule> {
    let quiet = match set(times.sweep_quiet.clone()) {
        Some(hours) => {
            Some(hours.parse().map_err(|error| anyhow!("--sweep-quiet cannot be read: {error}"))?)
        }
        None => None,
    };
    Schedule::new(&times.sweep_cron, quiet).map_err(|error| anyhow!("--sweep-cron: {error}"))
}

fn mail(smtp_url: Option<String>, from: &str) -> anyhow::Result<Mail> {
    let Ok(from) = from.parse() else {
        bail!("MAIL_FROM is no mail address: write it as `Shop <shop@example.com>`")
    };
    if let Some(url) = &smtp_url {
        ensure!(
            lettre::AsyncSmtpTransport::<lettre::Tokio1Executor>::from_url(url).is_ok(),
            "SMTP_URL cannot be read: write it as smtp://host:25 or smtps://user:password@host"
        );
    }
    Ok(Mail { smtp_url: smtp_url.map(Redacted::new), from })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    const DATABASE: &str = "--database-url=postgres://u:hunter2@db/shop";
    const SECRET: &str =
        "--secret=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn resolve(flags: &[&str]) -> anyhow::Result<Settings> {
        // Whatever the environment of the test run says.
        let database = flags.iter().any(|flag| flag.starts_with("--database-url"));
        let none: &[&str] = if database { &[] } else { &["--database-url="] };
        let all = ["payonce"].iter().chain(none).chain(flags);
        Settings::resolve(Config::try_parse_from(all)?)
    }

    fn refusal(flags: &[&str]) -> String {
        resolve(flags).unwrap_err().to_string()
    }

    #[test]
    fn a_deadline_as_long_as_the_lease_stops_the_start() {
        let sentence = refusal(&["--deadline-ms=500", "--lease-ms=500"]);
        assert!(
            sentence.contains("--deadline-ms (500) must be below --lease-ms (500)"),
            "{sentence}"
        );
    }

    #[test]
    fn a_given_database_needs_a_given_secret() {
        assert!(refusal(&[DATABASE]).contains("openssl rand -hex 32"));
        assert!(resolve(&[DATABASE, SECRET]).is_ok());
        for signs_nothing in ["migrate", "sweep", "openapi"] {
            assert!(resolve(&[signs_nothing, DATABASE]).is_ok(), "{signs_nothing}");
        }
    }

    #[test]
    fn a_provider_that_runs_apart_needs_a_shared_webhook_secret() {
        let apart = [DATABASE, SECRET, "--provider-url=http://provider:8081"];
        assert!(refusal(&apart).contains("PROVIDER_WEBHOOK_SECRET"));
        assert!(refusal(&["provider", DATABASE]).contains("PROVIDER_WEBHOOK_SECRET"));
    }

    #[test]
    fn demo_follows_the_database_unless_told() {
        assert!(resolve(&[]).unwrap().demo);
        assert!(!resolve(&["--no-demo"]).unwrap().demo);
        assert!(!resolve(&[DATABASE, SECRET]).unwrap().demo);
        assert!(resolve(&[DATABASE, SECRET, "--demo"]).unwrap().demo);
        assert!(!resolve(&["--demo=false", "serve"]).unwrap().demo);
    }

    #[test]
    fn a_demo_has_no_limit_of_unresolved_keys_unless_told() {
        let limit = |flags: &[&str]| resolve(flags).unwrap().clients.unresolved_keys_max;
        assert_eq!(limit(&[]), None);
        assert_eq!(limit(&["--no-demo"]), Some(200));
        assert_eq!(limit(&["--unresolved-keys-max=3"]), Some(3));
    }

    #[test]
    fn origins_are_listed_one_by_one() {
        let origins = "--cors-origins= https://shop.test , http://localhost:3000,";
        let listed = resolve(&[origins]).unwrap().clients.origins;
        assert_eq!(listed, ["https://shop.test", "http://localhost:3000"]);
    }

    #[test]
    fn webhooks_reach_this_machine_in_demo_mode_only() {
        assert!(!resolve(&[]).unwrap().allow_loopback_webhooks);
        assert!(resolve(&["--allow-loopback-webhooks"]).unwrap().allow_loopback_webhooks);
        assert!(refusal(&["--no-demo", "--allow-loopback-webhooks"]).contains("demo mode only"));
    }

    #[test]
    fn flags_may_stand_before_and_after_the_command() {
        assert_eq!(resolve(&["serve", "--port=0"]).unwrap().listen.port(), 0);
        assert_eq!(resolve(&["--port=0", "provider"]).unwrap().command, Command::Provider);
    }

    #[test]
    fn settings_show_no_secret() {
        let redis = "--redis-url=redis://:hunter2@cache";
        let shown = format!("{:?}", resolve(&[DATABASE, SECRET, redis]).unwrap());
        assert!(!shown.contains("hunter2") && !shown.contains("0a0b0c"), "{shown}");
    }

    #[test]
    fn every_wrong_value_says_what_to_do() {
        for (flag, way_out) in [
            ("--port=70000", "--port"),
            ("--lease-ms=0", "1 or more"),
            ("--patience-ms=0", "1 or more"),
            ("--unresolved-keys-max=0", "1 to 1000000"),
            ("--cors-origins=*", "https://shop.example.com"),
            ("--cors-origins=null", "https://shop.example.com"),
            ("--cors-origins=https://a.test,https://b.test/path", "https://b.test/path"),
            ("--db-connections=1", "2 to 256"),
            ("--secret=abc", "64 hex digits"),
            ("--database-url=mysql://x", "postgres://user"),
            ("--redis-url=http://x", "redis://"),
            ("--provider-url=provider", "http://host:port"),
            ("--provider-webhook-secret=abc", "whsec_"),
            ("--mail-from=nobody", "shop@example.com"),
            ("--smtp-url=x", "smtp://host"),
            ("--sweep-cron=hourly", "0 * * * *"),
            ("--sweep-quiet=25-3", "11-14"),
        ] {
            assert!(refusal(&[flag]).contains(way_out), "{flag}: {}", refusal(&[flag]));
        }
    }
}
