//! Values that are used but never shown.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A value that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    pub fn new(value: T) -> Self {
        Self(value)
    }

    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The keys of inbound webhooks: the first signs, every one of them verifies.
pub type WebhookSecrets = Redacted<Vec<Vec<u8>>>;

/// 64 hex digits.
pub(super) fn server_secret(text: &str) -> Option<[u8; 32]> {
    let mut secret = [0; 32];
    hex::decode_to_slice(text.trim(), &mut secret).ok()?;
    Some(secret)
}

/// `whsec_` and the base64 of 24 to 64 bytes, as Standard Webhooks says; a comma between two.
pub(super) fn webhook_secrets(text: &str) -> Option<WebhookSecrets> {
    let secrets: Option<Vec<_>> = text.split(',').map(|one| webhook_secret(one.trim())).collect();
    secrets.filter(|all| all.len() <= 2).map(Redacted::new)
}

fn webhook_secret(text: &str) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(text.strip_prefix("whsec_")?).ok()?;
    (24..=64).contains(&bytes.len()).then_some(bytes)
}

/// The same on every replica that shares the server secret, and of no use to guess that.
pub(super) fn derived_webhook_secret(secret: &[u8; 32]) -> WebhookSecrets {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes any key length");
    mac.update(b"payonce provider webhook secret v1");
    Redacted::new(vec![mac.finalize().into_bytes().to_vec()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Redacted::new("hunter2")), "[secret]");
    }

    #[test]
    fn two_webhook_secrets_may_be_active() {
        let one = format!("whsec_{}", STANDARD.encode([1; 24]));
        let two = format!("whsec_{}", STANDARD.encode([2; 64]));
        let both = webhook_secrets(&format!("{one}, {two}")).unwrap();
        assert_eq!(both.expose(), &[vec![1; 24], vec![2; 64]]);
        assert!(webhook_secrets(&format!("{one},{one},{one}")).is_none());
    }

    #[test]
    fn a_webhook_secret_has_its_prefix_and_enough_bytes() {
        let short = format!("whsec_{}", STANDARD.encode([1; 23]));
        for wrong in ["", "whsec_", "whsec_!", &short, &STANDARD.encode([1; 24])] {
            assert!(webhook_secrets(wrong).is_none(), "{wrong}");
        }
    }
}
