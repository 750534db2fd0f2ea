//! Whether to expect that a key is known already: it decides what is tried first, nothing else.
//!
//! Looking in Redis costs a fresh order a round trip for nothing, and finding a repeat by executing
//! costs a repeat more than looking. Which of them to expect changes with the hour: hardly a
//! request is a repeat until an outage ends, then many are. So this follows what the last requests
//! were. Whoever guesses wrong pays a detour; what a key gets is decided by its record alone.

use std::sync::atomic::{AtomicU32, Ordering};

/// One request moves the share by this part.
const WEIGHT: u32 = 32;
/// Every request was a repeat.
const ALL: u32 = 1 << 20;
/// From this share on repeats are likely.
const LIKELY: u32 = ALL / 16;

/// The share of repeats among the last requests that were not answered out of memory.
#[derive(Debug)]
pub struct Repeats(AtomicU32);

impl Default for Repeats {
    /// After a start everybody may be a repeat.
    fn default() -> Self {
        Self(AtomicU32::new(ALL))
    }
}

impl Repeats {
    /// Whether enough of the last requests were repeats.
    pub fn are_likely(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= LIKELY
    }

    /// Notes what a request was. Two at once may count as one: it is a guess.
    pub fn note(&self, repeat: bool) {
        let share = self.0.load(Ordering::Relaxed);
        let target = if repeat { ALL } else { 0 };
        self.0.store(share - share / WEIGHT + target / WEIGHT, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_likely_until_a_hundred_requests_were_none() {
        let repeats = Repeats::default();
        for _ in 0..80 {
            repeats.note(false);
            assert!(repeats.are_likely());
        }
        for _ in 0..20 {
            repeats.note(false);
        }
        assert!(!repeats.are_likely());
    }

    #[test]
    fn a_few_repeats_are_noticed_at_once() {
        let repeats = Repeats::default();
        for _ in 0..10_000 {
            repeats.note(false);
        }
        assert!(!repeats.are_likely());
        for _ in 0..3 {
            repeats.note(true);
        }
        assert!(repeats.are_likely());
    }

    #[test]
    fn one_repeat_in_forty_does_not_make_them_likely_and_one_in_eight_does() {
        for (every, likely) in [(40, false), (8, true)] {
            let repeats = Repeats::default();
            for number in 1..=8000 {
                repeats.note(number % every == 0);
            }
            assert_eq!(repeats.are_likely(), likely, "one in {every}");
        }
    }
}
