//! The HTTP edge for actix-web: the key out of a request, a reply into a response.

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder};
use time::format_description::well_known::Rfc3339;

use crate::key::{Key, KeyError};
use crate::prefer;
use crate::record::Finished;
use crate::reply::ReplyHeader;

/// Carries the key.
pub const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// `true` on every answer that was given before.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Until when the answer can be had again (RFC 3339).
pub const EXPIRES: HeaderName = HeaderName::from_static("idempotency-key-expires");
/// RFC 7240.
pub const PREFER: HeaderName = HeaderName::from_static("prefer");
/// RFC 7240.
pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The key of a request, from all lines of its header.
///
/// # Errors
/// [`KeyError`] when there is none or it is malformed.
pub fn key(headers: &HeaderMap) -> Result<Key, KeyError> {
    Key::parse(headers.get_all(KEY_HEADER).map(HeaderValue::as_bytes))
}

/// The wait a request asks for, in seconds. A malformed preference counts as none.
pub fn wait_seconds(headers: &HeaderMap) -> Option<u64> {
    prefer::wait_seconds(headers.get_all(PREFER).filter_map(|line| line.to_str().ok()))
}

fn name(header: ReplyHeader) -> HeaderName {
    HeaderName::from_static(header.name())
}

/// The response for a finished reply: its own status, headers and bytes, and the marker on repeats.
pub fn respond(finished: &Finished, replayed: bool) -> HttpResponse {
    let reply = &finished.reply;
    let status = StatusCode::from_u16(reply.status()).unwrap_or(StatusCode::OK);
    let mut response = HttpResponseBuilder::new(status);
    for (header, value) in reply.headers() {
        response.insert_header((name(*header), value.as_str()));
    }
    if let Ok(expires) = finished.expires_at.format(&Rfc3339) {
        response.insert_header((EXPIRES, expires));
    }
    if replayed {
        response.insert_header((REPLAYED, "true"));
    }
    response.body(reply.body().clone())
}
