//! JSON in the one form that is hashed and parsed: RFC 8785, checked before.
//!
//! Canonicalisers follow RFC 8785 to the letter, so they let large integers
//! collapse and duplicate members vanish. Two different requests would then
//! have one fingerprint. This module refuses such documents first.

mod read;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use thiserror::Error;

pub use read::ReadError;

/// The largest integer a double holds without a gap, 2^53 − 1 (RFC 7493, section 2.2).
pub const NUMBER_MAX: f64 = 9_007_199_254_740_991.0;

/// Why a document has no canonical form here. The text is safe to show.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CanonicalError(String);

/// A JSON document, checked: no duplicate members, no NUL, no number out of range.
#[derive(Debug, Clone, PartialEq)]
pub struct Canonical {
    root: Node,
    bytes: Vec<u8>,
}

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Object(BTreeMap<String, Node>),
}

impl Canonical {
    /// Reads a document and brings it into its canonical form.
    ///
    /// # Errors
    /// [`CanonicalError`] for anything that is not JSON, lone surrogates,
    /// duplicate members, NUL characters, and numbers outside ±(2^53 − 1).
    pub fn parse(document: &[u8]) -> Result<Self, CanonicalError> {
        let root: Node = serde_json::from_slice(document).map_err(|error| refused(&error))?;
        Ok(Self::of(root))
    }

    /// The canonical bytes: what is hashed, and what a handler parses.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The document for serde, which reads it more strictly than JSON text: an object is an
    /// object, and a word is a text.
    pub fn reader(&self) -> impl Deserializer<'_, Error = ReadError> {
        &self.root
    }

    /// The document as a type.
    ///
    /// # Errors
    /// [`ReadError`] where it does not have the type's shape.
    pub fn read<'de, T: Deserialize<'de>>(&'de self) -> Result<T, ReadError> {
        T::deserialize(&self.root)
    }

    /// The same document with each named top-level text member replaced by `veil(text)`; `None`
    /// if it has none of them.
    pub fn veiled(&self, members: &[&str], veil: impl Fn(&str) -> String) -> Option<Self> {
        let Node::Object(object) = &self.root else { return None };
        let is_secret = |member: &&&str| matches!(object.get(**member), Some(Node::Text(_)));
        let mut secrets = members.iter().filter(is_secret).peekable();
        secrets.peek()?;
        let mut veiled = object.clone();
        for member in secrets {
            if let Some(Node::Text(text)) = veiled.get_mut(*member) {
                *text = veil(text);
            }
        }
        Some(Self::of(Node::Object(veiled)))
    }

    /// Calls `visit` with the JSON pointer (RFC 6901) and canonical bytes of every leaf.
    pub fn each_leaf(&self, mut visit: impl FnMut(&str, &[u8])) {
        walk(&self.root, &mut String::new(), &mut visit);
    }

    fn of(root: Node) -> Self {
        let bytes = canonical_bytes(&root);
        Self { root, bytes }
    }
}

fn refused(error: &serde_json::Error) -> CanonicalError {
    CanonicalError(error.to_string())
}

fn canonical_bytes(node: &Node) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(node).expect("a checked document has a canonical form")
}

fn walk(node: &Node, pointer: &mut String, visit: &mut impl FnMut(&str, &[u8])) {
    match node {
        Node::Object(members) if !members.is_empty() => {
            for (name, child) in members {
                step(pointer, &escaped(name), child, visit);
            }
        }
        Node::List(items) if !items.is_empty() => {
            for (index, child) in items.iter().enumerate() {
                step(pointer, &index.to_string(), child, visit);
            }
        }
        leaf => visit(pointer, &canonical_bytes(leaf)),
    }
}

/// RFC 6901, section 3.
fn escaped(name: &str) -> Cow<'_, str> {
    match name.contains(['~', '/']) {
        true => name.replace('~', "~0").replace('/', "~1").into(),
        false => name.into(),
    }
}

