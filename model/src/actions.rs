//! What can happen next, and what it changes.

use crate::state::{
    Cache, Charge, KEYS, Key, Outcome, Record, Reply, State, Step, WORKERS, Worker,
};
use crate::{Defect, Protocol};

/// One thing that happens at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The client's request arrives at a process, for the first time or again.
    Request(usize, Key),
    /// Recovery finds an unfinished record whose lease is over.
    Recover(usize, Key),
    /// A process commits what comes next.
    Commit(usize),
    /// The connection to the provider is refused: certainly nothing was sent.
    NotSent(usize),
    /// The provider gets the request, and its answer comes back.
    Answered(usize, Outcome),
    /// The provider gets the request now or later; its answer is lost.
    Lost(usize),
    /// A request that was on its way arrives at the provider.
    Arrives(Key, Outcome),
    /// The provider says what it has under the key.
    Told(usize),
    /// The provider cannot be asked.
    Unanswered(usize),
    /// The provider is made to promise never to do it.
    CallOff(usize),
    /// A process dies; another one is started in its place.
    Die(usize),
    /// Time passes.
    LeaseEnds(Key),
    /// A day passes; the record is swept.
    Sweep(Key),
    /// The provider's own day passes.
    ProviderForgets(Key),
    /// A finished reply is put into the cache.
    Fill(Key),
    /// The cache loses it.
    Flush(Key),
    /// Somebody else writes into the cache.
    Poison(Key),
}

/// What a charge may come to.
const OUTCOMES: [Outcome; 2] = [Outcome::Succeeded, Outcome::Declined];

pub(crate) fn all(protocol: &Protocol, state: &State, actions: &mut Vec<Action>) {
    for worker in 0..WORKERS {
        match state.workers[worker] {
            Worker::Idle => {
                actions.extend((0..KEYS).map(|key| Action::Request(worker, key)));
                actions.extend((0..KEYS).map(|key| Action::Recover(worker, key)));
            }
            Worker::At { step, .. } => {
                let fault = state.faults < protocol.faults_max;
                during(worker, step, fault, actions);
            }
        }
    }
    for key in 0..KEYS {
        actions.extend(OUTCOMES.map(|outcome| Action::Arrives(key, outcome)));
        actions.extend([
            Action::LeaseEnds(key),
            Action::Sweep(key),
            Action::ProviderForgets(key),
            Action::Fill(key),
            Action::Flush(key),
            Action::Poison(key),
        ]);
    }
}

fn during(worker: usize, step: Step, fault: bool, actions: &mut Vec<Action>) {
    match step {
        Step::Send { .. } => {
            actions.extend(OUTCOMES.map(|outcome| Action::Answered(worker, outcome)));
            if fault {
                actions.extend([Action::NotSent(worker), Action::Lost(worker)]);
            }
        }
        Step::Ask => {
            actions.extend([Action::Told(worker), Action::CallOff(worker)]);
            if fault {
                actions.push(Action::Unanswered(worker));
            }
        }
        Step::Intend | Step::Settle(_) | Step::Effects(_) | Step::Release | Step::LoseAnswer => {
            actions.push(Action::Commit(worker));
        }
    }
    if fault {
        actions.push(Action::Die(worker));
    }
}

/// The moment after, or `None` where this cannot happen.
pub(crate) fn happen(protocol: &Protocol, before: &State, action: Action) -> Option<State> {
    let mut state = before.clone();
    match action {
        Action::Request(worker, key) => request(protocol, &mut state, worker, key)?,
        Action::Recover(worker, key) => take_over(protocol, &mut state, worker, key)?,
        Action::Commit(worker) => commit(protocol, &mut state, worker)?,
        Action::NotSent(worker) => not_sent(protocol, &mut state, worker)?,
        Action::Answered(worker, outcome) => {
            let (key, _, _) = at(&state, worker)?;
            let outcome = charge(&mut state, key, outcome);
            go(&mut state, worker, Step::Settle(outcome));
        }
        Action::Lost(worker) => {
            let (key, _, _) = at(&state, worker)?;
            state.faults += 1;
            state.wire[key] = true;
            go(&mut state, worker, Step::Ask);
        }
        Action::Arrives(key, outcome) => {
            if !std::mem::take(&mut state.wire[key]) {
                return None;
            }
            charge(&mut state, key, outcome);
        }
        Action::Told(worker) => told(&mut state, worker)?,
        Action::Unanswered(worker) => {
            state.faults += 1;
            go(&mut state, worker, Step::LoseAnswer);
        }
        Action::CallOff(worker) => call_off(&mut state, worker)?,
        Action::Die(worker) => {
            state.faults += 1;
            state.workers[worker] = Worker::Idle;
        }
        Action::LeaseEnds(key) => match &mut state.records[key] {
            Record::Unfinished { over, .. } if !*over => *over = true,
            _ => return None,
        },
        Action::Sweep(key) => sweep(protocol, &mut state, key)?,
        Action::ProviderForgets(key) => forget(&mut state, key)?,
        Action::Fill(key) => match state.records[key] {
            Record::Finished { reply } => state.cache[key] = Cache::Stored(reply),
            _ => return None,
        },
        Action::Flush(key) => state.cache[key] = Cache::Empty,
        Action::Poison(key) => state.cache[key] = Cache::Poison,
    }
    (state != *before).then_some(state)
}

