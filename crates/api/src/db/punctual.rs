//! Who has waited too long for a connection does not begin any more.
//!
//! A request in that queue is seen by nobody. If it could begin whenever its turn comes, a copy at
//! another server, which arrived after it and gave up on a lock, would have said that nothing was
//! done and that a new key is safe. So whoever begins does so earlier than anybody who came later
//! gives up.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{Conn, Db};

/// From the arrival of a request to the first statement that claims its key. Less than the
/// `lock_timeout` of a connection.
pub const BEGIN_WITHIN: Duration = Duration::from_secs(4);

/// From the arrival of a request until nothing that came before it can begin any more, and what has
/// begun is seen.
pub const BEGUN_AFTER: Duration = Duration::from_millis(4500);

tokio::task_local! {
    static BEGIN_UNTIL: Cell<Option<Instant>>;
}

/// Runs work whose first claim has to begin in time, if it has one. What it does after that may
/// take longer.
pub async fn beginning_until<T>(until: Option<Instant>, work: impl Future<Output = T>) -> T {
    BEGIN_UNTIL.scope(Cell::new(until), work).await
}

impl Db {
    /// A connection for a statement that claims a key.
    ///
    /// # Errors
    /// As [`Db::connection`], and [`sqlx::Error::PoolTimedOut`] when it is too late to begin.
    pub async fn connection_to_claim(&self) -> sqlx::Result<Conn> {
        let Some(until) = BEGIN_UNTIL.try_with(Cell::take).ok().flatten() else {
            return self.connection().await;
        };
        let conn =
            timeout_at(until, self.connection()).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
        if Instant::now() >= until {
            conn.done();
            return Err(sqlx::Error::PoolTimedOut);
        }
        Ok(conn)
    }
}
