//! Standard Webhooks signatures, for the events we send and the events we receive.
//!
//! The kept crate for this reads the clock itself, knows one secret only and overflows on
//! extreme timestamps, so the few lines are here: HMAC-SHA256 over `id.timestamp.body`.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

pub const ID: &str = "webhook-id";
pub const TIMESTAMP: &str = "webhook-timestamp";
pub const SIGNATURE: &str = "webhook-signature";

/// How far the sender's clock may be from ours, either way.
pub const TOLERANCE_SECONDS: u64 = 5 * 60;

/// A shared signing secret, written `whsec_<base64>`. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// The three headers as they came; the signature covers their exact text.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    pub id: &'a str,
    pub timestamp: &'a str,
    pub signature: &'a str,
}

/// Why a signature does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    #[error("the webhook id is missing, empty, or holds a full stop")]
    NoId,
    #[error("the webhook timestamp is not a whole number of seconds")]
    BadTimestamp,
    #[error("the webhook timestamp is more than five minutes away from now")]
    OutsideTolerance,
    #[error("no signature matches an active secret")]
    NoMatch,
}

/// A secret that cannot be used, without the secret in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret is written whsec_ followed by base64")]
pub struct BadSecret;

/// The value of the `webhook-signature` header; `timestamp` in Unix seconds.
pub fn sign(secret: &Secret, id: &str, timestamp: i64, body: &[u8]) -> String {
    let digest = mac(secret, id, &timestamp.to_string(), body).finalize();
    format!("v1,{}", STANDARD.encode(digest.into_bytes()))
}

/// Checks the raw body before anything parses it. `now` in Unix seconds.
pub fn verify(
    secrets: &[Secret],
    signed: Signed<'_>,
    body: &[u8],
    now: i64,
) -> Result<(), Untrusted> {
    // What is signed is joined by full stops: with one in the id, its end could pass for a time.
    if signed.id.is_empty() || signed.id.contains('.') {
        return Err(Untrusted::NoId);
    }
    let digits = signed.timestamp.bytes().all(|byte| byte.is_ascii_digit());
    let timestamp = signed.timestamp.parse::<i64>().ok().filter(|_| digits);
    let timestamp = timestamp.ok_or(Untrusted::BadTimestamp)?;
    if timestamp.abs_diff(now) > TOLERANCE_SECONDS {
        return Err(Untrusted::OutsideTolerance);
    }
    let mut candidates = signed.signature.split(' ').filter_map(decode);
    let trusted =
        candidates.any(|tag| secrets.iter().any(|secret| matches(secret, signed, body, &tag)));
    if trusted { Ok(()) } else { Err(Untrusted::NoMatch) }
}

/// Other versions than `v1` are for other verifiers.
fn decode(entry: &str) -> Option<Vec<u8>> {
    STANDARD.decode(entry.strip_prefix("v1,")?).ok()
}

/// Constant time in the tag.
fn matches(secret: &Secret, signed: Signed<'_>, body: &[u8], tag: &[u8]) -> bool {
    mac(secret, signed.id, signed.timestamp, body).verify_slice(tag).is_ok()
}

fn mac(secret: &Secret, id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::new_from_slice(&secret.0).expect("HMAC takes a key of any length");
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    mac
}

impl Secret {
    /// `bytes` should be 24 to 64 random ones.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The active secrets of one setting, separated by commas; the first one signs.
    pub fn parse_list(list: &str) -> Result<Vec<Self>, BadSecret> {
        list.split(',').map(|secret| secret.trim().parse()).collect()
    }

    /// The form in which it is handed to the other side.
    pub fn reveal(&self) -> String {
        format!("whsec_{}", STANDARD.encode(&self.0))
    }
}

impl FromStr for Secret {
    type Err = BadSecret;

