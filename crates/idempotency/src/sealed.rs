//! Finished replies as bytes for a cache that nobody needs to trust.
//!
//! Layout: MAC (32), then the packed reply. The MAC covers the identity and all that follows, so a
//! value that was changed, moved to another key, or made by somebody else is a miss.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::key::Identity;
use crate::packed::{pack, unpack};
use crate::record::Finished;

const MAC_BYTES: usize = 32;

/// Seals and opens finished replies under one server secret.
#[derive(Clone)]
pub struct Sealer {
    keyed: Hmac<Sha256>,
}

impl Sealer {
    /// # Panics
    /// Never: HMAC takes keys of any length.
    pub fn new(secret: &[u8]) -> Self {
        Self { keyed: Hmac::new_from_slice(secret).expect("HMAC takes keys of any length") }
    }

    /// The bytes to keep.
    pub fn seal(&self, identity: &Identity, finished: &Finished) -> Vec<u8> {
        let mut sealed = pack(finished, MAC_BYTES);
        let (mac, content) = sealed.split_at_mut(MAC_BYTES);
        mac.copy_from_slice(&self.mac(identity, content).finalize().into_bytes());
        sealed
    }

    /// The reply in these bytes, or `None` if they are not what [`Sealer::seal`]
    /// made for this identity.
    pub fn open(&self, identity: &Identity, sealed: impl Into<Bytes>) -> Option<Finished> {
        let sealed: Bytes = sealed.into();
        let mac = sealed.get(..MAC_BYTES)?;
        let content = sealed.slice(MAC_BYTES..);
        self.mac(identity, &content).verify_slice(mac).ok()?;
        unpack(&content)
    }

    fn mac(&self, identity: &Identity, content: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        for part in [identity.scope.as_bytes(), identity.key.as_str().as_bytes(), content] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;

    use super::*;
    use crate::fingerprint::{Fingerprint, Marks};
    use crate::key::{Key, Scope};
    use crate::record::Outcome;
    use crate::reply::Reply;

    fn identity(key: &str) -> Identity {
        let key = Key::from_bare(key.as_bytes()).unwrap();
        Identity { scope: Scope::account([1; 16]), key }
    }

    fn finished() -> Finished {
        Finished {
            fingerprint: Fingerprint([9; 32]),
            marks: Marks::default(),
            outcome: Outcome::Completed,
            reply: Reply::new(201, "application/json", "{\"id\":1}"),
            expires_at: OffsetDateTime::UNIX_EPOCH,
            resource: Some("/v1/orders/ord_1".into()),
        }
    }

    #[test]
    fn a_sealed_reply_opens_for_its_own_key_only() {
        let sealer = Sealer::new(b"secret");
        let sealed = sealer.seal(&identity("k"), &finished());
        assert_eq!(sealer.open(&identity("k"), sealed.clone()), Some(finished()));
        assert_eq!(sealer.open(&identity("other"), sealed.clone()), None);
        assert_eq!(Sealer::new(b"another").open(&identity("k"), sealed), None);
    }

    #[test]
    fn every_changed_or_missing_byte_is_a_miss() {
        let sealer = Sealer::new(b"secret");
        let sealed = sealer.seal(&identity("k"), &finished());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(sealer.open(&identity("k"), changed), None, "byte {at}");
            assert_eq!(sealer.open(&identity("k"), sealed[..at].to_vec()), None, "cut at {at}");
        }
    }
}
