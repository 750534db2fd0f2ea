//! What a stranger can send to the edges of the API, by the thousand; `PROPTEST_CASES` says how many.

use api::money::MoneyBody;
use api::webhooks::signature::{Secret, Signed, sign, verify};
use domain::Money;
use idempotency::canonical::Canonical;
use proptest::prelude::*;
use proptest::sample::Index;

const NOW: i64 = 1_764_450_000;
const BODY: &[u8] = b"{}";

/// A message as it was signed, and cut into id, time and body at other places.
fn cut(message: &str, at: &[Index; 2]) -> Option<(String, String, String)> {
    let dots: Vec<usize> = message.match_indices('.').map(|(at, _)| at).collect();
    let (one, other) = (*at[0].get(&dots), *at[1].get(&dots));
    let (first, second) = (one.min(other), one.max(other));
    let time = message.get(first + 1..second)?;
    Some((message[..first].to_owned(), time.to_owned(), message[second + 1..].to_owned()))
}

fn body() -> impl Strategy<Value = String> {
    "[0-9.{}\"a-z:]{0,40}"
}

proptest! {
    #[test]
    fn a_signature_covers_every_byte(
        secret in any::<[u8; 24]>(), id in "[a-z0-9_]{1,12}", late in -300..=300_i64,
        body in body(), at in any::<Index>(), bit in 0..8_u8, cuts in any::<[Index; 2]>(),
    ) {
        let secret = Secret::new(secret.to_vec());
        let sent = NOW + late;
        let signature = sign(&secret, &id, sent, body.as_bytes());
        let time = sent.to_string();
        let signed = Signed { id: &id, timestamp: &time, signature: &signature };
        let secrets = [secret];
        prop_assert_eq!(verify(&secrets, signed, body.as_bytes(), NOW), Ok(()));
        let mut changed = body.clone().into_bytes();
        if !changed.is_empty() {
            let at = at.index(changed.len());
            changed[at] ^= 1 << bit;
            prop_assert!(verify(&secrets, signed, &changed, NOW).is_err());
        }
        // The same bytes, cut into other parts.
        let message = format!("{id}.{sent}.{body}");
        if let Some((other_id, other_time, rest)) = cut(&message, &cuts) {
            let moved = Signed { id: &other_id, timestamp: &other_time, signature: &signature };
            let same = (&other_id, &other_time) == (&id, &time);
            prop_assert_eq!(verify(&secrets, moved, rest.as_bytes(), NOW).is_ok(), same);
        }
    }

    #[test]
    fn nothing_in_the_headers_of_an_event_makes_the_server_panic(
        id in "\\PC{0,20}", time in "-?[0-9]{0,22}|\\PC{0,10}", signature in "(v1,|v1a,| |[A-Za-z0-9+/=]{0,44}|\\PC){0,6}",
    ) {
        let signed = Signed { id: &id, timestamp: &time, signature: &signature };
        let verified = verify(&[Secret::new(vec![1; 24])], signed, BODY, NOW);
        prop_assert!(verified.is_err());
    }

    #[test]
    fn an_amount_is_the_whole_number_that_was_written_or_refused(
        digits in any::<i64>(), power in -6..=6_i32, currency in "USD|EUR|JPY|KWD|usd|XXX|",
    ) {
        let written = format!("{digits}e{power}");
        let document = format!(r#"{{"amount":{written},"currency":"{currency}"}}"#);
        let value: f64 = written.parse().unwrap();
        let whole = value.fract() == 0.0 && value.abs() <= idempotency::canonical::NUMBER_MAX;
        let known = ["USD", "EUR", "JPY", "KWD"].contains(&currency.as_str());
        let read = Canonical::parse(document.as_bytes())
            .ok()
            .and_then(|document| document.read::<MoneyBody>().ok())
            .map(Money::from);
        prop_assert_eq!(read.is_some(), whole && known, "{}", document);
        if let Some(money) = read {
            prop_assert_eq!(money.amount.to_string(), format!("{value:.0}").replace("-0", "0"));
            prop_assert_eq!(money.currency.code(), currency);
        }
    }
}
