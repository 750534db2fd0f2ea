//! How long work waits for the database, and when it runs once more.

use std::time::Duration;

use tokio::time::Instant;

use super::errors::{AsDatabaseError, is_busy, is_conflict};

const TRIES_MAX: u64 = 5;

/// Gives up on a database that neither answers nor breaks its connections, as when its machine hangs
/// or is cut off: nothing else would end that wait. It counts as a broken connection, and the
/// connection is closed with the work that held it; whether that took effect is not known.
///
/// # Errors
/// The work's own, or that the time is over.
pub async fn answered<T, E: From<sqlx::Error>>(
    within: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    tokio::time::timeout(within, work).await.unwrap_or_else(|_| {
        let silent = std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            "the database neither answers nor breaks the connection",
        );
        Err(sqlx::Error::Io(silent).into())
    })
}

/// Runs a transaction again when Postgres undid it for another's sake: serialization failure
/// (40001) or deadlock (40P01). Nothing but the transaction may be inside.
///
/// # Errors
/// The operation's own, or the conflict if it comes back five times.
pub async fn retrying<T, E, F>(mut transaction: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: AsDatabaseError,
{
    let mut tries = 1;
    loop {
        match transaction().await {
            Err(error) if tries < TRIES_MAX && error.sqlx().is_some_and(is_conflict) => {
                metrics::counter!("payonce_transaction_retries_total").increment(1);
                tokio::time::sleep(Duration::from_millis(5 * tries + jitter_ms())).await;
                tries += 1;
            }
            result => return result,
        }
    }
}

/// The same for a transaction that writes down what has happened already, so that giving up would
/// leave it unknown: it also runs again when a lock, a connection or time was not to be had, for
/// as long as the deadline allows.
///
/// # Errors
/// The operation's own, or the last one of the database.
pub async fn insisting<T, E, F>(until: Instant, mut transaction: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: AsDatabaseError,
{
    loop {
        match retrying(&mut transaction).await {
            Err(error) if Instant::now() < until && error.sqlx().is_some_and(is_busy) => {
                metrics::counter!("payonce_transaction_retries_total").increment(1);
                tokio::time::sleep(Duration::from_millis(20 + jitter_ms())).await;
            }
            result => return result,
        }
    }
}

/// Two that undid each other must not meet again at the same moment.
fn jitter_ms() -> u64 {
    rand::random_range(0..10)
}
