//! Whether a state ends well when nothing more goes wrong: one process keeps running, the provider
//! answers, time passes. That is a single course of events, so it is simply followed.

use stateright::Model as _;

use crate::state::{Outcome, Record, State, Step, Worker};
use crate::{Action, KEYS, Protocol};

/// The process that keeps running. What others were at is left lying.
const RUNNING: usize = 0;
/// Far more than any course needs.
const STEPS_MAX: usize = 40;

pub(crate) fn settles(protocol: &Protocol, state: &State) -> bool {
    let mut state = state.clone();
    for _ in 0..STEPS_MAX {
        let Some(action) = next(&state) else { return true };
        match protocol.next_state(&state, action) {
            Some(after) => state = after,
            None => return false,
        }
    }
    false
}

/// What happens next, or `None` when everything is settled.
fn next(state: &State) -> Option<Action> {
    if let Worker::At { step, .. } = state.workers[RUNNING] {
        return Some(match step {
            Step::Send { .. } => Action::Answered(RUNNING, Outcome::Succeeded),
            Step::Ask => Action::Told(RUNNING),
            Step::Intend
            | Step::Settle(_)
            | Step::Effects(_)
            | Step::Release
            | Step::LoseAnswer => Action::Commit(RUNNING),
        });
    }
    (0..KEYS).find_map(|key| match state.records[key] {
        Record::Unfinished { over: false, .. } => Some(Action::LeaseEnds(key)),
        Record::Unfinished { over: true, .. } => Some(Action::Recover(RUNNING, key)),
        Record::None | Record::Finished { .. } => None,
    })
}
