//! A body arrives in its time or not at all: whoever sends a byte now and then holds nothing up.
//!
//! The server itself gives a head its time. Nothing is claimed, and no connection to the database is
//! held, before a body is there as a whole; what is bounded here is how long a socket and its
//! buffers can be kept.
//!
//! What is left of a body that nobody reads on must not be read for ever either. The server drains
//! chunks to their end once the body is dropped, however long that takes; so an unread body is kept
//! until the answer has gone out, and then the connection is closed.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::HttpMessage as _;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::middleware::Next;
use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

/// Passes a request on with a body that ends in an error when its time is over.
pub(super) async fn bounded(
    patience: Duration,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let arriving = match request.take_payload() {
        Payload::None => return Ok(next.call(request).await?.map_into_boxed_body()),
        body => Rc::new(RefCell::new(Some(body))),
    };
    let payload =
        Arriving { body: Rc::clone(&arriving), until: Instant::now() + patience, over: None };
    request.set_payload(Payload::Stream { payload: Box::pin(payload) });
    let response = next.call(request).await?.map_into_boxed_body();
    let unread = arriving.borrow_mut().take();
    Ok(match unread {
        Some(unread) => response.map_body(|_, body| BoxBody::new(Answer { body, _unread: unread })),
        None => response,
    })
}

/// A body on its way; the place is empty when it has come to its end.
struct Arriving {
    body: Rc<RefCell<Option<Payload>>>,
    until: Instant,
    /// Set up by the first wait: hardly a body does not come along with its head.
    over: Option<Pin<Box<Sleep>>>,
}

impl Stream for Arriving {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let place = Rc::clone(&self.body);
        let mut place = place.borrow_mut();
        let Some(body) = place.as_mut() else { return Poll::Ready(None) };
        match Pin::new(body).poll_next(cx) {
            Poll::Ready(None) => {
                *place = None;
                Poll::Ready(None)
            }
            Poll::Ready(chunk) => Poll::Ready(chunk),
            Poll::Pending => {
                let until = self.until;
                let over = self.over.get_or_insert_with(|| Box::pin(sleep_until(until)));
                over.as_mut()
                    .poll(cx)
                    .map(|()| Some(Err(PayloadError::Incomplete(Some(ErrorKind::TimedOut.into())))))
            }
        }
    }
}

/// An answer that holds what it leaves unread until it has gone out.
struct Answer {
    body: BoxBody,
    _unread: Payload,
}

impl MessageBody for Answer {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}
