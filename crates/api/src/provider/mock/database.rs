//! The provider's own schema, made where it is missing, and a small pool on it.

use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::{Executor, PgPool};

const CONNECTIONS: u32 = 4;
/// Any number, the same in every process of this provider.
const SCHEMA_LOCK: i64 = 0x0070_726f_7669_6465;

pub(super) async fn open(database_url: &str) -> sqlx::Result<PgPool> {
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(Duration::from_secs(5))
        .after_connect(|connection, _| {
            Box::pin(async move {
                let limits = "set lock_timeout = '5s'; set statement_timeout = '10s';
                    set idle_in_transaction_session_timeout = '10s'";
                connection.execute(limits).await.map(drop)
            })
        })
        .connect(database_url)
        .await?;
    install(&pool).await?;
    Ok(pool)
}

/// Two processes that start together take turns.
async fn install(pool: &PgPool) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    tx.execute("set local client_min_messages = warning").await?;
    sqlx::query("select pg_advisory_xact_lock($1)").bind(SCHEMA_LOCK).execute(&mut *tx).await?;
    sqlx::raw_sql(include_str!("schema.sql")).execute(&mut *tx).await?;
    tx.commit().await
}
