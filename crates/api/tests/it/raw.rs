//! Requests as bytes on a socket: doubled headers, chunks, resets, clients that take their time.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// An answer as bytes.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A request of lines and a body, with `Content-Length` and `Connection: close`.
pub(crate) fn request(first: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let mut text = format!("{first} HTTP/1.1\r\nHost: payonce\r\nConnection: close\r\n");
    for header in headers {
        text += &format!("{header}\r\n");
    }
    text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    text.into_bytes()
}

/// The same with the body in chunks of `size` bytes, and no length said in advance.
pub(crate) fn chunked(first: &str, headers: &[&str], body: &[u8], size: usize) -> Vec<u8> {
    let mut bytes =
        format!("{first} HTTP/1.1\r\nHost: payonce\r\nConnection: close\r\n").into_bytes();
    for header in headers {
        write!(bytes, "{header}\r\n").unwrap();
    }
    bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
    for chunk in body.chunks(size) {
        write!(bytes, "{:x}\r\n", chunk.len()).unwrap();
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// Sends the bytes and reads until the server hangs up.
pub(crate) async fn send(address: SocketAddr, bytes: &[u8]) -> RawResponse {
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    // A server that has heard enough may close before everything is written.
    socket.write_all(bytes).await.ok();
    answer(&mut socket).await
}

/// Sends the bytes, says that this is all, and reads what the server makes of it.
pub(crate) async fn send_and_hang_up(address: SocketAddr, bytes: &[u8]) -> RawResponse {
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    socket.write_all(bytes).await.unwrap();
    socket.shutdown().await.unwrap();
    answer(&mut socket).await
}

/// The same in pieces, with a pause after each.
pub(crate) async fn send_slowly(
    address: SocketAddr,
    bytes: &[u8],
    piece: usize,
    pause: Duration,
) -> RawResponse {
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    for piece in bytes.chunks(piece) {
        socket.write_all(piece).await.unwrap();
        tokio::time::sleep(pause).await;
    }
    answer(&mut socket).await
}

/// Sends the bytes and, after a while, resets the connection without reading an answer.
pub(crate) async fn send_and_reset(address: SocketAddr, bytes: &[u8], after: Duration) {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(bytes).unwrap();
    tokio::time::sleep(after).await;
    let socket = socket2::Socket::from(socket);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
}

async fn answer(socket: &mut tokio::net::TcpStream) -> RawResponse {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(30), socket.read_to_end(&mut bytes)).await;
    read.expect("an end of the answer").ok();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    RawResponse { status, head: head.to_lowercase(), body: body.to_owned() }
}
