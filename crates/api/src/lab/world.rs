//! What a lab stands on: a database of its own, a provider of its own, two servers.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use anyhow::Context as _;
use reqwest::Url;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::sync::Mutex;

use super::Recipe;
use super::server::{LabServer, Plan};
use crate::provider::mock::{self, MockSettings, Running, WebhookOrder};

/// What the card network takes for a charge.
const LATENCY_MS: u64 = 180;
const CONNECTIONS: usize = 12;
/// One lab for each database; held by a connection as long as the lab exists.
const LAB_LOCK: i64 = 0x006c_6162;

pub(super) struct World {
    pub(super) a: LabServer,
    pub(super) b: LabServer,
    pub(super) http: reqwest::Client,
    pub(super) redis: Option<deadpool_redis::Pool>,
    pub(super) program: PathBuf,
    pub(super) crowd: usize,
    plan: Plan,
    provider: Mutex<Option<Running>>,
    /// Holds the lock.
    _lock: Mutex<PgConnection>,
}

impl World {
    pub(super) async fn open(recipe: &Recipe) -> anyhow::Result<Self> {
        let (lock, database_url) = fresh_database(&recipe.database_url).await?;
        crate::serve::migrate(&database_url).await?;
        let mut connection = PgConnection::connect(&database_url).await?;
        sqlx::raw_sql(include_str!("schema.sql")).execute(&mut connection).await?;
        connection.close().await?;
        let provider = provider(&database_url).await?;
        let redis_url = recipe.redis_url.as_deref().map(apart).transpose()?;
        let plan = Plan {
            name: "A".to_owned(),
            database_url,
            redis_url,
            provider_url: provider.base_url(),
            secret: rand::random(),
            db_connections: CONNECTIONS,
        };
        let http = crate::serve::http()?;
        let calm = json!({ "latency_ms": LATENCY_MS });
        http.post(format!("{}/_control", plan.provider_url)).json(&calm).send().await?;
        Ok(Self {
            a: LabServer::start(plan.clone()).await?,
            b: LabServer::start(Plan { name: "B".to_owned(), ..plan.clone() }).await?,
            redis: plan.redis_url.as_deref().map(super::server::pool).transpose()?,
            http,
            program: recipe.program.clone(),
            crowd: recipe.crowd,
            plan,
            provider: Mutex::new(Some(provider)),
            _lock: Mutex::new(lock),
        })
    }

    /// For a server that will not live long.
    pub(super) fn plan_of_the_doomed(&self) -> Plan {
        Plan { db_connections: 3, ..self.plan.clone() }
    }

    pub(super) async fn stop(&self) {
        self.a.stop().await;
        self.b.stop().await;
        if let Some(provider) = self.provider.lock().await.take() {
            provider.stop().await;
        }
    }
}

/// A new, empty database beside the shop's, and the connection that holds the lock on it.
async fn fresh_database(shop_url: &str) -> anyhow::Result<(PgConnection, String)> {
    let mut connection = PgConnection::connect(shop_url).await?;
    let free: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)")
        .bind(LAB_LOCK)
        .fetch_one(&mut connection)
        .await?;
    anyhow::ensure!(free, "Another server of this database runs the lab");
    let shop: String =
        sqlx::query_scalar("select current_database()").fetch_one(&mut connection).await?;
    let name = format!("{shop}_lab");
    let quoted = format!("\"{}\"", name.replace('"', "\"\""));
    let drop = AssertSqlSafe(format!("drop database if exists {quoted} with (force)"));
    connection.execute(drop).await.context("The last lab's database cannot be dropped")?;
    let create = AssertSqlSafe(format!("create database {quoted}"));
    connection.execute(create).await.context("The lab may not create a database of its own")?;
    let mut url: Url = shop_url.parse()?;
    url.set_path(&name);
    Ok((connection, url.to_string()))
}

async fn provider(database_url: &str) -> anyhow::Result<Running> {
    let settings = MockSettings {
        database_url: database_url.to_owned(),
        webhook_url: None,
        webhook_secrets: Vec::new(),
        webhook_order: WebhookOrder::Straight,
    };
    mock::serve(settings, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?).await
}

/// Another database on the same Redis, so that flushing here empties nothing there.
fn apart(redis_url: &str) -> anyhow::Result<String> {
    let mut url: Url = redis_url.parse()?;
    if url.scheme().contains("unix") {
        url.query_pairs_mut().append_pair("db", "1");
    } else {
        url.set_path("/1");
    }
    Ok(url.to_string())
}