    /// The prefix may be left out, as in the field's reference libraries.
    fn from_str(text: &str) -> Result<Self, BadSecret> {
        let encoded = text.strip_prefix("whsec_").unwrap_or(text);
        let bytes = STANDARD.decode(encoded).map_err(|_| BadSecret)?;
        if bytes.is_empty() { Err(BadSecret) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;
    const BODY: &[u8] = br#"{"type" : "charge.succeeded", "n": 1.0}"#;

    fn secret(byte: u8) -> Secret {
        Secret::new(vec![byte; 24])
    }

    fn verify_at(timestamp: &str, now: i64) -> Result<(), Untrusted> {
        let tag = mac(&secret(1), "evt_1", timestamp, BODY).finalize().into_bytes();
        let signature = format!("v1,{}", STANDARD.encode(tag));
        let signed = Signed { id: "evt_1", timestamp, signature: &signature };
        verify(&[secret(1)], signed, BODY, now)
    }

    /// The example of the specification's own test suite.
    #[test]
    fn the_published_example_gives_the_published_signature() {
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().expect("a secret");
        let body = br#"{"test": 2432232314}"#;
        let signature = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn either_of_two_active_secrets_is_accepted_and_a_third_is_not() {
        let old_and_new = [secret(1), secret(2)];
        for (signer, expected) in [(1, Ok(())), (2, Ok(())), (3, Err(Untrusted::NoMatch))] {
            let signature = sign(&secret(signer), "evt_1", NOW, BODY);
            let signed = Signed { id: "evt_1", timestamp: "1700000000", signature: &signature };
            assert_eq!(verify(&old_and_new, signed, BODY, NOW), expected);
        }
    }

    #[test]
    fn one_match_in_a_list_of_signatures_is_enough() {
        let signature = format!("v1a,AAAA v1,!!! v1,AAAA {}", sign(&secret(1), "evt_1", NOW, BODY));
        let signed = Signed { id: "evt_1", timestamp: "1700000000", signature: &signature };
        assert_eq!(verify(&[secret(1)], signed, BODY, NOW), Ok(()));
    }

    #[test]
    fn a_changed_byte_or_another_id_does_not_match() {
        let signature = sign(&secret(1), "evt_1", NOW, BODY);
        let signed = Signed { id: "evt_1", timestamp: "1700000000", signature: &signature };
        let mut changed = BODY.to_vec();
        changed[2] ^= 1;
        assert_eq!(verify(&[secret(1)], signed, &changed, NOW), Err(Untrusted::NoMatch));
        let other = Signed { id: "evt_2", ..signed };
        assert_eq!(verify(&[secret(1)], other, BODY, NOW), Err(Untrusted::NoMatch));
        for id in ["", "evt.1", "evt_1.1700000000"] {
            let unnamed = Signed { id, ..signed };
            assert_eq!(verify(&[secret(1)], unnamed, BODY, NOW), Err(Untrusted::NoId));
        }
    }

    #[test]
    fn five_minutes_either_way_are_tolerated_and_not_a_second_more() {
        for (age, expected) in [
            (0, Ok(())),
            (300, Ok(())),
            (-300, Ok(())),
            (301, Err(Untrusted::OutsideTolerance)),
            (-301, Err(Untrusted::OutsideTolerance)),
        ] {
            assert_eq!(verify_at(&(NOW - age).to_string(), NOW), expected, "{age} s old");
        }
    }

    #[test]
    fn extreme_timestamps_are_refused_without_overflow() {
        for timestamp in ["0", "9223372036854775807"] {
            assert_eq!(verify_at(timestamp, NOW), Err(Untrusted::OutsideTolerance));
            assert_eq!(verify_at(timestamp, i64::MIN + 600), Err(Untrusted::OutsideTolerance));
        }
        for timestamp in [
            "",
            "abc",
            "1700000000.5",
            "9223372036854775808",
            "1e9",
            " 1700000000",
            "+1700000000",
            "-1",
        ] {
            assert_eq!(verify_at(timestamp, NOW), Err(Untrusted::BadTimestamp), "{timestamp:?}");
        }
    }

    #[test]
    fn a_secret_is_parsed_strictly_and_never_printed() {
        let list = format!("{}, {}", secret(1).reveal(), secret(2).reveal());
        assert_eq!(Secret::parse_list(&list), Ok(vec![secret(1), secret(2)]));
        for bad in ["", "whsec_", "whsec_%%", "not base64"] {
            assert_eq!(Secret::parse_list(bad), Err(BadSecret), "{bad:?}");
        }
        assert_eq!(format!("{:?}", secret(1)), "Secret(…)");
    }
}
