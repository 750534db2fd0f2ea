//! What was asked, in 32 bytes, and marks that can later say what differs.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::canonical::Canonical;
use crate::key::Identity;

/// Changes whenever the layout below changes, so that two layouts never agree by accident.
const LAYOUT: u8 = 1;
/// Above this many leaves only "body" is marked: 64 KiB of JSON can hold 30 000.
const MARKED_LEAVES_MAX: usize = 256;

/// SHA-256 over the version byte and the length-prefixed parts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// The parts of a request that count. Other headers never do.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// `POST`, …
    pub method: &'a str,
    /// The concrete path, not the route's template.
    pub path: &'a str,
    /// The query without `?`, empty where there is none.
    pub query: &'a str,
    /// The media type without parameters, in lower case; `None` where there is no body.
    pub content_type: Option<&'a str>,
    /// What was sent.
    pub body: Body<'a>,
}

/// A request's body.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// No body.
    Empty,
    /// JSON, canonical.
    Json(&'a Canonical),
    /// Anything else, byte for byte.
    Bytes(&'a [u8]),
}

/// One request's right to an effect: whose key, and for what.
#[derive(Debug, Clone)]
pub struct Claim {
    /// What the record is filed under.
    pub identity: Identity,
    /// What was asked.
    pub fingerprint: Fingerprint,
    /// Marks that name the differences of a reuse.
    pub marks: Marks,
}

/// Makes fingerprints and marks under one server secret.
#[derive(Clone)]
pub struct Fingerprinter {
    keyed: Hmac<Sha256>,
}

impl Fingerprinter {
    /// # Panics
    /// Never: HMAC takes keys of any length.
    pub fn new(secret: &[u8]) -> Self {
        Self { keyed: Hmac::new_from_slice(secret).expect("HMAC takes keys of any length") }
    }

    /// Describes a request. Top-level members named in `secrets` enter as an HMAC,
    /// so that no plain digest of a password is ever stored.
    pub fn claim(&self, identity: Identity, parts: Parts<'_>, secrets: &[&str]) -> Claim {
        let veiled = match parts.body {
            Body::Json(document) => {
                document.veiled(secrets, |secret| hex::encode(self.mac(&[secret.as_bytes()])))
            }
            _ => None,
        };
        let body = veiled.as_ref().map_or(parts.body, Body::Json);
        let parts = Parts { body, ..parts };
        let marks = self.marks(&identity, &parts);
        Claim { fingerprint: fingerprint(&parts), identity, marks }
    }

    fn marks(&self, identity: &Identity, parts: &Parts<'_>) -> Marks {
        let mut marks = Vec::with_capacity(128);
        for (name, value) in [
            ("method", Some(parts.method.as_bytes())),
            ("path", Some(parts.path.as_bytes())),
            ("query", Some(parts.query.as_bytes())),
            ("content_type", parts.content_type.map(str::as_bytes)),
            ("body", parts.body.bytes()),
        ] {
            if let Some(value) = value {
                push(&mut marks, name, self.mark(identity, name, value));
            }
        }
        if let Body::Json(document) = parts.body {
            let (whole, mut leaves) = (marks.len(), 0);
            document.each_leaf(|pointer, value| {
                push(&mut marks, pointer, self.mark(identity, pointer, value));
                leaves += 1;
            });
            if leaves > MARKED_LEAVES_MAX {
                marks.truncate(whole);
            }
        }
        Marks(marks.into())
    }

    /// Keyed by identity as well: equal values of two customers have different marks.
    fn mark(&self, identity: &Identity, name: &str, value: &[u8]) -> [u8; 4] {
        let scope = identity.scope.as_bytes();
        let key = identity.key.as_str().as_bytes();
        let mac = self.mac(&[scope, key, name.as_bytes(), value]);
        [mac[0], mac[1], mac[2], mac[3]]
    }

    fn mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.keyed.clone();
        for part in parts {
            mac.update(&length(part));
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

impl Body<'_> {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Empty => None,
            Self::Json(document) => Some(document.as_bytes()),
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

fn fingerprint(parts: &Parts<'_>) -> Fingerprint {
    let mut hash = Sha256::new();
    hash.update([LAYOUT]);
    for part in [parts.method, parts.path, parts.query] {
        hash.update(length(part.as_bytes()));
        hash.update(part);
    }
    // A count in front of the optional parts: no body differs from an empty one.
    for part in [parts.content_type.map(str::as_bytes), parts.body.bytes()] {
        hash.update([u8::from(part.is_some())]);
        let part = part.unwrap_or_default();
        hash.update(length(part));
        hash.update(part);
    }
    Fingerprint(hash.finalize().into())
}

fn length(part: &[u8]) -> [u8; 8] {
    (part.len() as u64).to_be_bytes()
}

/// Four bytes of HMAC for each part and each JSON leaf of a request; never values. In the one form
/// that is stored: length of the name (two bytes, big-endian), name, mark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks(Bytes);

/// What tells two requests apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// JSON pointers that only one has, or that have other values.
    pub pointers: Vec<String>,
    /// Of `path`, `query`, `method`, `content_type`, `body`.
    pub differs: Vec<String>,
}

impl Marks {
    /// Compares the marks of two requests under one identity.
    pub fn differences(&self, other: &Self) -> Differences {
        let mut found = Differences::default();
        let mut names: Vec<&str> = self.unlike(other).chain(other.unlike(self)).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let list = match is_pointer(name) {
                true => &mut found.pointers,
                false => &mut found.differs,
            };
            list.push(name.to_owned());
        }
        found
    }

    fn unlike<'a>(&'a self, other: &Self) -> impl Iterator<Item = &'a str> {
        let known: Vec<Mark<'_>> = other.iter().collect();
        self.iter().filter(move |mark| !known.contains(mark)).map(|(name, _)| name)
    }

    fn iter(&self) -> impl Iterator<Item = Mark<'_>> {
        let mut left = &self.0[..];
        std::iter::from_fn(move || {
            let (mark, rest) = split(left)?;
            left = rest;
            Some(mark)
        })
    }

    /// As stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The reverse of [`Marks::as_bytes`]. `None` for bytes that are no marks.
    pub fn from_stored(bytes: impl Into<Bytes>) -> Option<Self> {
        let bytes = bytes.into();
        let mut left = &bytes[..];
        while !left.is_empty() {
            left = split(left)?.1;
        }
        Some(Self(bytes))
    }
}

