//! A Redis cache of finished replies: a hint, never the truth. Every failure is a miss.
//!
//! All requests of a thread share one connection, whose commands travel together: lending one to
//! each costs a ping a loan, which is more than the look-up itself, and one for all threads wakes
//! two of them for each answer. The pool opens it, and limits how many are being opened at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{Cmd, FromRedisValue, cmd};
use deadpool_redis::{Config, Connection, Pool, PoolConfig, Runtime, Timeouts};
use thread_local::ThreadLocal;
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

/// Finished replies by identity. Cloning shares the connection.
#[derive(Clone)]
pub struct Redis {
    pool: Pool,
    shared: Arc<ThreadLocal<Mutex<Option<MultiplexedConnection>>>>,
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
        let (shared, rests_until_ms) = (Arc::default(), Arc::default());
        Ok(Self { pool, shared, sealer, started: Instant::now(), rests_until_ms })
    }

    /// The finished reply of a key. `Ok(None)` is a miss.
    ///
    /// # Errors
    /// [`Unusable`]; treat it as a miss and count it.
    pub async fn get(&self, identity: &Identity) -> Result<Option<Finished>, Unusable> {
        let sealed: Option<Vec<u8>> = self.ask(Cmd::get(name(identity))).await?;
        Ok(sealed.and_then(|sealed| self.sealer.open(identity, sealed)))
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
        self.ask(Cmd::pset_ex(name(identity), sealed.as_slice(), life_ms)).await
    }

    /// Whether it answers now.
    pub async fn ping(&self) -> bool {
        self.ask::<()>(cmd("PING")).await.is_ok()
    }

    async fn ask<T: FromRedisValue>(&self, command: Cmd) -> Result<T, Unusable> {
        if self.rests() {
            return Err(Unusable("it failed a moment ago and is left alone".into()));
        }
        let answer = timeout(PATIENCE, async {
            let shared = self.shared().clone();
            if let Some(mut connection) = shared {
                match command.query_async(&mut connection).await {
                    // It may have ended while nobody used it.
                    Err(error) if error.is_unrecoverable_error() => {}
                    answer => return answer.map_err(|error| error.to_string()),
                }
            }
            // In a box: hardly a look-up needs the room that opening takes.
            let mut opened = Box::pin(self.open()).await?;
            command.query_async(&mut opened).await.map_err(|error| error.to_string())
        })
        .await
        .unwrap_or_else(|_| Err("no answer in time".into()));
        answer.map_err(|reason| {
            *self.shared() = None;
            self.rest();
            Unusable(reason)
        })
    }

    async fn open(&self) -> Result<MultiplexedConnection, String> {
        let opened = self.pool.get().await.map_err(|error| error.to_string())?;
        let connection = Connection::take(opened);
        *self.shared() = Some(connection.clone());
        Ok(connection)
    }

    fn shared(&self) -> MutexGuard<'_, Option<MultiplexedConnection>> {
        self.shared.get_or_default().lock().unwrap_or_else(PoisonError::into_inner)
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
