//! A Redis that is going to be stopped, and two servers that rely on it: all of them of one run, so
//! that nobody else's run loses its Redis.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::server::{LabServer, Plan};
use super::world::World;

const START: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// Dropped, the Redis dies at once.
pub(super) struct Fragile {
    a: LabServer,
    b: LabServer,
    redis: Child,
    socket: PathBuf,
}

impl Fragile {
    pub(super) async fn start(world: &World, run: &str) -> anyhow::Result<Self> {
        let socket = std::env::temp_dir().join(format!("payonce-lab-{run}.sock"));
        let redis = redis(&socket).await?;
        let url = format!("redis+unix://{}", socket.display());
        let plan = Plan { redis_url: Some(url), ..world.plan_of_the_doomed() };
        let a = LabServer::start(plan.clone()).await?;
        let b = LabServer::start(Plan { name: "B".to_owned(), ..plan }).await?;
        Ok(Self { a, b, redis, socket })
    }

    /// Where A and B are.
    pub(super) fn urls(&self) -> (String, String) {
        (self.a.url.clone(), self.b.url.clone())
    }

    /// SIGKILL, and waits until the process is gone.
    pub(super) async fn stop_redis(&mut self) -> anyhow::Result<u32> {
        let pid = self.redis.id().context("Redis is gone already")?;
        self.redis.kill().await?;
        Ok(pid)
    }

    pub(super) async fn stop(&self) {
        self.a.stop().await;
        self.b.stop().await;
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

async fn redis(socket: &PathBuf) -> anyhow::Result<Child> {
    let program = crate::embedded::redis_server()
        .context("no redis-server is installed that could be stopped")?;
    let mut child = Command::new(program)
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocketperm", "700"])
        .arg("--unixsocket")
        .arg(socket)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("redis-server cannot be run")?;
    let up = async {
        while UnixStream::connect(socket).await.is_err() {
            anyhow::ensure!(child.try_wait()?.is_none(), "redis-server ended at once");
            tokio::time::sleep(POLL).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(START, up).await.context("redis-server did not start")??;
    Ok(child)
}