type Mark<'a> = (&'a str, [u8; 4]);

fn push(marks: &mut Vec<u8>, name: &str, mark: [u8; 4]) {
    // A longer name than this cannot occur in 64 KiB of body; skip rather than cut.
    let Ok(length) = u16::try_from(name.len()) else { return };
    marks.extend(length.to_be_bytes());
    marks.extend(name.as_bytes());
    marks.extend(mark);
}

/// The first mark, and what comes after it.
fn split(bytes: &[u8]) -> Option<(Mark<'_>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (name, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    let (mark, rest) = rest.split_first_chunk::<4>()?;
    Some(((std::str::from_utf8(name).ok()?, *mark), rest))
}

/// Parts are words; pointers are empty (the whole document) or begin with a slash.
fn is_pointer(name: &str) -> bool {
    name.is_empty() || name.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, Scope};

    fn identity() -> Identity {
        Identity { scope: Scope::account([7; 16]), key: Key::from_bare(b"k").unwrap() }
    }

    fn claim(path: &str, body: &str) -> Claim {
        let document = Canonical::parse(body.as_bytes()).unwrap();
        let parts = Parts {
            method: "POST",
            path,
            query: "",
            content_type: Some("application/json"),
            body: Body::Json(&document),
        };
        Fingerprinter::new(b"secret").claim(identity(), parts, &["password"])
    }

    #[test]
    fn bytes_cannot_move_between_parts() {
        let print = |path, query, body: &[u8]| {
            fingerprint(&Parts {
                method: "POST",
                path,
                query,
                content_type: Some("text/plain"),
                body: Body::Bytes(body),
            })
        };
        assert_ne!(print("/ab", "c", b""), print("/a", "bc", b""));
        assert_ne!(print("/a", "b", b"c"), print("/a", "bc", b""));
        let empty =
            Parts { method: "POST", path: "/", query: "", content_type: None, body: Body::Empty };
        assert_ne!(fingerprint(&empty), fingerprint(&Parts { body: Body::Bytes(b""), ..empty }));
    }

    #[test]
    fn a_difference_is_named_by_its_pointer() {
        let one = claim("/v1/orders", r#"{"lines":[{"sku":"A","quantity":1}],"note":"x"}"#);
        let two = claim("/v1/orders", r#"{"lines":[{"sku":"A","quantity":5}]}"#);
        let differences = one.marks.differences(&two.marks);
        assert_eq!(differences.pointers, ["/lines/0/quantity", "/note"]);
        assert_eq!(differences.differs, ["body"]);
        let elsewhere = claim("/v1/x", r#"{"lines":[{"sku":"A","quantity":1}],"note":"x"}"#);
        assert_eq!(one.marks.differences(&elsewhere.marks).differs, ["path"]);
    }

    #[test]
    fn a_password_counts_but_is_not_in_the_hash_as_such() {
        let one = claim("/v1/accounts", r#"{"password":"correct horse"}"#);
        let two = claim("/v1/accounts", r#"{"password":"battery staple"}"#);
        assert_ne!(one.fingerprint, two.fingerprint);
        let plain = Canonical::parse(br#"{"password":"correct horse"}"#).unwrap();
        let unveiled = fingerprint(&Parts {
            method: "POST",
            path: "/v1/accounts",
            query: "",
            content_type: Some("application/json"),
            body: Body::Json(&plain),
        });
        assert_ne!(one.fingerprint, unveiled);
    }

    #[test]
    fn marks_survive_storage() {
        let marks = claim("/v1/orders", r#"{"a":{"b":[1,2]}}"#).marks;
        assert_eq!(Marks::from_stored(marks.as_bytes().to_vec()), Some(marks.clone()));
        assert_eq!(Marks::from_stored(marks.as_bytes()[1..].to_vec()), None);
    }

    #[test]
    fn up_to_256_leaves_are_marked_each() {
        let pointers = |leaves: usize| {
            let list = |last: usize| {
                let numbers: Vec<String> = (1..leaves).map(|n| n.to_string()).collect();
                format!("[{}]", [numbers, vec![last.to_string()]].concat().join(","))
            };
            let (one, other) = (claim("/v1/orders", &list(0)), claim("/v1/orders", &list(9999)));
            let differences = one.marks.differences(&other.marks);
            assert_eq!(differences.differs, ["body"]);
            differences.pointers
        };
        assert_eq!(pointers(256), ["/255"]);
        assert!(pointers(257).is_empty(), "only the body as a whole is marked");
    }

    #[test]
    fn a_body_of_thousands_of_leaves_has_bounded_marks() {
        let list: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
        let marks = claim("/v1/orders", &format!("[{}]", list.join(","))).marks;
        assert!(marks.as_bytes().len() < 200);
    }
}
