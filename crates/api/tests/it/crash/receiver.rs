//! A merchant's own server: it keeps what it is told, and can tear a connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Receiver {
    port: u16,
    inbox: Arc<Inbox>,
}

#[derive(Default)]
struct Inbox {
    resets_next: AtomicBool,
    arrivals: Mutex<HashMap<String, Vec<Vec<u8>>>>,
}

impl Receiver {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self { port: listener.local_addr().unwrap().port(), inbox: Arc::default() };
        let inbox = Arc::clone(&receiver.inbox);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let inbox = Arc::clone(&inbox);
                // A sender that dies in the middle is nobody's failure.
                tokio::spawn(async move { take(stream, &inbox).await.ok() });
            }
        });
        receiver
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    /// The next one is taken in and then told nothing.
    pub(crate) fn reset_next(&self) {
        self.inbox.resets_next.store(true, Ordering::SeqCst);
    }

    /// How often an event came.
    pub(crate) fn times(&self, id: &str) -> usize {
        self.inbox.arrivals.lock().unwrap().get(id).map_or(0, Vec::len)
    }

    /// How many events came with different bytes.
    pub(crate) fn changed(&self) -> usize {
        let arrivals = self.inbox.arrivals.lock().unwrap();
        let differ = |bodies: &&Vec<Vec<u8>>| bodies.iter().any(|body| body != &bodies[0]);
        arrivals.values().filter(differ).count()
    }
}

async fn take(mut stream: TcpStream, inbox: &Inbox) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        if let Some(found) = head(&bytes) {
            break found;
        }
    };
    let start = head.len() + 4;
    while bytes.len() < start + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
    let id = header(&head, "webhook-id").unwrap_or_default().to_owned();
    inbox.arrivals.lock().unwrap().entry(id).or_default().push(bytes[start..].to_vec());
    if inbox.resets_next.swap(false, Ordering::SeqCst) {
        return socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    }
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await
}

fn head(bytes: &[u8]) -> Option<(String, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = header(&head, "content-length")?.parse().ok()?;
    Some((head, length))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}
