//! A Redis cache of finished replies: a hint, never the truth. Every failure is a miss.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_redis::redis::AsyncCommands;
use deadpool_redis::{Config, Pool, PoolConfig, Runtime, Timeouts};
use tokio::time::{Instant, timeout};

use crate::key::Identity;
use crate::record::Finished;
use crate::sealed::Sealer;

/// What a request may lose to a cache that does not answer.
const PATIENCE: Duration = Duration::from_millis(30);
/// How long a cache that failed is left alone, so that an outage costs one request
/// in a while its patience, and not every request.
const REST: Duration = Duration::from_secs(1);
const CONNECTIONS_MAX: usize = 8;

/// Finished replies by identity. Cloning shares the connections.
#[derive(Clone)]
pub struct Redis {
    pool: Pool,
    sealer: Sealer,
    started: Instant,
    rests_until_ms: Arc<AtomicU64>,
}

/// The cache did not answer in time, or with an error.
#[derive(Debug, thiserror::Error)]
#[error("the cache is not usable: {0}")]
pub struct Unusable(String);

impl Redis {
    /// Opens no connection yet: a cache that is down must not stop a start.
    ///
    /// # Errors
    /// [`Unusable`] when the URL is malformed.
    pub fn new(url: &str, sealer: Sealer) -> Result<Self, Unusable> {
        let mut config = Config::from_url(url);
        let mut pool = PoolConfig::new(CONNECTIONS_MAX);
        pool.timeouts =
            Timeouts { wait: Some(PATIENCE), create: Some(PATIENCE), recycle: Some(PATIENCE) };
        config.pool = Some(pool);
        let pool = config
            .create_pool(Some(Runtime::Tokio1))
            .map_err(|error| Unusable(error.to_string()))?;
        let rests_until_ms = Arc::default();
        Ok(Self { pool, sealer, started: Instant::now(), rests_until_ms })
    }

    /// The finished reply of a key. `Ok(None)` is a miss.
    ///
    /// # Errors
    /// [`Unusable`]; treat it as a miss and count it.
    pub async fn get(&self, identity: &Identity) -> Result<Option<Finished>, Unusable> {
        let sealed = self
            .ask(async |connection: &mut deadpool_redis::Connection| {
                connection.get::<_, Option<Vec<u8>>>(name(identity)).await
            })
            .await?;
        Ok(sealed.and_then(|sealed| self.sealer.open(identity, &sealed)))
    }

    /// Keeps a finished reply for the rest of its life: value and expiry in one command.
    ///
    /// # Errors
    /// [`Unusable`]; nothing depends on the value being there.
    pub async fn put(
        &self,
        identity: &Identity,
        finished: &Finished,
        life: Duration,
    ) -> Result<(), Unusable> {
        let life_ms = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
        if life_ms == 0 {
            return Ok(());
        }
        let sealed = self.sealer.seal(identity, finished);
        self.ask(async |connection: &mut deadpool_redis::Connection| {
            connection.pset_ex::<_, _, ()>(name(identity), sealed.as_slice(), life_ms).await
        })
        .await
    }

    /// Whether it answers now.
    pub async fn ping(&self) -> bool {
        self.ask(async |connection: &mut deadpool_redis::Connection| {
            deadpool_redis::redis::cmd("PING").query_async::<()>(connection).await
        })
        .await
        .is_ok()
    }

    async fn ask<T>(
        &self,
        command: impl AsyncFnOnce(
            &mut deadpool_redis::Connection,
        ) -> Result<T, deadpool_redis::redis::RedisError>,
    ) -> Result<T, Unusable> {
        if self.rests() {
            return Err(Unusable("it failed a moment ago and is left alone".into()));
        }
        let answer = timeout(PATIENCE, async {
            let mut connection = self.pool.get().await.map_err(|error| error.to_string())?;
            let answer = command(&mut connection).await.map_err(|error| error.to_string());
            if answer.is_err() {
                // An answer may still be on its way: never lend this connection again.
                let _ = deadpool_redis::Connection::take(connection);
            }
            answer
        })
        .await
        .unwrap_or_else(|_| Err("no answer in time".into()));
        answer.map_err(|reason| {
            self.rest();
            Unusable(reason)
        })
    }

    fn rests(&self) -> bool {
        self.now_ms() < self.rests_until_ms.load(Ordering::Relaxed)
    }

    fn rest(&self) {
        let rest_ms = u64::try_from(REST.as_millis()).unwrap_or(u64::MAX);
        self.rests_until_ms.store(self.now_ms() + rest_ms, Ordering::Relaxed);
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The key in Redis holds a digest: neither accounts nor clients' keys are readable there.
fn name(identity: &Identity) -> String {
    use sha2::{Digest, Sha256};
    let mut digest = Sha256::new();
    digest.update([u8::try_from(identity.scope.as_bytes().len()).unwrap_or(u8::MAX)]);
    digest.update(identity.scope.as_bytes());
    digest.update(identity.key.as_str());
    format!("payonce:reply:{}", hex::encode(digest.finalize()))
}
