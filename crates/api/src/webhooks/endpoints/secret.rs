//! Signing secrets: random, and at rest only under the server's secret.
//!
//! A copy of the database alone signs nothing. The endpoint's id is sealed in with its secret, so
//! that one row's secret is worth nothing in another row.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use domain::WebhookEndpointId;

use crate::secrets::{Purpose, Secrets};
use crate::webhooks::signature::Secret;

const NONCE_BYTES: usize = 24;

/// A new secret.
pub fn generate() -> Secret {
    Secret::new(rand::random::<[u8; 32]>().to_vec())
}

/// As it is stored: a random nonce, then the encrypted secret.
pub fn seal(secrets: &Secrets, endpoint: WebhookEndpointId, secret: &Secret) -> Vec<u8> {
    let nonce: [u8; NONCE_BYTES] = rand::random();
    let revealed = secret.reveal();
    let id = endpoint.uuid();
    let payload = Payload { msg: revealed.as_bytes(), aad: id.as_bytes() };
    let sealed = cipher(secrets).encrypt(&XNonce::from(nonce), payload);
    let sealed = sealed.expect("a few bytes can always be encrypted");
    [&nonce[..], &sealed].concat()
}

/// The reverse of [`seal`]. `None`: another server secret, another endpoint, or a changed byte.
pub fn open(secrets: &Secrets, endpoint: WebhookEndpointId, sealed: &[u8]) -> Option<Secret> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
    let id = endpoint.uuid();
    let payload = Payload { msg: sealed, aad: id.as_bytes() };
    let revealed = cipher(secrets).decrypt(&XNonce::from(*nonce), payload).ok()?;
    std::str::from_utf8(&revealed).ok()?.parse().ok()
}

fn cipher(secrets: &Secrets) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&secrets.key(Purpose::WebhookSecret).into())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn endpoint(number: u128) -> WebhookEndpointId {
        WebhookEndpointId::from_uuid(Uuid::from_u128(number))
    }

    #[test]
    fn a_secret_opens_with_its_key_and_its_endpoint_only() {
        let (secrets, others) = (Secrets::new([1; 32]), Secrets::new([2; 32]));
        let secret = generate();
        let sealed = seal(&secrets, endpoint(1), &secret);
        assert!(open(&secrets, endpoint(1), &sealed) == Some(secret.clone()));
        assert!(open(&secrets, endpoint(2), &sealed).is_none());
        assert!(open(&others, endpoint(1), &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(open(&secrets, endpoint(1), &changed).is_none(), "byte {at}");
        }
        assert!(open(&secrets, endpoint(1), b"").is_none());
    }

    #[test]
    fn the_same_secret_is_sealed_differently_every_time() {
        let secrets = Secrets::new([1; 32]);
        let secret = generate();
        let seal = || seal(&secrets, endpoint(1), &secret);
        assert_ne!(seal(), seal());
    }
}
