//! The key a client chose, and whose key it is.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Longest accepted key in bytes.
pub const KEY_BYTES_MAX: usize = 255;

/// A parsed `Idempotency-Key`: 1 to 255 bytes of visible ASCII, compared bytewise.
///
/// The bare form excludes `,` `;` `"` and `\`. The Structured Field string
/// `"abc"` (draft-ietf-httpapi-idempotency-key-header-07) is the same key as `abc`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

/// Why a request carries no usable key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyError {
    /// No `Idempotency-Key` header at all.
    #[error("the Idempotency-Key header is missing")]
    Missing,
    /// The header was sent on more than one line, even with one value.
    #[error("the Idempotency-Key header was sent more than once")]
    Repeated,
    /// Nothing, or only white space.
    #[error("the Idempotency-Key header is empty")]
    Empty,
    /// More than [`KEY_BYTES_MAX`] bytes.
    #[error("the key is longer than 255 bytes")]
    TooLong,
    /// A byte that is not visible ASCII, or one that separates list items or parameters.
    #[error(
        "the key may hold visible ASCII only, without comma, semicolon, quotation mark and backslash"
    )]
    Byte,
}

impl Key {
    /// Parses the values of all `Idempotency-Key` lines of one request.
    ///
    /// # Errors
    /// [`KeyError`], by the first rule that is broken.
    pub fn parse<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Result<Self, KeyError> {
        let mut values = values.into_iter();
        let value = values.next().ok_or(KeyError::Missing)?;
        if values.next().is_some() {
            return Err(KeyError::Repeated);
        }
        let value = value.trim_ascii();
        if value.is_empty() {
            return Err(KeyError::Empty);
        }
        Self::from_bare(unquoted(value)?)
    }

    /// A key without quotes and surrounding white space.
    ///
    /// # Errors
    /// [`KeyError`] as for [`Key::parse`].
    pub fn from_bare(bare: &[u8]) -> Result<Self, KeyError> {
        if bare.is_empty() {
            return Err(KeyError::Empty);
        }
        if bare.len() > KEY_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        if !bare.iter().all(|byte| is_key_byte(*byte)) {
            return Err(KeyError::Byte);
        }
        let text = std::str::from_utf8(bare).map_err(|_| KeyError::Byte)?;
        Ok(Self(text.into()))
    }

    /// The key as it is stored and compared.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What a log may show: the first eight hex digits of the key's SHA-256.
    pub fn log_hash(&self) -> String {
        hex::encode(&Sha256::digest(self.0.as_bytes())[..4])
    }
}

fn unquoted(value: &[u8]) -> Result<&[u8], KeyError> {
    match value {
        [b'"', inner @ .., b'"'] => Ok(inner),
        [b'"', ..] | [.., b'"'] => Err(KeyError::Byte),
        bare => Ok(bare),
    }
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b',' | b';' | b'"' | b'\\')
}

/// Keys are secrets of a kind (a key names a purchase), so debug output shows the hash.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(#{})", self.log_hash())
    }
}

/// Whose keys these are: the bytes that name one account, or one would-be account.
///
/// Two scopes with one key never meet. At most 32 bytes; different kinds of
/// scope must differ in length, so that one can never pose as the other.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Scope(Arc<[u8]>);

impl Scope {
    /// The scope of an account that exists: the 16 bytes of its id.
    pub fn account(id: [u8; 16]) -> Self {
        Self(Arc::from(id))
    }

    /// The scope of somebody who has no account yet: a SHA-256 over what names them.
    pub fn digest(name: &[u8]) -> Self {
        Self(Arc::from(<[u8; 32]>::from(Sha256::digest(name))))
    }

    /// A scope out of a store.
    pub fn from_stored(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }

    /// The bytes as stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What a record is filed under.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Identity {
    /// Whose key.
    pub scope: Scope,
    /// Which key.
    pub key: Key,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(values: &[&[u8]]) -> Result<String, KeyError> {
        Key::parse(values.iter().copied()).map(|key| key.as_str().to_owned())
    }

    #[test]
    fn the_quoted_form_is_the_bare_form() {
        assert_eq!(parse(&[b"abc"]), Ok("abc".into()));
        assert_eq!(parse(&[b" \"abc\"\t"]), Ok("abc".into()));
    }

    #[test]
    fn every_malformed_header_is_refused() {
        assert_eq!(parse(&[]), Err(KeyError::Missing));
        assert_eq!(parse(&[b"k", b"k"]), Err(KeyError::Repeated));
        for blank in [&b""[..], b"   ", b"\"\""] {
            assert_eq!(parse(&[blank]), Err(KeyError::Empty));
        }
        for bad in [
            &b"\"abc"[..],
            b"abc\"",
            b"\"",
            b"\"abc\";v=1",
            b"a,b",
            b"\"a\", \"b\"",
            b"a b",
            b"\"a b\"",
            b"a\\b",
            b"caf\xc3\xa9",
            b"a\x7fb",
            b"\"a\\\"b\"",
            b"a;b",
        ] {
            assert_eq!(parse(&[bad]), Err(KeyError::Byte), "{bad:?}");
        }
    }

    #[test]
    fn length_counts_bytes_of_the_bare_key_and_nothing_is_cut() {
        let longest = vec![b'k'; KEY_BYTES_MAX];
        assert_eq!(parse(&[&longest]).map(|key| key.len()), Ok(255));
        let quoted = [b"\"", longest.as_slice(), b"\""].concat();
        assert_eq!(parse(&[&quoted]).map(|key| key.len()), Ok(255));
        assert_eq!(parse(&[&[b'k'; 256]]), Err(KeyError::TooLong));
    }

    #[test]
    fn a_log_shows_the_beginning_of_a_keys_hash() {
        // SHA-256 of "abc" begins with these digits (FIPS 180-4).
        assert_eq!(Key::from_bare(b"abc").unwrap().log_hash(), "ba7816bf");
    }

    #[test]
    fn scopes_of_two_kinds_differ_in_length_and_are_read_back() {
        let (account, digest) = (Scope::account([7; 16]), Scope::digest(b"ada@example.com"));
        assert_eq!((account.as_bytes(), digest.as_bytes().len()), (&[7; 16][..], 32));
        assert_ne!(Scope::digest(b"ada@example.com"), Scope::digest(b"eve@example.com"));
        for scope in [account, digest] {
            assert_eq!(Scope::from_stored(scope.as_bytes()), scope);
        }
    }

    #[test]
    fn debug_output_shows_a_keys_hash_and_not_the_key() {
        let key = Key::from_bare(b"abc").unwrap();
        assert_eq!(format!("{key:?}"), "Key(#ba7816bf)");
    }
}
