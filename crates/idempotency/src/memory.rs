//! Finished replies in this process: bounded by bytes, each for its remaining life.

use std::hash::RandomState;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use sha2::{Digest, Sha256};

use crate::key::Identity;
use crate::packed::{pack, unpack};
use crate::record::Finished;

/// Of what is kept besides a packed reply: an entry of the map and its allocation.
const OVERHEAD: u64 = 160;
/// What a reply takes as a rule, to know how many there will be.
const TYPICAL: u64 = 1024;

/// Finished replies never change, so keeping them in memory cannot make one wrong.
/// Lives run on the monotonic clock: a changed wall clock prolongs nothing.
#[derive(Clone)]
pub struct Memory {
    // Clients choose the keys: the hash is one that they cannot make collide.
    replies: Arc<Cache<Name, Kept, Weight, RandomState>>,
}

/// The SHA-256 of an identity: as long for every one, and no allocation.
type Name = [u8; 32];

#[derive(Clone)]
struct Kept {
    packed: Arc<[u8]>,
    until: Instant,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Name, Kept> for Weight {
    fn weight(&self, _: &Name, kept: &Kept) -> u64 {
        OVERHEAD + kept.packed.len() as u64
    }
}

impl Memory {
    /// Keeps about this many bytes of replies; 0 keeps none.
    pub fn new(bytes_max: u64) -> Self {
        let items = usize::try_from(bytes_max / TYPICAL).unwrap_or_default();
        let life = DefaultLifecycle::default();
        Self { replies: Arc::new(Cache::with(items, bytes_max, Weight, RandomState::new(), life)) }
    }

    /// The finished reply of a key, if it is here and still alive.
    pub fn get(&self, identity: &Identity) -> Option<Finished> {
        let name = name(identity);
        let kept = self.replies.get(&name)?;
        if kept.until <= Instant::now() {
            self.replies.remove(&name);
            return None;
        }
        unpack(&Bytes::from_owner(kept.packed))
    }

    /// Keeps a finished reply for the rest of its life.
    pub fn put(&self, identity: &Identity, finished: &Finished, life: Duration) {
        if let Some(until) = Instant::now().checked_add(life).filter(|_| !life.is_zero()) {
            let packed = pack(finished, 0).into();
            self.replies.insert(name(identity), Kept { packed, until });
        }
    }

    /// Forgets everything, as a restart would.
    pub fn clear(&self) {
        self.replies.clear();
    }
}

fn name(identity: &Identity) -> Name {
    let scope = identity.scope.as_bytes();
    let mut hash = Sha256::new();
    // The length goes first, so that no key begins where another's scope ends.
    hash.update((scope.len() as u64).to_be_bytes());
    hash.update(scope);
    hash.update(identity.key.as_str());
    hash.finalize().into()
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

    fn finished(bytes: usize) -> Finished {
        Finished {
            fingerprint: Fingerprint([9; 32]),
            marks: Marks::default(),
            outcome: Outcome::Completed,
            reply: Reply::new(201, "application/json", vec![b' '; bytes]),
            expires_at: OffsetDateTime::UNIX_EPOCH,
            resource: None,
        }
    }

    #[test]
    fn a_reply_is_kept_for_its_key_alone() {
        let memory = Memory::new(1 << 20);
        memory.put(&identity("k"), &finished(3), LONG);
        assert_eq!(memory.get(&identity("k")), Some(finished(3)));
        assert_eq!(memory.get(&identity("other")), None);
        memory.clear();
        assert_eq!(memory.get(&identity("k")), None);
    }

    #[test]
    fn a_reply_is_forgotten_when_its_life_is_over() {
        let memory = Memory::new(1 << 20);
        memory.put(&identity("dead"), &finished(3), Duration::ZERO);
        assert_eq!(memory.get(&identity("dead")), None);
        memory.put(&identity("short"), &finished(3), Duration::from_millis(20));
        memory.put(&identity("long"), &finished(3), LONG);
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
        memory.put(&identity("k"), &finished(3), LONG);
        assert_eq!(memory.get(&identity("k")), None);
    }

    #[test]
    fn what_is_kept_is_bounded_by_bytes() {
        let memory = Memory::new(10_000);
        for number in 0..5 {
            memory.put(&identity(&format!("first-{number}")), &finished(1000), LONG);
        }
        assert_eq!(memory.replies.len(), 5, "five of 1.4 kB fit");
        for number in 0..1000 {
            memory.put(&identity(&format!("k-{number}")), &finished(1000), LONG);
        }
        assert!(memory.replies.len() <= 7, "{}", memory.replies.len());
        assert!(memory.get(&identity("k-999")).is_some(), "the newest is kept");
    }
}
