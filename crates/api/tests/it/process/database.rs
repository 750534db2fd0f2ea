//! A private Postgres that a test may stop in its tracks and start again.

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::postgres::server::{self, Owner};

const STOP_TIME: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// A running server with nothing in it. It is gone with this value.
pub(crate) struct Database {
    directory: PathBuf,
    binaries: PathBuf,
    owner: Owner,
    port: u16,
    server: Option<Child>,
}

impl Database {
    pub(crate) fn start() -> Self {
        super::blocking(Self::made)
    }

    fn made() -> Self {
        let name = format!("payonce-crash-{}-{:08x}", std::process::id(), rand::random::<u32>());
        let directory = std::env::temp_dir().join(name);
        let owner = Owner::of_the_server().unwrap();
        let binaries = server::find_binaries().unwrap();
        server::make_directory(&directory, &owner).unwrap();
        server::init(&binaries, &directory.join("data"), &owner).unwrap();
        let port = super::free_port();
        let mut database = Self { directory, binaries, owner, port, server: None };
        database.launch();
        database
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// A database of this server, by way of `port`: its own, or that of a proxy before it.
    pub(crate) fn url_by(port: u16, name: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/{name}")
    }

    pub(crate) fn url(&self, name: &str) -> String {
        Self::url_by(self.port, name)
    }

    pub(crate) async fn create(&self, name: &str) {
        let mut connection = self.connect("postgres").await;
        connection.execute(AssertSqlSafe(format!("create database {name}"))).await.unwrap();
    }

    pub(crate) async fn connect(&self, name: &str) -> PgConnection {
        PgConnection::connect(&self.url(name)).await.unwrap()
    }

    /// Stops without a word to anybody, as a power cut would, and starts again.
    pub(crate) fn restart_immediate(&mut self) {
        super::blocking(|| {
            self.quit();
            self.launch();
        });
    }

    fn launch(&mut self) {
        let data = self.directory.join("data");
        let server = server::spawn(&self.binaries, &data, self.port, &self.owner).unwrap();
        server::supervise(std::process::id(), server.id(), &self.directory).unwrap();
        self.server = Some(server);
        server::wait_until_ready(&data).unwrap();
    }

    fn quit(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let pid = Pid::from_child(&server);
        let _ = kill_process(pid, Signal::QUIT);
        let until = Instant::now() + STOP_TIME;
        while matches!(server.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.quit();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
