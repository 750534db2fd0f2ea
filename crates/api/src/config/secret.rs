//! Values that are used but never shown.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::webhooks::signature::Secret;

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

/// 64 hex digits.
pub(super) fn server_secret(text: &str) -> Option<[u8; 32]> {
    let mut secret = [0; 32];
    hex::decode_to_slice(text.trim(), &mut secret).ok()?;
    Some(secret)
}

/// `whsec_` and the base64 of at least 24 bytes, as Standard Webhooks says; a comma between two.
pub(super) fn webhook_secrets(text: &str) -> Option<Vec<Secret>> {
    let strong = |one: &str| one.trim().starts_with("whsec_") && one.trim().len() >= 38;
    let secrets = Secret::parse_list(text).ok()?;
    (secrets.len() <= 2 && text.split(',').all(strong)).then_some(secrets)
}

/// The same on every replica that shares the server secret, and of no use to guess that.
pub(super) fn derived_webhook_secret(secret: &[u8; 32]) -> Secret {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes any key length");
    mac.update(b"payonce provider webhook secret v1");
    Secret::new(mac.finalize().into_bytes().to_vec())
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
        let [one, two] = [1, 2].map(|byte| Secret::new(vec![byte; 24]));
        let both = format!("{}, {}", one.reveal(), two.reveal());
        assert!(webhook_secrets(&format!("{both},{}", one.reveal())).is_none());
        assert!(webhook_secrets(&both).unwrap() == [one, two]);
    }

    #[test]
    fn a_webhook_secret_has_its_prefix_and_enough_bytes() {
        let short = Secret::new(vec![1; 21]).reveal();
        let bare = Secret::new(vec![1; 32]).reveal().replace("whsec_", "");
        for wrong in ["", "whsec_", "whsec_!", &short, &bare] {
            assert!(webhook_secrets(wrong).is_none(), "{wrong}");
        }
    }
}
