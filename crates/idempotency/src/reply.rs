//! The one reply a key has: status, allow-listed headers, body bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};

/// Headers that belong to a reply for ever. Everything else (cookies, dates,
/// request ids, rate limits, security headers) belongs to one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ReplyHeader {
    /// `Content-Type`
    ContentType = 1,
    /// `Location`
    Location = 2,
    /// `ETag`
    ETag = 3,
    /// `Content-Language`
    ContentLanguage = 4,
    /// `Content-Digest` (RFC 9530)
    ContentDigest = 5,
}

impl ReplyHeader {
    /// The header's name in lower case, as HTTP/2 and HTTP libraries want it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ContentType => "content-type",
            Self::Location => "location",
            Self::ETag => "etag",
            Self::ContentLanguage => "content-language",
            Self::ContentDigest => "content-digest",
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::ContentType, Self::Location, Self::ETag, Self::ContentLanguage, Self::ContentDigest]
            .into_iter()
            .find(|header| *header as u8 == byte)
    }
}

/// A reply as it is stored and sent again, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    status: u16,
    headers: Vec<(ReplyHeader, String)>,
    body: Bytes,
}

impl Reply {
    /// A reply with its `Content-Digest`. A reply without a body has no type either.
    pub fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let mut headers = Vec::with_capacity(3);
        if !body.is_empty() {
            headers.push((ReplyHeader::ContentType, content_type.to_owned()));
        }
        headers.push((ReplyHeader::ContentDigest, content_digest(&body)));
        Self { status, headers, body }
    }

    /// The same reply with one more header.
    pub fn with(mut self, header: ReplyHeader, value: impl Into<String>) -> Self {
        self.headers.push((header, value.into()));
        self
    }

    /// HTTP status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Headers in the order in which they were set.
    pub fn headers(&self) -> &[(ReplyHeader, String)] {
        &self.headers
    }

    /// The value of a header, if it was set.
    pub fn header(&self, wanted: ReplyHeader) -> Option<&str> {
        self.headers.iter().find(|(header, _)| *header == wanted).map(|(_, value)| value.as_str())
    }

    /// The body's bytes.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The headers for storage: header byte, value length (u16), value, one after the other.
    pub fn encode_headers(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (header, value) in &self.headers {
            let Ok(length) = u16::try_from(value.len()) else { continue };
            bytes.push(*header as u8);
            bytes.extend(length.to_be_bytes());
            bytes.extend(value.as_bytes());
        }
        bytes
    }

    /// A reply from its stored parts. `None` for header bytes that [`Reply::encode_headers`] did not make.
    pub fn from_stored(status: u16, mut headers: &[u8], body: impl Into<Bytes>) -> Option<Self> {
        let mut list = Vec::new();
        while let [byte, rest @ ..] = headers {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            let (value, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
            list.push((ReplyHeader::from_byte(*byte)?, String::from_utf8(value.to_vec()).ok()?));
            headers = rest;
        }
        Some(Self { status, headers: list, body: body.into() })
    }
}

fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_rfc_9530() {
        // RFC 9530, appendix B.1: the document {"hello": "world"} and a line feed.
        let reply = Reply::new(200, "application/json", "{\"hello\": \"world\"}\n");
        assert_eq!(
            reply.header(ReplyHeader::ContentDigest),
            Some("sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"),
        );
    }

    #[test]
    fn headers_have_their_names_and_their_order() {
        let reply = Reply::new(201, "application/json", "{}")
            .with(ReplyHeader::Location, "/a")
            .with(ReplyHeader::ETag, "\"1\"")
            .with(ReplyHeader::ContentLanguage, "en");
        let names: Vec<&str> = reply.headers().iter().map(|(header, _)| header.name()).collect();
        assert_eq!(
            names,
            ["content-type", "content-digest", "location", "etag", "content-language"]
        );
        assert_eq!(reply.header(ReplyHeader::Location), Some("/a"));
        assert_eq!(Reply::new(204, "application/json", "").header(ReplyHeader::ContentType), None);
    }

    #[test]
    fn a_reply_survives_storage_and_an_empty_one_is_like_any_other() {
        let order = Reply::new(201, "application/json", "{}")
            .with(ReplyHeader::Location, "/v1/orders/ord_1");
        for reply in [order, Reply::new(204, "application/json", "")] {
            let again =
                Reply::from_stored(reply.status(), &reply.encode_headers(), reply.body().clone());
            assert_eq!(again, Some(reply));
        }
        assert_eq!(Reply::from_stored(200, &[9, 0, 0], ""), None);
        assert_eq!(Reply::from_stored(200, &[1, 0, 5, b'x'], ""), None);
    }
}