fn at(state: &State, worker: usize) -> Option<(Key, u8, Step)> {
    match state.workers[worker] {
        Worker::At { key, fence, step } => Some((key, fence, step)),
        Worker::Idle => None,
    }
}

fn go(state: &mut State, worker: usize, next: Step) {
    if let Worker::At { step, .. } = &mut state.workers[worker] {
        *step = next;
    }
}

fn request(protocol: &Protocol, state: &mut State, worker: usize, key: Key) -> Option<()> {
    if key > 0 && !state.safe {
        return None;
    }
    match state.cache[key] {
        Cache::Stored(reply) => {
            given(state, key, reply);
            return Some(());
        }
        Cache::Poison if protocol.lacks(Defect::TrustedCache) => {
            let lie = Reply { outcome: Outcome::Declined, by: u8::MAX };
            given(state, key, lie);
            return Some(());
        }
        // What was not sealed by us is a miss.
        Cache::Empty | Cache::Poison => {}
    }
    match state.records[key] {
        Record::Finished { reply } => {
            given(state, key, reply);
            Some(())
        }
        Record::Unfinished { .. } => take_over(protocol, state, worker, key),
        Record::None if state.made[key] && !protocol.lacks(Defect::NoMemoryOfResources) => None,
        Record::None => {
            let step = match protocol.lacks(Defect::CallBeforeIntent) {
                true => Step::Send { clean: true },
                false => Step::Intend,
            };
            state.workers[worker] = Worker::At { key, fence: 1, step };
            Some(())
        }
    }
}

/// Somebody is given a reply.
fn given(state: &mut State, key: Key, reply: Reply) {
    match state.first[key] {
        None => state.first[key] = Some(reply),
        Some(first) => state.changed |= first != reply,
    }
    // A declined or called-off payment says that a new key is safe.
    state.safe |= reply.outcome != Outcome::Succeeded;
}

fn take_over(protocol: &Protocol, state: &mut State, worker: usize, key: Key) -> Option<()> {
    let Record::Unfinished { fence, over: true } = state.records[key] else { return None };
    if protocol.lacks(Defect::NoTakeOver) {
        return None;
    }
    let fence = fence + 1;
    state.records[key] = Record::Unfinished { fence, over: false };
    let step = match protocol.lacks(Defect::NoAsking) {
        true => Step::Send { clean: false },
        false => Step::Ask,
    };
    state.workers[worker] = Worker::At { key, fence, step };
    Some(())
}

fn commit(protocol: &Protocol, state: &mut State, worker: usize) -> Option<()> {
    let (key, fence, step) = at(state, worker)?;
    match step {
        Step::Intend => intend(state, worker, key),
        Step::Settle(outcome) => settle(protocol, state, worker, outcome)?,
        Step::Effects(outcome) => {
            effects(state, key, outcome);
            state.workers[worker] = Worker::Idle;
        }
        Step::Release => {
            release(protocol, state, key, fence);
            state.workers[worker] = Worker::Idle;
        }
        Step::LoseAnswer => {
            if holds(protocol, state, key, fence) {
                state.records[key] = Record::Unfinished { fence, over: true };
            }
            state.workers[worker] = Worker::Idle;
        }
        Step::Send { .. } | Step::Ask => return None,
    }
    Some(())
}

/// Whether this holder may still write.
fn holds(protocol: &Protocol, state: &State, key: Key, fence: u8) -> bool {
    match state.records[key] {
        Record::None => false,
        _ if protocol.lacks(Defect::NoFence) => true,
        Record::Unfinished { fence: held, .. } => held == fence,
        Record::Finished { .. } => false,
    }
}

/// Claim and intent in one transaction; the order takes one live payment.
fn intend(state: &mut State, worker: usize, key: Key) {
    let taken = state.live.is_some() || state.paid_by.is_some();
    if state.records[key] != Record::None || taken {
        state.workers[worker] = Worker::Idle;
        return;
    }
    state.records[key] = Record::Unfinished { fence: 1, over: false };
    state.live = Some(key);
    go(state, worker, Step::Send { clean: true });
}

