//! One server secret, a key of its own for each purpose.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Keys derived from the server secret. The same on all replicas.
#[derive(Clone)]
pub struct Secrets {
    root: [u8; 32],
}

/// What a key is for. Keys of different purposes tell nothing about each other.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// Marks of differing members, and secret members of fingerprints.
    Fingerprint,
    /// Replies kept in Redis.
    Cache,
    /// Tokens against cross-site forms.
    Csrf,
    /// Idempotency keys of rendered forms.
    FormKey,
    /// Encryption of webhook signing secrets.
    WebhookSecret,
    /// Cursors of lists.
    Cursor,
}

impl Secrets {
    /// From the 32 bytes of the configuration.
    pub fn new(root: [u8; 32]) -> Self {
        Self { root }
    }

    /// The key for a purpose.
    pub fn key(&self, purpose: Purpose) -> [u8; 32] {
        hmac(&self.root, &[format!("payonce {purpose:?} v1").as_bytes()])
    }

    /// An HMAC under the key of a purpose over length-prefixed parts.
    pub fn sign(&self, purpose: Purpose, parts: &[&[u8]]) -> [u8; 32] {
        hmac(&self.key(purpose), parts)
    }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}
