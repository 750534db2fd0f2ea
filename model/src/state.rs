//! Everything that is true at one moment: our database, the provider, the cache, the processes.

/// The client's first key, and the one it takes when that is safe.
pub const KEYS: usize = 2;
/// Processes.
pub const WORKERS: usize = 2;

/// Which key.
pub type Key = usize;

/// One moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Our table of keys.
    pub records: [Record; KEYS],
    /// Whether a payment made under the key is remembered after its record was swept.
    pub made: [bool; KEYS],
    /// `order.live_payment_id`
    pub live: Option<Key>,
    /// Whose payment the order is paid with.
    pub paid_by: Option<Key>,
    /// The provider's books, by provider key, which is made from ours.
    pub charges: [Charge; KEYS],
    /// How often the provider took the money.
    pub captures: [u8; KEYS],
    /// The provider has forgotten that it saw this key; its books still show the charge.
    pub forgotten: [bool; KEYS],
    /// A request to the provider that is still on its way.
    pub wire: [bool; KEYS],
    /// What is kept of a finished reply outside the database.
    pub cache: [Cache; KEYS],
    /// What every process is at.
    pub workers: [Worker; WORKERS],
    /// The first reply that anybody was given under the key.
    pub first: [Option<Reply>; KEYS],
    /// Somebody was given another one.
    pub changed: bool,
    /// The client was told that a new key is safe.
    pub safe: bool,
    /// Deaths, losses and refused connections so far.
    pub faults: u8,
}

/// A row of our table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Record {
    /// There is none.
    #[default]
    None,
    /// Somebody is at it, or was.
    Unfinished {
        /// The holder's number.
        fence: u8,
        /// The lease is over.
        over: bool,
    },
    /// There is a reply.
    Finished {
        /// The reply.
        reply: Reply,
    },
}

impl Record {
    /// The number of the last holder.
    pub fn fence(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Unfinished { fence, .. } => *fence,
            Self::Finished { reply } => reply.by,
        }
    }
}

/// What became of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The money was taken.
    Succeeded,
    /// The card was refused.
    Declined,
    /// The provider has promised never to do it.
    CalledOff,
}

/// A reply as stored. Every holder writes other bytes (a time, say), so who wrote it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reply {
    /// What it says.
    pub outcome: Outcome,
    /// Who wrote it.
    pub by: u8,
}

/// A row of the provider's books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Charge {
    /// There is none.
    #[default]
    None,
    /// It has an outcome.
    Known(Outcome),
}

/// What the cache holds for a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cache {
    /// Nothing.
    #[default]
    Empty,
    /// What was stored.
    Stored(Reply),
    /// Something that somebody else put there.
    Poison,
}

/// A process. What it knows is gone when it dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Worker {
    /// At nothing.
    #[default]
    Idle,
    /// At an operation.
    At {
        /// Under which key.
        key: Key,
        /// With which number.
        fence: u8,
        /// What comes next.
        step: Step,
    },
}

/// What comes next in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Commit claim and intent.
    Intend,
    /// Send; `clean` if every attempt so far was certainly not sent.
    Send {
        /// Nothing has left.
        clean: bool,
    },
    /// Ask what became of it.
    Ask,
    /// Commit what the provider said, and the reply.
    Settle(Outcome),
    /// The reply is stored, its effects are not (a defect).
    Effects(Outcome),
    /// Free the key: nothing was sent.
    Release,
    /// Write down that nobody knows.
    LoseAnswer,
}
