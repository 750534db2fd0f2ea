//! Keys that are asked for at the same time share a statement.
//!
//! When an outage ends everybody repeats at once, and what memory and Redis have lost is looked up
//! in the database. One look-up goes at once; those that come while it is under way go together
//! when it is back. Nobody waits for time to pass, and the busier the database, the fewer
//! statements it gets. It is only a faster way to the same record: who learns nothing here, for
//! whatever reason, asks alone.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use idempotency::Identity;
use idempotency::postgres::{self, Found};
use tokio::sync::oneshot;

use crate::db::Db;

/// The most keys of one statement.
const TOGETHER_MAX: usize = 64;
/// Whoever has waited so long for others asks alone: their connection may be a dead one.
const PATIENCE: Duration = Duration::from_millis(100);

/// The look-ups of a process, in the lanes of its connections.
pub struct Lookups(Box<[Lane]>);

#[derive(Default)]
struct Lane {
    waiting: Mutex<Vec<Wanted>>,
    /// Held by whoever is looking.
    turn: tokio::sync::Mutex<()>,
}

struct Wanted {
    identity: Identity,
    found: oneshot::Sender<Option<Found>>,
}

impl Lookups {
    /// For so many lanes.
    pub fn new(lanes: usize) -> Self {
        Self((0..lanes).map(|_| Lane::default()).collect())
    }

    /// The record of a key, if it has one. `None`: this was no way to learn it.
    pub async fn find(&self, db: &Db, identity: &Identity) -> Option<Option<Found>> {
        let lane = &self.0[db.lane_number()];
        let (found, mut answer) = oneshot::channel();
        lane.waiting().push(Wanted { identity: identity.clone(), found });
        tokio::select! {
            biased;
            found = &mut answer => return found.ok(),
            _turn = lane.turn.lock() => lane.look(db).await,
            () = tokio::time::sleep(PATIENCE) => {}
        }
        answer.try_recv().ok()
    }
}

impl Lane {
    fn waiting(&self) -> MutexGuard<'_, Vec<Wanted>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One statement for those who wait. If it fails, all of them are told by their dropped senders.
    async fn look(&self, db: &Db) {
        // Whatever else this thread has read already comes along.
        tokio::task::yield_now().await;
        let mut batch = std::mem::take(&mut *self.waiting());
        batch.retain(|wanted| !wanted.found.is_closed());
        while !batch.is_empty() {
            let rest = batch.split_off(batch.len().min(TOGETHER_MAX));
            let Ok(mut conn) = db.connection().await else { return };
            let identities: Vec<_> = batch.iter().map(|wanted| &wanted.identity).collect();
            let found = postgres::find_each(&mut conn, &identities).await;
            let Ok(found) = conn.end(found) else { return };
            for (wanted, found) in batch.into_iter().zip(found) {
                // Whoever is no longer there has asked alone.
                let _ = wanted.found.send(found);
            }
            batch = rest;
        }
    }
}
