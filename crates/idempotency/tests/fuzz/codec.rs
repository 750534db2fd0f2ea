//! Replies as they are stored and cached: read back to the byte, and nothing else is read.

use idempotency::record::{Finished, Outcome};
use idempotency::reply::ReplyHeader;
use idempotency::sealed::Sealer;
use idempotency::{Fingerprint, Identity, Key, Marks, Reply, Scope};
use proptest::prelude::*;
use proptest::sample::Index;
use time::OffsetDateTime;

const HEADERS: [ReplyHeader; 4] = [
    ReplyHeader::ContentType,
    ReplyHeader::Location,
    ReplyHeader::ETag,
    ReplyHeader::ContentLanguage,
];

fn reply() -> impl Strategy<Value = Reply> {
    let headers = prop::collection::vec((0..HEADERS.len(), "\\PC{0,20}"), 0..5);
    (200..500_u16, headers, prop::collection::vec(any::<u8>(), 0..200), any::<bool>()).prop_map(
        |(status, headers, body, long)| {
            let reply = Reply::new(status, "application/json", body);
            let reply = headers
                .into_iter()
                .fold(reply, |reply, (which, value)| reply.with(HEADERS[which], value));
            match long {
                true => reply.with(ReplyHeader::Location, "x".repeat(65_535)),
                false => reply,
            }
        },
    )
}

fn identity() -> impl Strategy<Value = Identity> {
    ("[a-z]{1,9}", any::<[u8; 16]>(), any::<bool>()).prop_map(|(key, id, guest)| Identity {
        scope: if guest { Scope::digest(&id) } else { Scope::account(id) },
        key: Key::from_bare(key.as_bytes()).unwrap(),
    })
}

fn finished() -> impl Strategy<Value = Finished> {
    (any::<[u8; 32]>(), reply(), any::<bool>(), any::<i64>(), prop::option::of("/[a-z]{1,9}"))
        .prop_map(|(fingerprint, reply, completed, seconds, resource)| Finished {
            fingerprint: Fingerprint(fingerprint),
            marks: Marks::default(),
            outcome: if completed { Outcome::Completed } else { Outcome::Failed },
            reply,
            expires_at: OffsetDateTime::from_unix_timestamp(seconds % 100_000_000_000).unwrap(),
            resource,
        })
}

proptest! {
    #[test]
    fn a_reply_is_read_back_as_it_was(reply in reply()) {
        let headers = reply.encode_headers();
        let again = Reply::from_stored(reply.status(), &headers, reply.body().clone());
        prop_assert_eq!(again, Some(reply));
    }

    #[test]
    fn header_bytes_are_read_in_one_way_or_not_at_all(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Some(reply) = Reply::from_stored(200, &bytes, "") {
            prop_assert_eq!(reply.encode_headers(), bytes);
        }
    }

    #[test]
    fn header_bytes_that_are_cut_are_not_read(reply in reply(), at in any::<Index>()) {
        let headers = reply.encode_headers();
        let cut = &headers[..at.index(headers.len())];
        let read = Reply::from_stored(reply.status(), cut, reply.body().clone());
        prop_assert_ne!(read, Some(reply));
    }

    #[test]
    fn a_sealed_reply_opens_as_it_was_for_its_own_key(one in identity(), other in identity(), finished in finished()) {
        let sealer = Sealer::new(b"secret");
        let sealed = sealer.seal(&one, &finished);
        prop_assert_eq!(sealer.open(&one, sealed.clone()), Some(finished));
        prop_assert_eq!(sealer.open(&other, sealed.clone()).is_some(), one == other);
        prop_assert_eq!(Sealer::new(b"another").open(&one, sealed), None);
    }

    #[test]
    fn a_poisoned_value_is_a_miss(identity in identity(), finished in finished(), at in any::<Index>(), by in 1..=255_u8) {
        let sealer = Sealer::new(b"secret");
        let mut sealed = sealer.seal(&identity, &finished);
        let at = at.index(sealed.len());
        sealed[at] ^= by;
        prop_assert_eq!(sealer.open(&identity, sealed.clone()), None);
        prop_assert_eq!(sealer.open(&identity, sealed[..at].to_vec()), None);
        sealed[at] ^= by;
        sealed.push(by);
        prop_assert_eq!(sealer.open(&identity, sealed), None);
    }

    #[test]
    fn whatever_lies_in_the_cache_makes_nobody_panic(identity in identity(), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(Sealer::new(b"secret").open(&identity, bytes), None);
    }
}
