//! Connections to Postgres that never lend out what they cannot vouch for.
//!
//! A pool that pings on every loan costs two round trips a request. This one pings only what lay idle
//! for a while, and gives back only connections whose last statement ended. A connection whose future
//! was dropped half way, or that failed, is closed. Nobody ever runs inside a stranger's transaction.

mod again;
mod errors;
mod hosts;
pub mod lanes;
mod punctual;

use std::ops::{Deref, DerefMut};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool::managed::{
    self, Metrics, Object, PoolConfig, QueueMode, RecycleError, RecycleResult, Timeouts,
};
use idempotency::Identity;
use idempotency::postgres::presence;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor};

pub use again::{answered, insisting, retrying};
pub use errors::{AsDatabaseError, is_busy, is_conflict, is_disconnect, sqlstate, violated};
pub use hosts::Hosts;
pub use punctual::{BEGIN_WITHIN, BEGUN_AFTER, beginning_until};

/// How long a request waits for a connection before it is told that we are busy.
const WAIT: Duration = Duration::from_secs(5);
/// What was in use so lately is lent without a ping.
const IDLE_MAX: Duration = Duration::from_millis(500);
/// A little more than a statement may take, which the server itself ends after 15 s.
pub const SILENCE: Duration = Duration::from_secs(17);
/// How long undoing may take before the connection is closed instead.
const UNDO: Duration = Duration::from_secs(2);
/// A restart takes a second or two.
const RETURN_TRIES: usize = 20;
const RETURN_PAUSE: Duration = Duration::from_millis(250);

/// The connections of a process, in lanes. Cloning shares them.
#[derive(Clone)]
pub struct Db {
    lanes: Arc<[managed::Pool<Opener>]>,
    /// How often the server went away.
    losses: Arc<AtomicU64>,
}

/// Opens connections; every one has the same limits, so that a stopped process blocks nobody for long.
pub struct Opener {
    hosts: Hosts,
    losses: Arc<AtomicU64>,
}

/// A connection, and how often the server had gone away when it was opened.
pub struct Opened {
    conn: PgConnection,
    losses: u64,
}

impl managed::Manager for Opener {
    type Type = Opened;
    type Error = sqlx::Error;

    /// In a box: a request that borrows one must not carry about the room that opening one takes.
    async fn create(&self) -> sqlx::Result<Opened> {
        let losses = self.losses.load(Ordering::Relaxed);
        Ok(Opened { conn: Box::pin(self.hosts.connect()).await?, losses })
    }

    /// What came back was vouched for. But whatever was open when the server went away is dead, also
    /// what was out on loan and was given back since; and of what lay idle nobody knows.
    async fn recycle(&self, opened: &mut Opened, usage: &Metrics) -> RecycleResult<sqlx::Error> {
        if opened.losses != self.losses.load(Ordering::Relaxed) {
            return Err(RecycleError::message("it was open when the server went away"));
        }
        if usage.last_used() > IDLE_MAX {
            opened.conn.ping().await?;
        }
        Ok(())
    }
}

impl Db {
    /// At most `connections` for so many threads that serve requests. Opens none yet.
    ///
    /// # Errors
    /// When the URL is malformed.
    pub fn new(url: &str, connections: usize, threads: usize) -> anyhow::Result<Self> {
        let hosts = Hosts::from_str(url)?.map(|options| {
            options.application_name("payonce").statement_cache_capacity(256).options([
                ("lock_timeout", "5s"),
                ("statement_timeout", "15s"),
                ("idle_in_transaction_session_timeout", "5s"),
                ("tcp_keepalives_idle", "10"),
                ("tcp_keepalives_interval", "5"),
                ("tcp_keepalives_count", "3"),
                ("client_connection_check_interval", "2s"),
                ("timezone", "UTC"),
            ])
        });
        let losses = Arc::<AtomicU64>::default();
        let lanes = lanes::sizes(connections, threads).into_iter().map(|max_size| {
            managed::Pool::builder(Opener { hosts: hosts.clone(), losses: Arc::clone(&losses) })
                .config(PoolConfig {
                    max_size,
                    timeouts: Timeouts {
                        wait: Some(WAIT),
                        create: Some(WAIT),
                        recycle: Some(WAIT),
                    },
                    // The one that was in use last: the fewer are awake, the better.
                    queue_mode: QueueMode::Lifo,
                })
                .runtime(deadpool::Runtime::Tokio1)
                .build()
        });
        let lanes = lanes.collect::<Result<_, _>>()?;
        Ok(Self { lanes, losses })
    }

    fn lane(&self) -> &managed::Pool<Opener> {
        &self.lanes[self.lane_number()]
    }

    /// Which lane this thread borrows from.
    pub fn lane_number(&self) -> usize {
        lanes::own(self.lanes.len())
    }

    /// How many lanes there are.
    pub fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// A connection for single statements.
    ///
    /// # Errors
    /// [`sqlx::Error::PoolTimedOut`] when none is free in time, or why none could be opened.
    pub async fn connection(&self) -> sqlx::Result<Conn> {
        let object = self.lane().get().await.map_err(|error| match error {
            managed::PoolError::Backend(error) => error,
            managed::PoolError::Timeout(_) => sqlx::Error::PoolTimedOut,
            _ => sqlx::Error::PoolClosed,
        })?;
        Ok(Conn { object: Some(object), db: self.clone() })
    }

