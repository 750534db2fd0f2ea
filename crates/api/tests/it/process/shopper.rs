//! A client that a test has in its hand: one connection a request, which it can also tear.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER_MAX: Duration = Duration::from_secs(60);
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

/// A request that can be sent again.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

/// A request on its way.
pub(crate) struct Call(TcpStream);

impl Request {
    pub(crate) fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: String::new() }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn json(mut self, body: &Value) -> Self {
        self.body = body.to_string();
        self.header("content-type", "application/json")
    }

    /// Sends it and comes back before the answer.
    pub(crate) async fn send(&self, port: u16) -> io::Result<Call> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(self.text().as_bytes()).await?;
        Ok(Call(stream))
    }

    /// Sends it and waits for the answer.
    pub(crate) async fn ask(&self, port: u16) -> io::Result<Answer> {
        self.send(port).await?.answer().await
    }

    fn text(&self) -> String {
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!(
            "{} {} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{}",
            self.method,
            self.path,
            self.body.len(),
            self.body
        )
    }
}

impl Call {
    /// Reads to the end of the connection.
    pub(crate) async fn answer(mut self) -> io::Result<Answer> {
        let mut bytes = Vec::new();
        let reading = self.0.read_to_end(&mut bytes);
        tokio::time::timeout(ANSWER_MAX, reading).await??;
        Answer::parse(&bytes).ok_or_else(|| io::Error::other("no whole answer"))
    }

    /// Ends the connection with a reset, which a server notices at once.
    pub(crate) fn reset(self) {
        let no_linger = Some(Duration::ZERO);
        socket2::SockRef::from(&self.0).set_linger(no_linger).unwrap();
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let answer = Self { status, head, body: bytes[end + 4..].to_vec() };
        // An answer without a body need not say so.
        let none = (status == 204).then_some("0");
        let length: usize = answer.header("content-length").or(none)?.parse().ok()?;
        (answer.body.len() == length).then_some(answer)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn text(&self, member: &str) -> String {
        self.json()[member].as_str().unwrap_or_default().to_owned()
    }

    /// In one line, for people.
    pub(crate) fn shown(&self) -> String {
        let body = String::from_utf8_lossy(&self.body);
        format!("{} {}", self.status, body.chars().take(300).collect::<String>())
    }
}

/// A place where a process waits, at a fault point, until the test lets it go on.
pub(crate) struct Meeting(TcpListener);

impl Meeting {
    pub(crate) async fn new() -> Self {
        Self(TcpListener::bind(("127.0.0.1", 0)).await.unwrap())
    }

    /// The action that brings a process here.
    pub(crate) fn action(&self) -> String {
        format!("meet-{}", self.0.local_addr().unwrap().port())
    }

    /// Somebody is here; drop it to let them go.
    pub(crate) async fn arrived(&self) -> io::Result<TcpStream> {
        let (stream, _) = tokio::time::timeout(ARRIVAL_MAX, self.0.accept()).await??;
        Ok(stream)
    }
}
