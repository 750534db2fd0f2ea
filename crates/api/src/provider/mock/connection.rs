//! Ways of not answering: what a caller sees when a network or a process fails.

use std::any::Any;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream;
use socket2::SockRef;

/// A second handle on the socket a request came by, so that a handler can set its options.
struct Socket(OwnedFd);

/// Runs for each new connection.
pub(super) fn remember(connection: &dyn Any, data: &mut Extensions) {
    let stream = connection.downcast_ref::<TcpStream>();
    if let Some(handle) = stream.and_then(|stream| stream.as_fd().try_clone_to_owned().ok()) {
        data.insert(Socket(handle));
    }
}

/// Lingering for no time makes the kernel send RST instead of FIN when the socket closes.
pub(super) fn reset(request: &HttpRequest) -> HttpResponse {
    if let Some(Socket(handle)) = request.conn_data::<Socket>() {
        let lingering = SockRef::from(handle).set_linger(Some(Duration::ZERO));
        if let Err(error) = lingering {
            tracing::warn!(%error, "this connection closes politely instead of being reset");
        }
    }
    abort()
}

/// A body that fails before its first byte: the connection closes and not even a head is sent.
pub(super) fn abort() -> HttpResponse {
    let failing =
        stream::iter([Err::<Bytes, _>(io::Error::from(io::ErrorKind::ConnectionAborted))]);
    HttpResponse::Ok().streaming(failing)
}
