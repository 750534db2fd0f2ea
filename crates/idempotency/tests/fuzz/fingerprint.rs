//! Two requests have one fingerprint only if they are one request.

use idempotency::canonical::Canonical;
use idempotency::fingerprint::Body;
use idempotency::{Claim, Fingerprint, Fingerprinter, Identity, Key, Marks, Parts, Scope};
use proptest::prelude::*;
use proptest::sample::Index;
use sha2::{Digest, Sha256};

fn identity(key: &str) -> Identity {
    Identity { scope: Scope::account([7; 16]), key: Key::from_bare(key.as_bytes()).unwrap() }
}

fn claim(parts: &[String; 5]) -> Claim {
    let [method, path, query, content_type, body] = parts;
    let parts = Parts {
        method,
        path,
        query,
        content_type: (!content_type.is_empty()).then_some(content_type),
        body: Body::Bytes(body.as_bytes()),
    };
    Fingerprinter::new(b"secret").claim(identity("K"), parts, &[])
}

fn fingerprint(parts: &[String; 5]) -> Fingerprint {
    claim(parts).fingerprint
}

/// One text cut into five parts at these places.
fn cut(text: &str, at: &[Index; 4]) -> [String; 5] {
    let mut places = at.map(|place| place.index(text.len() + 1));
    places.sort_unstable();
    let bounds = [0, places[0], places[1], places[2], places[3], text.len()];
    std::array::from_fn(|part| text[bounds[part]..bounds[part + 1]].to_owned())
}

proptest! {
    #[test]
    fn bytes_that_move_from_one_part_to_the_next_make_another_request(
        text in "[a-z/?=&\u{0}-\u{3}]{0,24}", one in any::<[Index; 4]>(), other in any::<[Index; 4]>(),
    ) {
        let (one, other) = (cut(&text, &one), cut(&text, &other));
        prop_assert_eq!(fingerprint(&one) == fingerprint(&other), one == other, "{:?} {:?}", one, other);
        let differences = claim(&one).marks.differences(&claim(&other).marks);
        prop_assert_eq!(differences.differs.is_empty(), one == other);
    }

    #[test]
    fn lengths_in_the_content_pass_for_no_framing(
        parts in any::<[Vec<u8>; 2]>(), padding in 0..3_usize,
    ) {
        // A body that spells out how the parts are framed, followed by another part.
        let texts = parts.map(|part| part.iter().map(|byte| char::from(byte % 128)).collect::<String>());
        let framed: String = std::iter::repeat_n('\0', 7 + padding)
            .chain(std::iter::once(char::from(texts[1].len() as u8 % 128)))
            .chain(texts[1].chars())
            .collect();
        let whole = [texts[0].clone(), texts[1].clone(), String::new(), String::new(), String::new()];
        let forged = [format!("{}{framed}", texts[0]), String::new(), String::new(), String::new(), String::new()];
        prop_assert_eq!(fingerprint(&whole) == fingerprint(&forged), whole == forged);
    }

    #[test]
    fn no_body_is_not_an_empty_body(path in "[a-z]{0,5}") {
        let parts = |body| Parts { method: "POST", path: &path, query: "", content_type: None, body };
        let maker = Fingerprinter::new(b"secret");
        let none = maker.claim(identity("K"), parts(Body::Empty), &[]);
        let empty = maker.claim(identity("K"), parts(Body::Bytes(b"")), &[]);
        prop_assert_ne!(none.fingerprint, empty.fingerprint);
        prop_assert_eq!(none.marks.differences(&empty.marks).differs, ["body"]);
    }

    #[test]
    fn a_password_counts_but_is_not_to_be_found(one in "[a-z]{10,20}", other in "[a-z]{10,20}") {
        let document = |password: &str| {
            Canonical::parse(format!(r#"{{"email":"a@b.c","password":"{password}"}}"#).as_bytes()).unwrap()
        };
        let claim = |document: &Canonical, secret: &[u8]| {
            let parts = Parts {
                method: "POST", path: "/v1/accounts", query: "",
                content_type: Some("application/json"), body: Body::Json(document),
            };
            Fingerprinter::new(secret).claim(identity("K"), parts, &["password"])
        };
        let (first, second) = (document(&one), document(&other));
        let (mine, theirs) = (claim(&first, b"secret"), claim(&second, b"secret"));
        prop_assert_eq!(mine.fingerprint == theirs.fingerprint, one == other);
        prop_assert_ne!(mine.fingerprint, claim(&first, b"another").fingerprint);
        let found = mine.marks.as_bytes().windows(one.len()).any(|bytes| bytes == one.as_bytes());
        prop_assert!(!found);
    }

    #[test]
    fn marks_are_read_as_they_were_written_and_nothing_else_is(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Some(marks) = Marks::from_stored(bytes.clone()) {
            prop_assert_eq!(marks.as_bytes().to_vec(), bytes);
        }
    }

    #[test]
    fn marks_survive_storage_and_loss_is_noticed(parts in any::<[String; 5]>(), at in any::<Index>()) {
        let marks = claim(&parts).marks;
        let bytes = marks.as_bytes().to_vec();
        prop_assert_eq!(Marks::from_stored(bytes.clone()), Some(marks.clone()));
        let cut = Marks::from_stored(bytes[..at.index(bytes.len())].to_vec());
        prop_assert_ne!(cut, Some(marks));
    }
}

/// Records outlive a release: what the last one fingerprinted must be found by the next. Another
/// layout needs another version byte, and then records of both live side by side for a day.
#[test]
fn a_request_has_the_same_fingerprint_in_every_release() {
    let layout = [
        &b"\x01"[..],
        b"\0\0\0\0\0\0\0\x04POST",
        b"\0\0\0\0\0\0\0\x0a/v1/orders",
        b"\0\0\0\0\0\0\0\x05dry=1",
        b"\x01\0\0\0\0\0\0\0\x10application/json",
        b"\x01\0\0\0\0\0\0\0\x07{\"a\":1}",
    ];
    let document = Canonical::parse(br#"{ "a": 1.0 }"#).unwrap();
    let parts = Parts {
        method: "POST",
        path: "/v1/orders",
        query: "dry=1",
        content_type: Some("application/json"),
        body: Body::Json(&document),
    };
    let claim = Fingerprinter::new(b"secret").claim(identity("K"), parts, &[]);
    assert_eq!(claim.fingerprint, Fingerprint(Sha256::digest(layout.concat()).into()));
}
