//! The private Redis: keeps nothing on disk, since whatever it holds is a hint.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use deadpool_redis::redis::{Client, RedisResult, cmd};
use reqwest::Url;
use tokio::process::Child;
use tokio::time::{sleep, timeout};

use super::account::Account;
use super::data_dir::DataDir;
use super::{binaries, socket};

const ANSWER: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(10);
const START_POLLS: usize = 500;

/// A running private server, this process's child or one that outlived its application.
#[derive(Debug)]
pub struct Redis {
    url: String,
    child: Option<Child>,
    owned: bool,
}

impl Redis {
    /// `None` where no `redis-server` is installed: caches then stay in the process.
    pub async fn start(dir: &DataDir) -> anyhow::Result<Option<Self>> {
        let Some(program) = binaries::redis_server() else { return Ok(None) };
        let account = Account::of_servers(&dir.path().join("postgres"))?;
        let socket = socket::folder(dir, account)?.join("redis.sock");
        let mut redis = Self { url: url_of(&socket), child: None, owned: dir.is_owned() };
        if redis.answers().await {
            return Ok(Some(redis));
        }
        if !redis.owned {
            return Ok(None);
        }
        redis.child = Some(spawn(dir, account, &program, &socket)?);
        redis.wait_until_up().await?;
        Ok(Some(redis))
    }

    /// Over the socket.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops the server if this process owns it. One that hangs is killed, nothing is lost.
    pub async fn stop(mut self) {
        if !self.owned {
            return;
        }
        let asked = timeout(ANSWER, self.ask(&["SHUTDOWN", "NOSAVE"])).await;
        if let Some(child) = &mut self.child
            && (asked.is_err() || timeout(ANSWER, child.wait()).await.is_err())
        {
            let _ = child.kill().await;
        }
    }

    async fn wait_until_up(&mut self) -> anyhow::Result<()> {
        for _ in 0..START_POLLS {
            if self.answers().await {
                return Ok(());
            }
            let child = self.child.as_mut().context("redis-server was not started")?;
            if child.try_wait()?.is_some() {
                break;
            }
            sleep(POLL).await;
        }
        bail!(
            "The embedded Redis did not start: see redis.log in the data directory, or set REDIS_URL"
        )
    }

    async fn answers(&self) -> bool {
        matches!(timeout(ANSWER, self.ask(&["PING"])).await, Ok(Ok(())))
    }

    async fn ask(&self, words: &[&str]) -> RedisResult<()> {
        let mut connection = Client::open(&*self.url)?.get_multiplexed_async_connection().await?;
        let mut command = cmd(words[0]);
        command.arg(&words[1..]).query_async(&mut connection).await
    }
}

fn spawn(dir: &DataDir, account: Account, program: &Path, socket: &Path) -> anyhow::Result<Child> {
    let log = dir.log("redis.log")?;
    account
        .command(program)
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"])
        .args(["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"])
        .args(["--unixsocketperm", "700", "--unixsocket"])
        .arg(socket)
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("redis-server cannot be run")
}

fn url_of(socket: &PathBuf) -> String {
    let path = Url::from_file_path(socket).expect("the data directory has an absolute path");
    format!("redis+unix://{}", path.path())
}
