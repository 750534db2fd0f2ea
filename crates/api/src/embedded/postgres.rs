//! The private Postgres: made once, started or found, stopped at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use reqwest::Url;
use sqlx::{Connection, PgConnection};
use tokio::process::Child;
use tokio::time::{Instant, sleep, timeout};

use super::account::Account;
use super::binaries::Binaries;
use super::data_dir::DataDir;
use super::{socket, stale};

const ROLE: &str = "payonce";
const LOG: &str = "postgres.log";
/// A server that does not answer a connection within this time hangs.
const ANSWER: Duration = Duration::from_secs(2);
/// What a server left by a crash gets to come up or to go away.
const SETTLE: Duration = Duration::from_secs(20);
/// Recovery of a large log may take a while.
const START: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(20);

/// A running private server. It lives on when this value is dropped; [`Postgres::stop`] ends it.
#[derive(Debug)]
pub struct Postgres {
    binaries: Binaries,
    account: Account,
    cluster: PathBuf,
    socket: PathBuf,
    /// Unless the server was found running.
    child: Option<Child>,
    owned: bool,
}

impl Postgres {
    /// Brings the server of this data directory up, or finds it up.
    pub async fn start(dir: &DataDir) -> anyhow::Result<Self> {
        let mut server = Self::of(dir)?;
        if !server.answers().await {
            ensure!(
                server.owned,
                "The application on {} has not brought its Postgres up yet: try again when it runs",
                dir.path().display()
            );
            server.bring_up(dir).await?;
        }
        server.make_database().await?;
        Ok(server)
    }

    /// The application's database, over the socket.
    pub fn url(&self) -> String {
        self.url_of(ROLE)
    }

    /// Stops the server if this process owns it; clients are disconnected.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        if self.owned {
            self.shut_down(&["-w", "-m", "fast"]).await?;
            if let Some(child) = &mut self.child {
                child.wait().await?;
            }
            let _ = fs::remove_dir(&self.socket);
        }
        Ok(())
    }

    fn of(dir: &DataDir) -> anyhow::Result<Self> {
        let cluster = dir.path().join("postgres");
        let made_by = fs::read_to_string(cluster.join("PG_VERSION")).ok();
        let binaries = Binaries::find(made_by.as_deref().map(str::trim))?;
        let account = Account::of_servers(&cluster)?;
        account.must_reach(&cluster)?;
        let socket = socket::folder(dir, account)?;
        Ok(Self { binaries, account, cluster, socket, child: None, owned: dir.is_owned() })
    }

    async fn bring_up(&mut self, dir: &DataDir) -> anyhow::Result<()> {
        if !self.cluster.exists() {
            self.make_cluster(dir).await?;
        } else if self.outlive_the_old_one().await {
            return Ok(());
        }
        stale::clear(&self.cluster, &self.socket);
        self.launch(dir).await.with_context(|| {
            format!("The embedded Postgres did not start, see {}", dir.path().join(LOG).display())
        })
    }

    /// Waits for a server that is on its way up or down; ends one that is neither.
    async fn outlive_the_old_one(&self) -> bool {
        stale::wake(&self.cluster);
        let began = Instant::now();
        while stale::is_in_use(&self.cluster) == Some(true) {
            if self.answers().await {
                return true;
            }
            if began.elapsed() > SETTLE {
                let _ = self.shut_down(&["-w", "-t", "10", "-m", "immediate"]).await;
                return false;
            }
            sleep(POLL).await;
        }
        false
    }

    /// Under a temporary name first, so that a cluster is whole or not there.
    async fn make_cluster(&self, dir: &DataDir) -> anyhow::Result<()> {
        remove_drafts(dir.path());
        let draft = dir.path().join(format!("postgres.new-{:08x}", rand::random::<u32>()));
        self.account.make_folder(&draft)?;
        let output = self
            .account
            .command(&self.binaries.program("initdb"))
            .args(["--auth=trust", "--encoding=UTF8", "--no-locale"])
            .arg(format!("--username={ROLE}"))
            .arg("-D")
            .arg(&draft)
            .output()
            .await
            .context("initdb cannot be run")?;
        if !output.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        fs::rename(&draft, &self.cluster).context("The new cluster cannot be put in its place")
    }

    /// Without `pg_ctl`, whose shell stumbles over quotes in a path. The server inherits the
    /// log as its output, so no pipe keeps anybody waiting.
    async fn launch(&mut self, dir: &DataDir) -> anyhow::Result<()> {
        let log = dir.log(LOG)?;
        let server = self
            .account
            .command(&self.binaries.program("postgres"))
            .arg("-D")
            .arg(&self.cluster)
            .args(["-c", "listen_addresses=", "-c", "port=5432", "-c", "max_connections=300"])
            .args(["-c", "unix_socket_permissions=0700", "-c"])
            .arg(format!("unix_socket_directories=\"{}\"", socket_setting(&self.socket)))
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("postgres cannot be run")?;
        self.child = Some(server);
        self.wait_until_up().await
    }

    async fn wait_until_up(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        while !self.answers().await {
            let ended = self.child.as_mut().map(Child::try_wait).transpose()?.flatten();
            if let Some(status) = ended {
                bail!("it ended with {status}");
            }
            ensure!(began.elapsed() < START, "it does not answer");
            sleep(POLL).await;
        }
        Ok(())
    }

    async fn shut_down(&self, how: &[&str]) -> anyhow::Result<()> {
        let status = self
            .account
            .command(&self.binaries.program("pg_ctl"))
            .arg("stop")
            .arg("-D")
            .arg(&self.cluster)
            .args(how)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await
            .context("pg_ctl cannot be run")?;
        ensure!(status.success(), "pg_ctl stop ended with {status}");
        Ok(())
    }

    async fn answers(&self) -> bool {
        let url = self.url_of("postgres");
        matches!(timeout(ANSWER, PgConnection::connect(&url)).await, Ok(Ok(_)))
    }

    /// A crash between `initdb` and this statement is mended by the next start.
    async fn make_database(&self) -> anyhow::Result<()> {
        let mut connection = PgConnection::connect(&self.url_of("postgres")).await?;
        let exists = "select exists (select from pg_database where datname = 'payonce')";
        if !sqlx::query_scalar(exists).fetch_one(&mut connection).await? {
            sqlx::query("create database payonce").execute(&mut connection).await?;
        }
        Ok(connection.close().await?)
    }

    fn url_of(&self, database: &str) -> String {
        let socket = self.socket.to_string_lossy();
        let parameters = [("host", &*socket), ("port", "5432"), ("sslmode", "disable")];
        Url::parse_with_params(&format!("postgres://{ROLE}@localhost/{database}"), parameters)
            .expect("a constant URL parses")
            .into()
    }
}

/// What an `initdb` that was killed left behind.
fn remove_drafts(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("postgres.new-") {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The setting is a list of quoted names.
fn socket_setting(folder: &Path) -> String {
    folder.to_string_lossy().replace('"', "\"\"")
}
