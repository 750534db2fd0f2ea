//! What repeats were told: joins, replays and refusals, for the people who ask "what did each press do?".
//!
//! A replay must stay cheap and powerless, so nothing is written while one is answered. The answer
//! is noted in memory, one short lock and no input or output; once a second a job writes what came
//! together, one row for each key and kind of answer. A batch holds a bounded number of keys: what
//! a flood brings beyond it is counted and forgotten. Requests that execute are not noted at all:
//! the order, payment or refund and its record tell of them.
//!
//! The rows are of all processes, lie up to a second behind, and are swept after two days.

pub mod sql;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, PoisonError};

use idempotency::Identity;
use time::OffsetDateTime;

use crate::app::App;
use crate::operation::{Answer, Source};

/// Keys of one batch: the most rows that one process writes in a second, but for keys that get
/// answers of several kinds.
const KEYS_MAX: usize = 256;

/// The repeats since the last batch.
#[derive(Debug, Default)]
pub struct Presses(Mutex<HashMap<Identity, Vec<Press>>>);

/// Repeats of one key that were told the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Press {
    /// `joined`, `replayed`, or the code of the problem.
    pub told: &'static str,
    /// How many.
    pub times: i32,
    /// When the first of them was.
    pub first_at: OffsetDateTime,
    /// When the last of them was.
    pub last_at: OffsetDateTime,
}

impl Presses {
    /// Notes what a request was told that executed nothing.
    pub fn note(&self, identity: &Identity, answer: &Answer, now: OffsetDateTime) {
        let Some(told) = told(answer) else { return };
        let mut batch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = batch.len() >= KEYS_MAX;
        let presses = match batch.entry(identity.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if is_full => {
                metrics::counter!("payonce_presses_forgotten_total").increment(1);
                return;
            }
            Entry::Vacant(new) => new.insert(Vec::with_capacity(1)),
        };
        match presses.iter_mut().find(|press| press.told == told) {
            Some(press) => {
                press.times = press.times.saturating_add(1);
                press.last_at = now;
            }
            None => presses.push(Press { told, times: 1, first_at: now, last_at: now }),
        }
    }

    fn take(&self) -> HashMap<Identity, Vec<Press>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn told(answer: &Answer) -> Option<&'static str> {
    match answer {
        Answer::Finished(_, Source::Executed) => None,
        Answer::Finished(_, Source::Joined) => Some("joined"),
        Answer::Finished(_, Source::Memory | Source::Redis | Source::Postgres) => Some("replayed"),
        Answer::Problem(problem) => Some(problem.code.as_str()),
    }
}

/// Writes what came together since the last time. What cannot be written is forgotten.
///
/// # Errors
/// Those of the database.
pub async fn write(app: &App) -> sqlx::Result<usize> {
    let batch = app.presses.take();
    if batch.is_empty() {
        return Ok(0);
    }
    let mut conn = app.db.connection().await?;
    let written = sql::insert(&mut conn, &batch).await;
    conn.end(written)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use idempotency::{Key, Scope};
    use time::macros::datetime;

    use super::*;
    use crate::operation::{in_progress, outcome_unknown};

    const NOON: OffsetDateTime = datetime!(2026-11-29 12:00 UTC);

    fn identity(number: usize) -> Identity {
        let key = Key::from_bare(format!("k{number}").as_bytes()).unwrap();
        Identity { scope: Scope::account([7; 16]), key }
    }

    fn busy() -> Answer {
        Answer::Problem(Arc::new(in_progress()))
    }

    #[test]
    fn repeats_that_were_told_the_same_are_one_row() {
        let presses = Presses::default();
        let later = NOON + time::Duration::milliseconds(300);
        presses.note(&identity(1), &busy(), NOON);
        presses.note(&identity(1), &Answer::Problem(Arc::new(outcome_unknown())), NOON);
        presses.note(&identity(1), &busy(), later);
        let batch = presses.take();
        assert_eq!(batch[&identity(1)].len(), 2);
        let first = Press { told: "request_in_progress", times: 2, first_at: NOON, last_at: later };
        assert_eq!(batch[&identity(1)][0], first);
        assert!(presses.take().is_empty());
    }

    #[test]
    fn a_flood_of_keys_fills_one_batch_and_no_more() {
        let presses = Presses::default();
        for number in 0..10 * KEYS_MAX {
            presses.note(&identity(number), &busy(), NOON);
        }
        presses.note(&identity(0), &busy(), NOON);
        let batch = presses.take();
        assert_eq!(batch.len(), KEYS_MAX);
        assert_eq!(batch[&identity(0)][0].times, 2);
    }
}