/// Outcome, order and reply in one transaction, under the fence.
fn settle(protocol: &Protocol, state: &mut State, worker: usize, outcome: Outcome) -> Option<()> {
    let (key, fence, _) = at(state, worker)?;
    if protocol.lacks(Defect::CallBeforeIntent) && state.records[key] == Record::None {
        state.records[key] = Record::Unfinished { fence, over: false };
        state.live = Some(key);
    }
    if !holds(protocol, state, key, fence) {
        state.workers[worker] = Worker::Idle;
        return Some(());
    }
    let reply = Reply { outcome, by: fence };
    state.records[key] = Record::Finished { reply };
    state.made[key] = true;
    if protocol.lacks(Defect::ReplyBeforeEffects) {
        go(state, worker, Step::Effects(outcome));
        return Some(());
    }
    effects(state, key, outcome);
    given(state, key, reply);
    state.workers[worker] = Worker::Idle;
    Some(())
}

fn effects(state: &mut State, key: Key, outcome: Outcome) {
    match outcome {
        Outcome::Succeeded => state.paid_by = Some(key),
        Outcome::Declined | Outcome::CalledOff => {
            if state.live == Some(key) {
                state.live = None;
            }
        }
    }
}

fn not_sent(protocol: &Protocol, state: &mut State, worker: usize) -> Option<()> {
    let (_, fence, Step::Send { clean }) = at(state, worker)? else { return None };
    state.faults += 1;
    // Only the first owner knows that nobody else has sent anything.
    let knows = clean && fence == 1 || protocol.lacks(Defect::ReleaseAfterTakeOver);
    go(state, worker, if knows { Step::Release } else { Step::LoseAnswer });
    Some(())
}

fn release(protocol: &Protocol, state: &mut State, key: Key, fence: u8) {
    let free = match state.records[key] {
        Record::Unfinished { fence: held, .. } => {
            held == fence && (fence == 1 || protocol.lacks(Defect::ReleaseAfterTakeOver))
                || protocol.lacks(Defect::NoFence)
        }
        Record::None | Record::Finished { .. } => false,
    };
    if free {
        state.records[key] = Record::None;
        if state.live == Some(key) {
            state.live = None;
        }
        // 503: nothing was charged.
        state.safe = true;
    }
}

/// The provider runs a charge once per key, as long as it remembers the key.
fn charge(state: &mut State, key: Key, outcome: Outcome) -> Outcome {
    match state.charges[key] {
        Charge::Known(known) if !state.forgotten[key] => known,
        // What it has promised it keeps.
        Charge::Known(Outcome::CalledOff) => Outcome::CalledOff,
        Charge::None | Charge::Known(_) => {
            state.charges[key] = Charge::Known(outcome);
            state.forgotten[key] = false;
            if outcome == Outcome::Succeeded {
                state.captures[key] += 1;
            }
            outcome
        }
    }
}

fn told(state: &mut State, worker: usize) -> Option<()> {
    let (key, _, Step::Ask) = at(state, worker)? else { return None };
    let next = match state.charges[key] {
        Charge::Known(outcome) => Step::Settle(outcome),
        // No such charge never means that there will be none: send it.
        Charge::None => Step::Send { clean: false },
    };
    go(state, worker, next);
    Some(())
}

fn call_off(state: &mut State, worker: usize) -> Option<()> {
    let (key, _, Step::Ask) = at(state, worker)? else { return None };
    if state.charges[key] == Charge::None {
        state.charges[key] = Charge::Known(Outcome::CalledOff);
    }
    told(state, worker)
}

fn sweep(protocol: &Protocol, state: &mut State, key: Key) -> Option<()> {
    match state.records[key] {
        Record::Finished { .. } => {}
        Record::Unfinished { over: true, .. } if protocol.lacks(Defect::SweepUnfinished) => {
            state.live = state.live.filter(|live| *live != key);
        }
        _ => return None,
    }
    state.records[key] = Record::None;
    // A cached reply says itself when its day is over.
    state.cache[key] = Cache::Empty;
    state.first[key] = None;
    Some(())
}

/// The provider keeps keys for a day, which is far longer than any of our calls may take.
fn forget(state: &mut State, key: Key) -> Option<()> {
    let calling = |worker: &Worker| matches!(worker, Worker::At { key: at, step: Step::Send { .. } | Step::Intend, .. } if *at == key);
    let known = matches!(state.charges[key], Charge::Known(_));
    if !known || state.wire[key] || state.workers.iter().any(calling) {
        return None;
    }
    state.forgotten[key] = true;
    Some(())
}
