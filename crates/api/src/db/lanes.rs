//! Which connections a thread borrows from, and how many there are for it.
//!
//! A connection is driven by the thread that opened it: lent to another one, each answer wakes both.
//! So each thread that serves requests has a lane of its own; the first is for all that serves none.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A lane with fewer connections than this is not worth having.
const LEAST: usize = 4;

thread_local! {
    static LANE: Cell<usize> = const { Cell::new(0) };
}

/// From now on this thread borrows from a lane of its own, where there are enough.
pub fn take() {
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    LANE.set(TAKEN.fetch_add(1, Ordering::Relaxed) + 1);
}

/// Which of so many lanes is this thread's.
pub(super) fn own(lanes: usize) -> usize {
    match LANE.get() {
        0 => 0,
        _ if lanes == 1 => 0,
        taken => 1 + taken % (lanes - 1),
    }
}

/// How many connections each lane has; one for everybody if there are too few.
pub(super) fn sizes(connections: usize, threads: usize) -> Vec<usize> {
    let threads = threads.min((connections / LEAST).saturating_sub(1));
    if threads == 0 {
        return vec![connections];
    }
    let each = (connections - LEAST) / threads;
    let rest = connections - threads * each;
    [vec![rest], vec![each; threads]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_share_out_every_connection_and_none_is_narrow() {
        assert_eq!(sizes(2, 2), [2]);
        assert_eq!(sizes(7, 2), [7]);
        assert_eq!(sizes(8, 2), [4, 4]);
        assert_eq!(sizes(16, 2), [4, 6, 6]);
        for connections in 2..=256 {
            for threads in 1..=64 {
                let lanes = sizes(connections, threads);
                assert_eq!(lanes.iter().sum::<usize>(), connections);
                assert!(lanes.len() == 1 || lanes.iter().all(|lane| *lane >= LEAST), "{lanes:?}");
                assert!(lanes.len() <= threads + 1, "{lanes:?}");
            }
        }
    }

    #[test]
    fn threads_take_different_lanes_and_everybody_else_the_first() {
        let taken = |_| {
            let thread = std::thread::spawn(|| {
                take();
                own(3)
            });
            thread.join().unwrap()
        };
        let mut lanes: Vec<usize> = (0..8).map(taken).collect();
        lanes.sort_unstable();
        lanes.dedup();
        assert_eq!(lanes, [1, 2]);
        assert_eq!((own(3), own(1)), (0, 0));
    }
}
