//! A mail server of the test's own: it keeps what it is given.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// How it treats its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As a good server does.
    Takes,
    /// The same, a little later, so that some are always under way.
    TakesItsTime,
    /// Says for now no to every mail.
    Refuses,
    /// Never says a word.
    Hangs,
}

/// A mail as it came.
#[derive(Debug, Clone)]
pub(crate) struct Mail(String);

impl Mail {
    pub(crate) fn header(&self, name: &str) -> String {
        let prefix = format!("{name}: ");
        let line = self.0.lines().find_map(|line| line.strip_prefix(&prefix));
        line.unwrap_or_else(|| panic!("no {name}: {}", self.0)).to_owned()
    }
}

pub(crate) struct Sink {
    port: u16,
    mails: Arc<Mutex<Vec<Mail>>>,
}

impl Sink {
    pub(crate) async fn open(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sink = Self { port: listener.local_addr().unwrap().port(), mails: Arc::default() };
        let mails = Arc::clone(&sink.mails);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mails = Arc::clone(&mails);
                // A client that is cut off is nobody's failure.
                tokio::spawn(async move { talk(stream, manner, &mails).await.ok() });
            }
        });
        sink
    }

    pub(crate) fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port)
    }

    pub(crate) fn mails(&self) -> Vec<Mail> {
        self.mails.lock().unwrap().clone()
    }
}

async fn talk(stream: TcpStream, manner: Manner, mails: &Mutex<Vec<Mail>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    if manner == Manner::Hangs {
        std::future::pending::<()>().await;
    }
    stream.write_all(b"220 sink\r\n").await?;
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let command = line.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        let answer = match command.as_str() {
            "MAIL" if manner == Manner::Refuses => "451 not now",
            "DATA" => {
                stream.write_all(b"354 go on\r\n").await?;
                let mail = data(&mut stream).await?;
                if manner == Manner::TakesItsTime {
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
                mails.lock().unwrap().push(mail);
                "250 taken"
            }
            "QUIT" => {
                stream.write_all(b"221 bye\r\n").await?;
                return Ok(());
            }
            _ => "250 fine",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
}

async fn data(stream: &mut BufReader<TcpStream>) -> std::io::Result<Mail> {
    let mut text = String::new();
    loop {
        let before = text.len();
        let read = stream.read_line(&mut text).await?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if text[before..].trim_end() == "." {
            text.truncate(before);
            return Ok(Mail(text));
        }
    }
}
