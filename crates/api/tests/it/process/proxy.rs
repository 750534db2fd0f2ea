//! A wire between a server and its database that can lose the acknowledgement of a commit.
//!
//! It passes everything on. Once it is told to cut, the next message that commits reaches the
//! database; its answer is read, thrown away, and the connection ends. The client may be left at once
//! instead of then: the database goes on and does not know. What commits here is the
//! word `commit`, and the statements that are a transaction of their own: the one that places an
//! order, and those that note that a mail or an event has arrived.

use std::collections::HashSet;
use std::io;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Beginnings of statements that commit by themselves.
const ALONE: [&str; 3] =
    ["insert into \"order\"", "update mail set state", "update delivery set state"];

/// A listening proxy. It ends with this value.
pub(crate) struct Proxy {
    port: u16,
    wishes: Arc<Wishes>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Wishes {
    /// How many acknowledgements are to be lost yet, and were lost.
    to_cut: AtomicUsize,
    cut: AtomicUsize,
    /// Whether the client is left before the database has answered.
    hastily: AtomicBool,
}

impl Proxy {
    pub(crate) async fn before(database_port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let wishes = Arc::<Wishes>::default();
        let task = tokio::spawn({
            let wishes = Arc::clone(&wishes);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(pass(client, database_port, Arc::clone(&wishes)));
                }
            }
        });
        Self { port, wishes, task }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The acknowledgement of the next commit is lost.
    pub(crate) fn cut_next_commit(&self) {
        self.wishes.to_cut.store(1, Ordering::SeqCst);
    }

    /// The same, and the client does not wait until the commit is done.
    pub(crate) fn leave_next_commit(&self) {
        self.wishes.hastily.store(true, Ordering::SeqCst);
        self.cut_next_commit();
    }

    /// No more; how many were lost so far.
    pub(crate) fn cut_no_more(&self) -> usize {
        self.wishes.to_cut.store(0, Ordering::SeqCst);
        self.wishes.cut.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(client: TcpStream, database_port: u16, wishes: Arc<Wishes>) {
    // A database that is down refuses; so does its proxy.
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, database_port)).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let cutting = Arc::new(Notify::new());
    let mut asking = pin!(forward(from_client, &mut to_server, &wishes, &cutting));
    let mut answering = pin!(back(from_server, to_client, &wishes, &cutting));
    tokio::select! {
        // The way to the database stays open, or it would see that nobody is there any more.
        _ = &mut asking => if wishes.hastily.load(Ordering::SeqCst) {
            let _lost = answering.await;
        },
        _ = &mut answering => {}
    }
}

/// Message by message, since a commit has to be seen.
async fn forward(
    mut client: OwnedReadHalf,
    server: &mut OwnedWriteHalf,
    wishes: &Wishes,
    cutting: &Notify,
) -> io::Result<()> {
    let mut alone = HashSet::new();
    let mut is_startup = true;
    let mut is_leaving = false;
    loop {
        let message = read_message(&mut client, is_startup).await?;
        // A refused request for encryption is followed by the real start.
        is_startup = is_startup && message[4..8] == [4, 210, 22, 47];
        let is_cut = commits(&message, &mut alone) && wishes.takes_one();
        let hastily = wishes.hastily.load(Ordering::SeqCst);
        if is_cut && !hastily {
            cutting.notify_one();
        }
        is_leaving |= is_cut && hastily;
        server.write_all(&message).await?;
        // The database has the whole of it.
        if is_leaving && matches!(message[0], b'Q' | b'S') {
            cutting.notify_one();
        }
    }
}

impl Wishes {
    fn takes_one(&self) -> bool {
        let took = self
            .to_cut
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok();
        if took {
            self.cut.fetch_add(1, Ordering::SeqCst);
        }
        took
    }
}

async fn read_message(client: &mut OwnedReadHalf, is_startup: bool) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    if !is_startup {
        message.push(client.read_u8().await?);
    }
    let length = client.read_u32().await?;
    message.extend_from_slice(&length.to_be_bytes());
    let start = message.len();
    message.resize(start + length as usize - 4, 0);
    client.read_exact(&mut message[start..]).await?;
    Ok(message)
}

/// Remembers prepared statements that commit by themselves; says whether this message commits.
fn commits(message: &[u8], alone: &mut HashSet<Vec<u8>>) -> bool {
    match message[0] {
        b'Q' => contains(message, b"commit"),
        b'P' => {
            if ALONE.iter().any(|statement| contains(message, statement.as_bytes())) {
                alone.insert(text(&message[5..]).to_vec());
            }
            false
        }
        // A portal's name, then the statement's.
        b'B' => {
            let portal = text(&message[5..]).len();
            alone.contains(text(&message[5 + portal + 1..]))
        }
        _ => false,
    }
}

fn contains(message: &[u8], part: &[u8]) -> bool {
    message.windows(part.len()).any(|window| window == part)
}

/// Up to the zero that ends it.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Passes answers on, until one is to be lost: that one is read, so that it surely happened.
async fn back(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    wishes: &Wishes,
    cutting: &Notify,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        tokio::select! {
            biased;
            () = cutting.notified() => {
                if wishes.hastily.load(Ordering::SeqCst) {
                    drop(client);
                }
                let _lost = server.read(&mut buffer).await?;
                return Ok(());
            }
            read = server.read(&mut buffer) => match read? {
                0 => return Ok(()),
                read => client.write_all(&buffer[..read]).await?,
            },
        }
    }
}
