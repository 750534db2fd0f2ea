//! Finished replies in this process: bounded by bytes, each for its remaining life.

use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::key::Identity;
use crate::record::Finished;

/// Finished replies never change, so keeping them in memory cannot make one wrong.
/// Lives run on the monotonic clock: a changed wall clock prolongs nothing.
#[derive(Clone)]
pub struct Memory {
    replies: Cache<Identity, Kept>,
}

#[derive(Clone)]
struct Kept {
    finished: Arc<Finished>,
    life: Duration,
}

struct RemainingLife;

impl Expiry<Identity, Kept> for RemainingLife {
    fn expire_after_create(&self, _: &Identity, kept: &Kept, _: Instant) -> Option<Duration> {
        Some(kept.life)
    }
}

impl Memory {
    /// Keeps about this many bytes of replies; 0 keeps none.
    pub fn new(bytes_max: u64) -> Self {
        let replies = Cache::builder()
            .max_capacity(bytes_max)
            // The newest reply is the likeliest to be asked for again; a policy that lets in only
            // what was asked for before would let in none.
            .eviction_policy(EvictionPolicy::lru())
            .weigher(|_, kept: &Kept| weight(&kept.finished))
            .expire_after(RemainingLife)
            .build();
        Self { replies }
    }

    /// The finished reply of a key, if it is here and still alive.
    pub fn get(&self, identity: &Identity) -> Option<Arc<Finished>> {
        self.replies.get(identity).map(|kept| kept.finished)
    }

    /// Keeps a finished reply for the rest of its life.
    pub fn put(&self, identity: Identity, finished: Arc<Finished>, life: Duration) {
        if !life.is_zero() {
            self.replies.insert(identity, Kept { finished, life });
        }
    }

    /// Forgets everything, as a restart would.
    pub fn clear(&self) {
        self.replies.invalidate_all();
    }
}

fn weight(finished: &Finished) -> u32 {
    // The key, the map's own cost and the marks are about half a kilobyte.
    let bytes = finished.reply.body().len() + 512;
    u32::try_from(bytes).unwrap_or(u32::MAX)
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
    fn what_is_kept_is_bounded_by_bytes() {
        let memory = Memory::new(10_000);
        for number in 0..5 {
            memory.put(identity(&format!("first-{number}")), finished(1000), LONG);
        }
        memory.replies.run_pending_tasks();
        assert_eq!(memory.replies.entry_count(), 5, "five of 1.5 kB fit");
        for number in 0..1000 {
            memory.put(identity(&format!("k-{number}")), finished(1000), LONG);
        }
        memory.replies.run_pending_tasks();
        assert!(memory.replies.entry_count() <= 6, "{}", memory.replies.entry_count());
        assert!(memory.get(&identity("k-999")).is_some(), "the newest is kept");
    }
}
