//! Finished replies as bytes for a cache that nobody needs to trust.
//!
//! Layout: MAC (32), version (1), expiry in Unix nanoseconds (16), fingerprint (32),
//! outcome (1), status (2), then length-prefixed (u32): marks, resource, headers, body.
//! The MAC covers the identity and all that follows, so a value that was
//! changed, moved to another key, or made by somebody else is a miss.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use time::OffsetDateTime;

use crate::fingerprint::{Fingerprint, Marks};
use crate::key::Identity;
use crate::record::{Finished, Outcome};
use crate::reply::Reply;

const VERSION: u8 = 1;
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
        let content = encode(finished);
        let mut sealed = self.mac(identity, &content).finalize().into_bytes().to_vec();
        sealed.extend(content);
        sealed
    }

    /// The reply in these bytes, or `None` if they are not what [`Sealer::seal`]
    /// made for this identity.
    pub fn open(&self, identity: &Identity, sealed: &[u8]) -> Option<Finished> {
        let (mac, content) = sealed.split_at_checked(MAC_BYTES)?;
        self.mac(identity, content).verify_slice(mac).ok()?;
        decode(content)
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

fn encode(finished: &Finished) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    bytes.extend(finished.expires_at.unix_timestamp_nanos().to_be_bytes());
    bytes.extend(finished.fingerprint.0);
    bytes.push(u8::from(finished.outcome == Outcome::Completed));
    bytes.extend(finished.reply.status().to_be_bytes());
    for part in [
        finished.marks.as_bytes(),
        finished.resource.as_deref().unwrap_or_default().as_bytes(),
        &finished.reply.encode_headers(),
        finished.reply.body(),
    ] {
        let length = u32::try_from(part.len()).expect("a stored part is under 4 GiB");
        bytes.extend(length.to_be_bytes());
        bytes.extend(part);
    }
    bytes
}

fn decode(content: &[u8]) -> Option<Finished> {
    let rest = content.strip_prefix(&[VERSION])?;
    let (expiry, rest) = rest.split_first_chunk::<16>()?;
    let (fingerprint, rest) = rest.split_first_chunk::<32>()?;
    let ([completed, status @ ..], rest) = rest.split_first_chunk::<3>()?;
    let (marks, rest) = part(rest)?;
    let (resource, rest) = part(rest)?;
    let (headers, rest) = part(rest)?;
    let (body, rest) = part(rest)?;
    if !rest.is_empty() {
        return None;
    }
    let outcome = if *completed == 1 { Outcome::Completed } else { Outcome::Failed };
    let status = u16::from_be_bytes(*status);
    let resource = std::str::from_utf8(resource).ok()?;
    Some(Finished {
        fingerprint: Fingerprint(*fingerprint),
        marks: Marks::from_stored(marks)?,
        outcome,
        reply: Reply::from_stored(status, headers, Bytes::copy_from_slice(body))?,
        expires_at: OffsetDateTime::from_unix_timestamp_nanos(i128::from_be_bytes(*expiry)).ok()?,
        resource: (!resource.is_empty()).then(|| resource.to_owned()),
    })
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, Scope};

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
        assert_eq!(sealer.open(&identity("k"), &sealed), Some(finished()));
        assert_eq!(sealer.open(&identity("other"), &sealed), None);
        assert_eq!(Sealer::new(b"another").open(&identity("k"), &sealed), None);
    }

    #[test]
    fn every_changed_or_missing_byte_is_a_miss() {
        let sealer = Sealer::new(b"secret");
        let sealed = sealer.seal(&identity("k"), &finished());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(sealer.open(&identity("k"), &changed), None, "byte {at}");
            assert_eq!(sealer.open(&identity("k"), &sealed[..at]), None, "cut at {at}");
        }
    }
}
