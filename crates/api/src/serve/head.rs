//! HEAD is GET without the body (RFC 9110, section 9.3.2), on every path that shows something.
//!
//! It is said here once, before a path is looked up, so that no route can be forgotten. What is
//! left of the answer is its head, with the length that the body would have had.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use bytes::Bytes;

/// How a request was meant before it was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Head,
    Whole,
}

/// Lets a HEAD be looked up as the GET that it asks about.
pub(super) fn taken_for_get(request: &mut ServiceRequest) -> Asked {
    if request.method() != Method::HEAD {
        return Asked::Whole;
    }
    request.head_mut().method = Method::GET;
    Asked::Head
}

impl Asked {
    pub(super) fn answer(self, answer: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
        match self {
            Self::Whole => answer,
            Self::Head => answer.map_body(|_, body| BoxBody::new(Unsent(body.size()))),
        }
    }
}

/// A body of which only the length is told: a stream that never ends is not even begun.
struct Unsent(BodySize);

impl MessageBody for Unsent {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        self.0
    }

    fn poll_next(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        Poll::Ready(None)
    }
}
