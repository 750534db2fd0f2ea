//! Reading a checked document into a type, by the shapes that an API describes and no others.
//!
//! From JSON text, serde also takes a list for a structure (its members in order) and an object
//! with one null member for a word. Nobody means that; a client that sends it is mistaken.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::{NUMBER_MAX, Node};

/// Where a document has another shape than the type. It may quote what was sent.
pub type ReadError = de::value::Error;

impl Node {
    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(value) => Unexpected::Bool(*value),
            Self::Number(value) => Unexpected::Float(*value),
            Self::Text(value) => Unexpected::Str(value),
            Self::List(_) => Unexpected::Seq,
            Self::Object(_) => Unexpected::Map,
        }
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(*value),
            Node::Number(value) => number(*value, visitor),
            Node::Text(value) => visitor.visit_borrowed_str(value),
            Node::List(items) => {
                let mut items = SeqDeserializer::new(items.iter());
                let value = visitor.visit_seq(&mut items)?;
                items.end().map(|()| value)
            }
            Node::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.as_str(), value));
                let mut members = MapDeserializer::new(members);
                let value = visitor.visit_map(&mut members)?;
                members.end().map(|()| value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self {
            Node::Null => visitor.visit_none(),
            value => visitor.visit_some(value),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self {
            Node::Object(_) => self.deserialize_any(visitor),
            other => Err(ReadError::invalid_type(other.unexpected(), &"an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self {
            Node::Text(word) => visitor.visit_enum(word.as_str().into_deserializer()),
            other => Err(ReadError::invalid_type(other.unexpected(), &"a word")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, ReadError> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// `1.0` is 1: whole numbers are read as integers, which they are exactly in this range.
#[expect(clippy::cast_possible_truncation, reason = "a whole number of at most 2^53")]
fn number<'de, V: Visitor<'de>>(value: f64, visitor: V) -> Result<V::Value, ReadError> {
    if value.fract() != 0.0 || value.abs() > NUMBER_MAX {
        return visitor.visit_f64(value);
    }
    match u64::try_from(value as i64) {
        Ok(whole) => visitor.visit_u64(whole),
        Err(_) => visitor.visit_i64(value as i64),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use crate::canonical::Canonical;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        sku: String,
        quantity: i64,
        kind: Option<Kind>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Gift,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(transparent)]
    struct Lines(Vec<Line>);

    fn read<'de, T: Deserialize<'de>>(document: &'de Canonical) -> Result<T, String> {
        document.read().map_err(|error| error.to_string())
    }

    fn parsed(document: &str) -> Canonical {
        Canonical::parse(document.as_bytes()).unwrap()
    }

    #[test]
    fn an_object_is_read_by_its_members() {
        let document = parsed(
            r#"[{"quantity":-2.0,"sku":"pen","kind":"gift"},{"sku":"","quantity":9007199254740991,"kind":null}]"#,
        );
        let lines = Lines(vec![
            Line { sku: "pen".into(), quantity: -2, kind: Some(Kind::Gift) },
            Line { sku: String::new(), quantity: 9_007_199_254_740_991, kind: None },
        ]);
        assert_eq!(read::<Lines>(&document), Ok(lines));
        assert_eq!(read::<f64>(&parsed("1.5")), Ok(1.5));
        assert_eq!(read::<f64>(&parsed("-1")), Ok(-1.0));
        let object = parsed(r#"{"a":[1,-1,0.5,true,null,{}]}"#);
        let value = read::<serde_json::Value>(&object).unwrap();
        assert_eq!(value.to_string().as_bytes(), object.as_bytes());
    }

    #[test]
    fn a_list_is_no_object_and_an_object_no_word() {
        for (document, expected) in [
            (r#"[["pen",1,null]]"#, "expected an object"),
            (r#"["pen"]"#, "expected an object"),
            ("[null]", "expected an object"),
            (r#"[{"sku":"pen","quantity":1,"kind":{"gift":null}}]"#, "expected a word"),
            (r#"[{"sku":"pen","quantity":1,"kind":["gift"]}]"#, "expected a word"),
            (r#"[{"sku":"pen","quantity":1,"kind":"toy"}]"#, "unknown variant"),
            (r#"[{"sku":"pen","quantity":1.5}]"#, "floating point `1.5`"),
            (r#"[{"sku":"pen","quantity":"1"}]"#, "expected i64"),
            (r#"[{"sku":1,"quantity":1}]"#, "expected a string"),
            (r#"[{"sku":"pen"}]"#, "missing field `quantity`"),
            (r#"[{"sku":"pen","quantity":1,"price":1}]"#, "unknown field `price`"),
            (r#"{"sku":"pen","quantity":1}"#, "expected a sequence"),
        ] {
            let refused = read::<Lines>(&parsed(document)).unwrap_err();
            assert!(refused.contains(expected), "{document}: {refused}");
        }
    }
}
