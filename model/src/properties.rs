//! What must hold in every state that can be reached.

use stateright::Property;

use crate::fair;
use crate::state::{Outcome, Record, State};
use crate::{KEYS, Protocol};

/// The money is taken once at most, whatever key the client was allowed to use.
pub const ONE_EFFECT: &str = "at most one effect";
/// Whoever asks again is told the same.
pub const SAME_REPLY: &str = "a stored reply never changes";
/// A reply says what is so.
pub const TRUE_REPLY: &str = "reply and effects commit together";
/// Nothing happens at the provider that we have no trace of.
pub const TRACED: &str = "no effect without a record";
/// No key stays open as long as one process works and the provider answers.
pub const SETTLES: &str = "every key settles if somebody keeps running";

pub(crate) fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always(ONE_EFFECT, |_, state: &State| state.captures.iter().sum::<u8>() <= 1),
        Property::always(SAME_REPLY, |_, state: &State| !state.changed),
        Property::always(TRUE_REPLY, |_, state| (0..KEYS).all(|key| is_true(state, key))),
        Property::always(TRACED, |_, state| (0..KEYS).all(|key| is_traced(state, key))),
        Property::always(SETTLES, fair::settles),
        // Or the rest would hold because nothing ever happens.
        Property::sometimes("the order is paid", |_, state: &State| state.paid_by.is_some()),
        Property::sometimes("a second key pays", |_, state: &State| state.paid_by == Some(1)),
        Property::sometimes("a third holder settles", |_, state: &State| {
            state
                .records
                .iter()
                .any(|record| matches!(record, Record::Finished { reply } if reply.by == 3))
        }),
        Property::sometimes("a payment is called off", |_, state: &State| {
            state.records.iter().any(|record| {
                matches!(record, Record::Finished { reply } if reply.outcome == Outcome::CalledOff)
            })
        }),
    ]
}

fn is_true(state: &State, key: usize) -> bool {
    match state.records[key] {
        Record::Finished { reply } => match reply.outcome {
            Outcome::Succeeded => state.paid_by == Some(key) && state.captures[key] == 1,
            Outcome::Declined | Outcome::CalledOff => {
                state.paid_by != Some(key) && state.live != Some(key) && state.captures[key] == 0
            }
        },
        Record::None | Record::Unfinished { .. } => true,
    }
}

fn is_traced(state: &State, key: usize) -> bool {
    state.captures[key] == 0 || state.made[key] || state.records[key] != Record::None
}