    /// A connection with an open transaction. Dropped, it is rolled back.
    ///
    /// # Errors
    /// As [`Db::connection`], and those of `begin`.
    pub async fn begin(&self) -> sqlx::Result<Tx> {
        self.begin_on(self.connection().await?, "begin").await
    }

    /// The same for a transaction that claims a key: whoever finds no record of it yet can see that
    /// somebody is at it.
    ///
    /// # Errors
    /// As [`Db::begin`] and [`Db::connection_to_claim`].
    pub async fn begin_claim(&self, identity: &Identity) -> sqlx::Result<Tx> {
        self.begin_on(self.connection_to_claim().await?, &presence::begin(identity)).await
    }

    async fn begin_on(&self, mut conn: Conn, opening: &str) -> sqlx::Result<Tx> {
        if let Err(error) = conn.execute(AssertSqlSafe(opening)).await {
            if !is_disconnect(&error) {
                return Err(error);
            }
            // Nothing was done on it yet: a connection that died in the pool is not a failure.
            self.forget_idle();
            conn = self.connection().await?;
            conn.execute(AssertSqlSafe(opening)).await?;
        }
        Ok(Tx { conn: Some(conn) })
    }

    /// The server went away: all that are open are dead. Idle ones are closed now, those on loan
    /// when they come back.
    pub fn forget_idle(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
        self.lanes.iter().for_each(|lane| drop(lane.retain(|_, _| false)));
    }

    /// Waits a few seconds for a server that went away. Whether it is back shows in the next use.
    pub async fn returned(&self) {
        for _ in 0..RETURN_TRIES {
            self.forget_idle();
            if let Ok(conn) = self.connection().await {
                conn.done();
                return;
            }
            tokio::time::sleep(RETURN_PAUSE).await;
        }
    }

    /// (in use, open, most).
    pub fn usage(&self) -> (usize, usize, usize) {
        self.lanes.iter().fold((0, 0, 0), |(used, open, most), lane| {
            let status = lane.status();
            let in_use = status.size.saturating_sub(status.available);
            (used + in_use, open + status.size, most + status.max_size)
        })
    }

    /// Closes everything.
    pub fn close(&self) {
        self.lanes.iter().for_each(managed::Pool::close);
    }
}

/// A connection on loan. It goes back to the pool only by [`Conn::done`].
pub struct Conn {
    object: Option<Object<Opener>>,
    db: Db,
}

impl Conn {
    /// Gives the connection back: its last statement ended, and no transaction is open.
    pub fn done(mut self) {
        drop(self.object.take());
    }

    /// Gives the connection back if the result shows that it is in order, which it also is
    /// after an error that the server sent.
    pub fn end<T>(self, result: sqlx::Result<T>) -> sqlx::Result<T> {
        let gone = result.as_ref().is_err_and(is_disconnect);
        let answered =
            matches!(&result, Ok(_) | Err(sqlx::Error::Database(_) | sqlx::Error::RowNotFound));
        if answered && !gone {
            self.done();
        } else if gone {
            // When the server went away, the idle ones are dead as well.
            self.db.forget_idle();
        }
        result
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        if let Some(object) = self.object.take() {
            drop(Object::take(object));
        }
    }
}

impl Deref for Conn {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.object.as_ref().expect("present until done").conn
    }
}

impl DerefMut for Conn {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.object.as_mut().expect("present until done").conn
    }
}

/// An open transaction.
pub struct Tx {
    conn: Option<Conn>,
}

impl Tx {
    /// Commits. After an error it is not known whether the commit happened.
    ///
    /// # Errors
    /// Those of `commit`, deferred constraints among them.
    pub async fn commit(mut self) -> sqlx::Result<()> {
        let mut conn = self.conn.take().expect("present until the end");
        let committed = conn.execute("commit").await.map(|_| ());
        conn.end(committed)
    }

    /// Undoes everything and gives the connection back.
    pub async fn rollback(mut self) {
        if let Some(conn) = self.conn.take() {
            undo(conn).await;
        }
    }
}

/// What a server that went away says is nobody's news, but the others are to know of it.
async fn undo(mut conn: Conn) {
    let undone = conn.execute("rollback").await.map(drop);
    conn.end(undone).ok();
}

impl Drop for Tx {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        // Closing would undo it as well; rolling back spares the next one a new connection.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(UNDO, undo(conn)));
        }
    }
}

impl Deref for Tx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.conn.as_ref().expect("present until the end")
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.conn.as_mut().expect("present until the end")
    }
}

/// A connection of its own outside the pool, for start-up and commands.
///
/// # Errors
/// Those of connecting.
pub async fn connect(url: &str) -> sqlx::Result<PgConnection> {
    let hosts = Hosts::from_str(url).map_err(|error| sqlx::Error::Configuration(error.into()))?;
    hosts.connect().await
}
