//! The payment provider: the client that talks to it, and a mock one that stands in for it.

pub mod client;
pub mod converse;
pub mod mock;

use sha2::{Digest, Sha256};

/// The key under which the provider knows one operation, the same after any retry or restart.
///
/// Hex SHA-256 over length-prefixed parts, so that no two different triples run together.
pub fn provider_key(made_by: &[u8], key: &str, operation: &str) -> String {
    let mut digest = Sha256::new();
    for part in [made_by, key.as_bytes(), operation.as_bytes()] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex::encode(digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::provider_key;

    #[test]
    fn a_provider_key_never_changes_for_the_same_operation() {
        let key = provider_key(&[7; 16], "order-1/pay", "payment");
        assert_eq!(key, provider_key(&[7; 16], "order-1/pay", "payment"));
        assert_eq!(key.len(), 64);
    }

    #[test]
    fn parts_that_would_run_together_give_different_provider_keys() {
        let keys = [
            provider_key(b"a", "bc", "d"),
            provider_key(b"ab", "c", "d"),
            provider_key(b"a", "b", "cd"),
            provider_key(b"a", "bcd", ""),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key));
        }
    }
}
