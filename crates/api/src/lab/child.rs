//! The server that is going to be killed: this program again, in a process of its own.
//!
//! It reads its plan from the standard input, tells its address and its events on the standard
//! output, and ends when its parent goes.

use std::process::Stdio;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use super::events::{self, Event};
use super::server::LabServer;
use super::world::World;

/// Set for the child, and for nobody else.
const ROLE: &str = "PAYONCE_LAB_SERVER";

#[derive(Serialize, Deserialize)]
enum Line {
    Ready(String),
    Event(Event),
}

/// Whether this process is such a server.
pub fn is_asked() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// Serves until killed, or until the parent is gone.
#[tokio::main]
pub async fn run() -> anyhow::Result<()> {
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    tracing_subscriber::registry().with(events::listener()).try_init()?;
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let plan = input.next_line().await?.context("no plan")?;
    let (wire, mut heard) = mpsc::unbounded_channel();
    events::connect("", wire);
    let server = LabServer::start(serde_json::from_str(&plan)?).await?;
    let mut output = tokio::io::stdout();
    say(&mut output, &Line::Ready(server.url.clone())).await?;
    loop {
        tokio::select! {
            event = heard.recv() => match event {
                Some(event) => say(&mut output, &Line::Event(event)).await?,
                None => return Ok(()),
            },
            line = input.next_line() => if line?.is_none() { return Ok(()) },
        }
    }
}

async fn say(output: &mut tokio::io::Stdout, line: &Line) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    output.write_all(&text).await?;
    Ok(output.flush().await?)
}

/// A process that serves and is about to die. Dropped, it dies at once.
pub(super) struct Doomed {
    pub(super) url: String,
    pub(super) pid: u32,
    child: Child,
    output: Option<Lines<BufReader<ChildStdout>>>,
    _input: ChildStdin,
}

impl Doomed {
    pub(super) async fn start(world: &World) -> anyhow::Result<Self> {
        let mut child = Command::new(&world.program)
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("the server to be killed cannot be started")?;
        let mut input = child.stdin.take().context("no standard input")?;
        let mut plan = serde_json::to_vec(&world.plan_of_the_doomed())?;
        plan.push(b'\n');
        input.write_all(&plan).await?;
        let output = child.stdout.take().context("no standard output")?;
        let mut output = BufReader::new(output).lines();
        let first = output.next_line().await?.context("the server to be killed did not start")?;
        let Line::Ready(url) = serde_json::from_str(&first)? else {
            anyhow::bail!("the server to be killed did not tell its address");
        };
        let pid = child.id().context("the server to be killed is gone already")?;
        Ok(Self { url, pid, child, output: Some(output), _input: input })
    }

    /// Passes its events on, and waits until one says that the card is being charged.
    pub(super) fn charging(&mut self) -> tokio::sync::oneshot::Receiver<()> {
        let (told, charging) = tokio::sync::oneshot::channel();
        let mut told = Some(told);
        let Some(mut output) = self.output.take() else { return charging };
        tokio::spawn(async move {
            while let Ok(Some(line)) = output.next_line().await {
                let Ok(Line::Event(event)) = serde_json::from_str(&line) else { continue };
                if event.step == "charge"
                    && let Some(told) = told.take()
                {
                    let _ = told.send(());
                }
                events::tell(event);
            }
        });
        charging
    }

    /// SIGKILL, and waits until the process is gone.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }
}
