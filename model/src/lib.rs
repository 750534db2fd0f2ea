//! The protocol of a two-phase operation (a payment), small enough to try everything.
//!
//! Two processes serve one order. A client pays it with one key, sends the same request as often as
//! it likes, and takes a second key only after it was told that a new key is safe. Processes die or
//! stand still anywhere, answers get lost, requests arrive late, leases run out, the cache is filled,
//! flushed and poisoned, records expire and are swept, and the provider forgets its own keys after a
//! while. Each [`Action`] is one thing that happens at once: a commit, a call, a loss.
//!
//! The code that this stands for: `idempotency::postgres` (claim, take over, lock, finish, release),
//! `api::payments` (intend, settle) and `api::provider::converse` (send, ask, call off).

mod actions;
mod defect;
mod fair;
mod properties;
mod state;

use stateright::{Model, Property};

pub use actions::Action;
pub use defect::Defect;
pub use properties::{ONE_EFFECT, SAME_REPLY, SETTLES, TRACED, TRUE_REPLY};
pub use state::{Charge, KEYS, Key, Outcome, Record, Reply, State, Step, WORKERS, Worker};

/// The protocol, whole or with one thing left out.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// What is left out.
    pub defect: Option<Defect>,
    /// How many deaths, losses and refused connections there may be in one history.
    pub faults_max: u8,
    /// How many holders a record may have in one history.
    pub fence_max: u8,
}

impl Protocol {
    /// As it is built.
    pub fn whole() -> Self {
        Self { defect: None, faults_max: 2, fence_max: 3 }
    }

    /// With one thing left out.
    pub fn without(defect: Defect) -> Self {
        Self { defect: Some(defect), ..Self::whole() }
    }

    fn lacks(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions::all(self, state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        actions::happen(self, state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.faults <= self.faults_max
            && state.records.iter().all(|record| record.fence() <= self.fence_max)
    }
}
