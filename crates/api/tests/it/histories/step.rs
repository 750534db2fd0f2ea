//! What can happen in a history.

/// One step. Numbers name what there is at that moment, counted round and round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A request that was not sent before.
    New(Wish, How),
    /// A request that was sent before, to the byte.
    Again(usize, How),
    /// Trouble.
    Trouble(Trouble),
}

/// What is asked for; every wish has a key of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Order {
        goods: usize,
        quantity: u32,
    },
    Pay {
        order: usize,
        card: &'static str,
    },
    Cancel {
        order: usize,
    },
    Refund {
        payment: usize,
        part: bool,
    },
    Receipt {
        order: usize,
    },
    /// Another request under a key that was used before.
    Reuse {
        sent: usize,
    },
}

/// How a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// And its answer is waited for.
    Patiently,
    /// And something else goes on meanwhile.
    Aside,
    /// Three times at the same moment.
    Together,
    /// And the connection is torn after so many milliseconds.
    Torn(u64),
    /// And the server is killed after so many milliseconds.
    Killed(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// SIGKILL, and a new process at the same address.
    Kill,
    /// FLUSHALL.
    Flush,
    /// Every value becomes another key's, or nonsense.
    Poison,
    /// What is in the cache is written down …
    Remember,
    /// … and put back, however old it is.
    Restore,
    /// Connections are accepted and never answered.
    Freeze,
    Thaw,
    /// Connections are refused.
    StopCache,
    StartCache,
    ProviderDown,
    ProviderSlow,
    ProviderFine,
    HoldEvents,
    ReleaseEvents,
    /// Time runs out for every order that was not paid.
    Expire,
    /// A little time passes.
    Pause(u64),
}