fn step(pointer: &mut String, token: &str, child: &Node, visit: &mut impl FnMut(&str, &[u8])) {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(token);
    walk(child, pointer, visit);
    pointer.truncate(length);
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(items) => items.serialize(serializer),
            Self::Object(members) => members.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "a magnitude that loses precision is refused")]
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
        self.visit_f64(value as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "a magnitude that loses precision is refused")]
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        if value.abs() > NUMBER_MAX {
            return Err(E::custom("a number is outside the range of exact integers, ±(2^53 − 1)"));
        }
        // Minus zero is zero in RFC 8785 as well; keep one value for both.
        Ok(Node::Number(if value == 0.0 { 0.0 } else { value }))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Node, E> {
        without_nul(value).map(|text| Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut object = BTreeMap::new();
        while let Some(name) = members.next_key::<String>()? {
            without_nul::<A::Error>(&name)?;
            let value = members.next_value()?;
            if object.insert(name, value).is_some() {
                return Err(de::Error::custom("an object has the same member twice"));
            }
        }
        Ok(Node::Object(object))
    }
}

/// Legal JSON, but no text column of Postgres can hold it.
fn without_nul<E: de::Error>(text: &str) -> Result<&str, E> {
    if text.contains('\0') {
        return Err(E::custom("a text holds the character U+0000"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(document: &str) -> Result<String, CanonicalError> {
        Canonical::parse(document.as_bytes())
            .map(|canonical| String::from_utf8(canonical.as_bytes().to_vec()).unwrap())
    }

    #[test]
    fn spelling_does_not_matter() {
        for same in [
            r#"{"b":1,"a":["x",true,null]}"#,
            "{ \"a\" : [\"\\u0078\", true, null],\n \"b\" : 1.0 }",
            r#"{"a":["x",true,null],"b":1e0}"#,
        ] {
            assert_eq!(canonical(same).unwrap(), r#"{"a":["x",true,null],"b":1}"#);
        }
        assert_eq!(canonical("-0.0").unwrap(), "0");
    }

    #[test]
    fn members_sort_by_utf_16_code_units() {
        let document = "{\"\u{fb33}\":1,\"\u{1f600}\":2}";
        assert_eq!(canonical(document).unwrap(), "{\"\u{1f600}\":2,\"\u{fb33}\":1}");
    }

    #[test]
    fn ambiguous_documents_are_refused() {
        for bad in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":{"b":1,"\u0062":2}}"#,
            "9007199254740992",
            "-9007199254740992",
            "1e400",
            "1e16",
            r#""\ud800""#,
            r#""\u0000""#,
            r#"{"\u0000":1}"#,
            "{\"a\":1}x",
            "",
            "{",
            "\"\u{0}\"",
        ] {
            assert!(canonical(bad).is_err(), "{bad}");
        }
        assert_eq!(canonical("9007199254740991").unwrap(), "9007199254740991");
    }

    #[test]
    fn every_leaf_has_its_pointer() {
        let document = Canonical::parse(br#"{"a/b":[1,{"c~":[]}],"d":{}}"#).unwrap();
        let mut leaves = Vec::new();
        document.each_leaf(|pointer, bytes| {
            leaves.push(format!("{pointer}={}", String::from_utf8_lossy(bytes)));
        });
        assert_eq!(leaves, ["/a~1b/0=1", "/a~1b/1/c~0=[]", "/d={}"]);
    }

    #[test]
    fn a_veiled_member_keeps_the_rest() {
        let document = Canonical::parse(br#"{"password":"hunter22","email":"a@b"}"#).unwrap();
        let veil = |secret: &str| format!("<{}>", secret.len());
        let veiled = document.veiled(&["password", "pin"], veil).unwrap();
        assert_eq!(veiled.as_bytes(), br#"{"email":"a@b","password":"<8>"}"#);
        assert_eq!(document.veiled(&["pin"], veil), None);
    }
}
