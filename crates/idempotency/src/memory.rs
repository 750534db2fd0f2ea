//! Finished replies in this process: bounded by bytes, each for its remaining life.

use std::hash::RandomState;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::key::Identity;
use crate::record::Finished;

/// Of what is kept besides the bytes themselves: two maps' entries, and a dozen allocations.
const OVERHEAD: u64 = 640;

/// Finished replies never change, so keeping them in memory cannot make one wrong.
/// Lives run on the monotonic clock: a changed wall clock prolongs nothing.
#[derive(Clone)]
pub struct Memory {
    // Clients choose the keys: the hash is one that they cannot make collide.
    replies: Arc<Cache<Identity, Kept, Weight, RandomState>>,
}

#[derive(Clone)]
struct Kept {
    finished: Arc<Finished>,
    until: Instant,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Identity, Kept> for Weight {
    fn weight(&self, identity: &Identity, kept: &Kept) -> u64 {
        let Finished { reply, marks, .. } = &*kept.finished;
        let bytes = identity.key.as_str().len() + reply.body().len() + marks.as_bytes().len();
        OVERHEAD + bytes as u64
    }
}

impl Memory {
    /// Keeps about this many bytes of replies; 0 keeps none.
    pub fn new(bytes_max: u64) -> Self {
        let items = usize::try_from(bytes_max / (2 * OVERHEAD)).unwrap_or_default();
        let life = DefaultLifecycle::default();
        Self { replies: Arc::new(Cache::with(items, bytes_max, Weight, RandomState::new(), life)) }
    }

    /// The finished reply of a key, if it is here and still alive.
    pub fn get(&self, identity: &Identity) -> Option<Arc<Finished>> {
        let kept = self.replies.get(identity)?;
        if kept.until <= Instant::now() {
            self.replies.remove(identity);
            return None;
        }
        Some(kept.finished)
    }

    /// Keeps a finished reply for the rest of its life.
    pub fn put(&self, identity: Identity, finished: Arc<Finished>, life: Duration) {
        if let Some(until) = Instant::now().checked_add(life).filter(|_| !life.is_zero()) {
            self.replies.insert(identity, Kept { finished, until });
        }
    }

    /// Forgets everything, as a restart would.
    pub fn clear(&self) {
        self.replies.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::{Fingerprint, Marks};
    use crate::key::{Key, Scope};
    use crate::record::Outcome;
    use crate::reply::Reply;
    use time::OffsetDateTime;

    const LONG: Duration = Duration::from_hours(1);

    fn identity(key: &str) -> Identity {
        let key = Key::from_bare(key.as_bytes()).unwrap();
        Identity { scope: Scope::account([1; 16]), key }
    }

    fn finished(bytes: usize) -> Arc<Finished> {
        Arc::new(Finished {
            fingerprint: Fingerprint([9; 32]),
            marks: Marks::default(),
            outcome: Outcome::Completed,
            reply: Reply::new(201, "application/json", vec![b' '; bytes]),
            expires_at: OffsetDateTime::UNIX_EPOCH,
            resource: None,
        })
    }

    #[test]
    fn a_reply_is_kept_for_its_key_alone() {
        let memory = Memory::new(1 << 20);
        memory.put(identity("k"), finished(3), LONG);
        assert_eq!(memory.get(&identity("k")), Some(finished(3)));
        assert_eq!(memory.get(&identity("other")), None);
        memory.clear();
        assert_eq!(memory.get(&identity("k")), None);
    }

    #[test]
    fn a_reply_is_forgotten_when_its_life_is_over() {
        let memory = Memory::new(1 << 20);
        memory.put(identity("dead"), finished(3), Duration::ZERO);
        assert_eq!(memory.get(&identity("dead")), None);
        memory.put(identity("short"), finished(3), Duration::from_millis(20));
        memory.put(identity("long"), finished(3), LONG);
        let until = Instant::now() + Duration::from_secs(10);
        while memory.get(&identity("short")).is_some() {
            assert!(Instant::now() < until, "it is still there");
            std::thread::yield_now();
        }
        assert!(memory.get(&identity("long")).is_some());
    }

    #[test]
    fn no_room_keeps_nothing() {
        let memory = Memory::new(0);
        memory.put(identity("k"), finished(3), LONG);
        assert_eq!(memory.get(&identity("k")), None);
    }

    #[test]
    fn what_is_kept_is_bounded_by_bytes() {
        let memory = Memory::new(10_000);
        for number in 0..5 {
            memory.put(identity(&format!("first-{number}")), finished(1000), LONG);
        }
        assert_eq!(memory.replies.len(), 5, "five of 1.7 kB fit");
        for number in 0..1000 {
            memory.put(identity(&format!("k-{number}")), finished(1000), LONG);
        }
        assert!(memory.replies.len() <= 6, "{}", memory.replies.len());
        assert!(memory.get(&identity("k-999")).is_some(), "the newest is kept");
    }
}
