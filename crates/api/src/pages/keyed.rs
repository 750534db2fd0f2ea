//! What a form shows about its key: the shopper may look, and never has to.

/// A form's idempotency key and the facts folded away under it.
#[derive(Debug, Clone)]
pub struct KeyFacts {
    pub key: String,
    /// "this cart. The same cart always gets the same key"
    pub made_from: String,
    /// "this cart and $42.00. Another cart under this key is refused"
    pub bound_to: String,
    /// "unused", or what the record says.
    pub state: String,
}

impl KeyFacts {
    pub(super) fn short(&self) -> String {
        short(&self.key)
    }

    pub(super) fn inspect(&self) -> String {
        format!("/inspect?q={}", self.key)
    }
}

/// `7f3a…c21e`: enough to recognise a key by eye.
pub(super) fn short(key: &str) -> String {
    let count = key.chars().count();
    if count <= 12 {
        return key.to_owned();
    }
    let head: String = key.chars().take(4).collect();
    let tail: String = key.chars().skip(count - 4).collect();
    format!("{head}…{tail}")
}
