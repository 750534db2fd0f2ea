//! The one clock: the database's time, carried forward on the monotonic clock.
//!
//! A wall clock may be an hour off or jump; leases, reservations and expiries compare with the
//! database's time in any case. So the process asks the database once in a while and counts on.

use std::sync::RwLock;

use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::{NoContext, Timestamp, Uuid};

/// Tells the time and makes time-ordered ids.
pub struct Clock {
    reading: RwLock<Reading>,
}

#[derive(Clone, Copy)]
struct Reading {
    database: OffsetDateTime,
    at: Instant,
}

impl Clock {
    /// A clock that was just told the database's time.
    pub fn new(database: OffsetDateTime) -> Self {
        Self { reading: RwLock::new(Reading::taken(database)) }
    }

    /// Takes a new reading, so that drift between the two machines does not add up.
    pub fn set(&self, database: OffsetDateTime) {
        *self.reading.write().expect("no reader panics") = Reading::taken(database);
    }

    /// Now, in UTC, to the microsecond that Postgres keeps.
    pub fn now(&self) -> OffsetDateTime {
        let Reading { database, at } = *self.reading.read().expect("no writer panics");
        let now = database + at.elapsed();
        now.replace_nanosecond(now.microsecond() * 1_000).expect("under a second")
    }

    /// A new UUIDv7: ids made later sort later, so that inserts touch neighbouring pages.
    pub fn new_id(&self) -> Uuid {
        let now = self.now();
        let seconds = u64::try_from(now.unix_timestamp()).unwrap_or_default();
        Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, now.nanosecond()))
    }
}

impl Reading {
    fn taken(database: OffsetDateTime) -> Self {
        Self { database, at: Instant::now() }
    }
}
