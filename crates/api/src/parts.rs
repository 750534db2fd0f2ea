//! What the server stands on, given or brought along: database, cache, provider, secrets.

use std::time::Duration;

use anyhow::{Context, anyhow};
use sqlx::Connection;
use sqlx::postgres::PgConnectOptions;

use crate::config::{Database, Redacted, Settings};
use crate::db;
use crate::embedded::{DataDir, Postgres, Redis};
use crate::webhooks::signature::Secret;

/// How long a database that does not answer may hold up the start.
const REACH: Duration = Duration::from_secs(4);

/// The parts of one process. Stop them with [`Parts::stop`] once nobody uses them.
#[derive(Debug)]
pub struct Parts {
    pub database_url: Redacted<String>,
    pub redis_url: Option<Redacted<String>>,
    pub secret: Redacted<[u8; 32]>,
    pub webhook_secrets: Vec<Secret>,
    embedded: Option<Embedded>,
}

#[derive(Debug)]
struct Embedded {
    postgres: Postgres,
    redis: Option<Redis>,
    /// Last, so that the data directory is free only when its servers are down.
    dir: DataDir,
}

impl Parts {
    /// For the application, which has a data directory to itself.
    pub async fn own(settings: &Settings) -> anyhow::Result<Self> {
        Self::start(settings, DataDir::claim).await
    }

    /// For a command, which may find the application running.
    pub async fn join(settings: &Settings) -> anyhow::Result<Self> {
        Self::start(settings, DataDir::join).await
    }

    async fn start(
        settings: &Settings,
        open: fn(&std::path::Path) -> anyhow::Result<DataDir>,
    ) -> anyhow::Result<Self> {
        match &settings.database {
            Database::Url(url) => Self::given(settings, url).await,
            Database::Embedded(root) => Self::bring(settings, open(root)?).await,
        }
    }

    async fn given(settings: &Settings, url: &Redacted<String>) -> anyhow::Result<Self> {
        reach(url.expose()).await?;
        // Only commands that sign nothing come here without a secret.
        let secret = settings.secret.clone().unwrap_or_else(|| Redacted::new([0; 32]));
        Ok(Self {
            database_url: url.clone(),
            redis_url: settings.redis_url.clone(),
            webhook_secrets: settings.webhook_secrets(secret.expose()),
            secret,
            embedded: None,
        })
    }

    async fn bring(settings: &Settings, dir: DataDir) -> anyhow::Result<Self> {
        let secret = match &settings.secret {
            Some(given) => given.clone(),
            None => Redacted::new(dir.secret("secret")?),
        };
        let postgres = Postgres::start(&dir).await?;
        let redis = match private_redis(settings, &dir).await {
            Ok(redis) => redis,
            Err(error) => {
                postgres.stop().await?;
                return Err(error);
            }
        };
        let private_url = redis.as_ref().map(|redis| Redacted::new(redis.url().to_owned()));
        Ok(Self {
            database_url: Redacted::new(postgres.url()),
            redis_url: settings.redis_url.clone().or(private_url),
            webhook_secrets: settings.webhook_secrets(secret.expose()),
            secret,
            embedded: Some(Embedded { postgres, redis, dir }),
        })
    }

    /// Stops what was brought along, the cache before the truth.
    pub async fn stop(self) -> anyhow::Result<()> {
        let Some(Embedded { postgres, redis, dir }) = self.embedded else { return Ok(()) };
        if let Some(redis) = redis {
            redis.stop().await;
        }
        postgres.stop().await.context("The embedded Postgres did not stop")?;
        drop(dir);
        Ok(())
    }

    /// Where the database is, in words for people.
    pub fn database_in_words(&self) -> String {
        match &self.embedded {
            Some(embedded) => {
                format!("embedded Postgres, data in {}", embedded.dir.path().display())
            }
            None => place(self.database_url.expose()),
        }
    }

    /// Where the cache is, in words for people.
    pub fn cache_in_words(&self) -> &'static str {
        let private = self.embedded.as_ref().is_some_and(|embedded| embedded.redis.is_some());
        match (&self.redis_url, private) {
            (Some(_), true) => "in memory and in an embedded Redis",
            (Some(_), false) => "in memory and in the Redis of REDIS_URL",
            (None, _) => "in memory",
        }
    }
}

/// The lab shows what happens to the cache, so demo mode has one wherever it can.
async fn private_redis(settings: &Settings, dir: &DataDir) -> anyhow::Result<Option<Redis>> {
    if settings.demo && settings.redis_url.is_none() { Redis::start(dir).await } else { Ok(None) }
}

async fn reach(url: &str) -> anyhow::Result<()> {
    let failure = match tokio::time::timeout(REACH, db::connect(url)).await {
        Ok(Ok(connection)) => return Ok(connection.close().await?),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", REACH.as_secs()),
    };
    Err(anyhow!(
        "The {} cannot be reached ({failure}): start it or correct DATABASE_URL",
        place(url)
    ))
}

/// The URL without its password.
fn place(url: &str) -> String {
    let Ok(hosts) = url.parse::<db::Hosts>() else { return "database".to_owned() };
    let [first, ..] = hosts.all() else { return "database".to_owned() };
    let database = first.get_database().unwrap_or(first.get_username());
    let places: Vec<String> = hosts.all().iter().map(host).collect();
    format!("database {database} at {}", places.join(" or "))
}

fn host(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}
