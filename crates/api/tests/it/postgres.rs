//! A fresh, migrated database for each test, cloned from one template.
//!
//! The server is `TEST_DATABASE_URL` where that is set (a role that may create databases),
//! else a private one that is started on first use and stops when the test run ends.

pub(crate) mod server;

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use reqwest::Url;
use sha2::{Digest, Sha256};
use sqlx::migrate::Migrator;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, PgPool};

const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");
/// Any number will do, as long as every test process takes the same one.
const TEMPLATE_LOCK: i64 = 0x0070_6179_6f6e_6365;

/// One database of its own. It is dropped with this value.
pub(crate) struct TestDatabase {
    pub(crate) url: String,
    name: String,
}

impl TestDatabase {
    /// A clone of the template: every migration applied, no rows.
    pub(crate) async fn new() -> Self {
        Self::create(&template().await).await
    }

    /// Nothing in it at all, for what brings its own tables.
    pub(crate) async fn empty() -> Self {
        Self::create("template0").await
    }

    /// A connection beside the application's, to look at what it wrote.
    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// A pool of the test's own, small enough that many tests fit on one server.
    pub(crate) async fn pool(&self) -> PgPool {
        PgPoolOptions::new().max_connections(4).connect(&self.url).await.unwrap()
    }

    async fn create(template: &str) -> Self {
        let name = fresh_name();
        let statement = format!("create database {name} template {template}");
        execute(&mut maintenance().await, statement).await;
        Self { url: url_of(&name), name }
    }
}

impl Drop for TestDatabase {
    /// Blocks for a moment; a thread of its own because a runtime may be running here.
    fn drop(&mut self) {
        let statement = format!("drop database if exists {} with (force)", self.name);
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async { execute(&mut maintenance().await, statement).await });
        });
        let dropped = dropped.join().is_ok();
        assert!(dropped || std::thread::panicking(), "{} could not be dropped", self.name);
    }
}

/// The template for exactly these migrations, made by whoever comes first.
async fn template() -> String {
    let migrator = Migrator::new(Path::new(MIGRATIONS)).await.unwrap();
    let name = template_name(&migrator);
    let mut connection = maintenance().await;
    lock(&mut connection).await;
    if !exists(&mut connection, &name).await {
        build(&mut connection, &migrator, &name).await;
    }
    connection.close().await.unwrap();
    name
}

/// Built under another name, so that a killed test run leaves no half template behind.
async fn build(connection: &mut PgConnection, migrator: &Migrator, name: &str) {
    let building = format!("{name}_building");
    execute(connection, format!("drop database if exists {building} with (force)")).await;
    execute(connection, format!("create database {building} template template0")).await;
    let mut inside = PgConnection::connect(&url_of(&building)).await.unwrap();
    migrator.run(&mut inside).await.unwrap();
    inside.close().await.unwrap();
    execute(connection, format!("alter database {building} rename to {name}")).await;
}

async fn lock(connection: &mut PgConnection) {
    sqlx::query("select pg_advisory_lock($1)")
        .bind(TEMPLATE_LOCK)
        .execute(connection)
        .await
        .unwrap();
}

async fn exists(connection: &mut PgConnection, name: &str) -> bool {
    sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
        .bind(name)
        .fetch_one(connection)
        .await
        .unwrap()
}

async fn maintenance() -> PgConnection {
    PgConnection::connect(server::url()).await.unwrap()
}

async fn execute(connection: &mut PgConnection, statement: String) {
    connection.execute(AssertSqlSafe(statement)).await.unwrap();
}

/// A changed migration is another template, also on a server that outlives the test run.
fn template_name(migrator: &Migrator) -> String {
    let mut digest = Sha256::new();
    for migration in migrator.iter() {
        digest.update(&*migration.checksum);
    }
    format!("payonce_template_{}", hex::encode(&digest.finalize()[..8]))
}

fn fresh_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let random: u32 = rand::random();
    format!("payonce_test_{}_{number}_{random:08x}", std::process::id())
}

fn url_of(database: &str) -> String {
    let mut url = Url::parse(server::url()).unwrap();
    url.set_path(database);
    url.into()
}

mod tests {
    use super::TestDatabase;

    #[tokio::test]
    async fn every_test_has_a_database_of_its_own() {
        let (one, other) = (TestDatabase::new().await, TestDatabase::new().await);
        for database in [&one, &other] {
            sqlx::query("create table mark (id int)")
                .execute(&database.pool().await)
                .await
                .unwrap();
        }
    }

    #[tokio::test]
    async fn a_database_is_gone_when_its_test_is_over() {
        let gone = TestDatabase::empty().await;
        let name = gone.name.clone();
        drop(gone);
        assert!(!super::exists(&mut super::maintenance().await, &name).await);
    }
}
