//! What can be left out, to see that the checker notices.

/// One thing left out of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Whoever comes back writes, whatever the record says by then.
    NoFence,
    /// A take-over sends at once, instead of asking what became of the first attempt.
    NoAsking,
    /// The provider is called before the intent is committed.
    CallBeforeIntent,
    /// The reply commits before its effects, in a transaction of its own.
    ReplyBeforeEffects,
    /// A holder that took over frees the key when its own attempt was not sent.
    ReleaseAfterTakeOver,
    /// The sweep takes unfinished records with it.
    SweepUnfinished,
    /// What the cache says is believed.
    TrustedCache,
    /// A lease that ran out makes room for nobody.
    NoTakeOver,
    /// A swept key counts as new, whatever it made.
    NoMemoryOfResources,
}
