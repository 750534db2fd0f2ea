//! Finished replies in this process: bounded by bytes, each for its remaining life.

use std::time::{Duration, Instant};

use moka::Expiry;
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
    finished: Finished,
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
            .weigher(|_, kept: &Kept| weight(&kept.finished))
            .expire_after(RemainingLife)
            .build();
        Self { replies }
    }

    /// The finished reply of a key, if it is here and still alive.
    pub fn get(&self, identity: &Identity) -> Option<Finished> {
        self.replies.get(identity).map(|kept| kept.finished)
    }

    /// Keeps a finished reply for the rest of its life.
    pub fn put(&self, identity: Identity, finished: Finished, life: Duration) {
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
