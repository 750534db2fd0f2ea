//! A private Redis of one test, which can be stopped, frozen, emptied and tampered with.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use deadpool_redis::redis::aio::MultiplexedConnection;
use deadpool_redis::redis::{Client, cmd};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const POLL: Duration = Duration::from_millis(5);

/// It dies with this value, and its folder with it.
pub(crate) struct TestRedis {
    folder: TempDir,
    password: Option<&'static str>,
    child: Option<Child>,
}

impl TestRedis {
    pub(crate) async fn start(password: Option<&'static str>) -> Self {
        let folder = tempfile::Builder::new().prefix("payonce-redis").tempdir().unwrap();
        let mut redis = Self { folder, password, child: None };
        redis.start_again().await;
        redis
    }

    pub(crate) fn url(&self) -> String {
        let url = format!("redis+unix://{}", self.socket().display());
        self.password.map_or(url.clone(), |password| format!("{url}?pass={password}"))
    }

    /// As the same server with another password would be reached.
    pub(crate) fn url_with_wrong_password(&self) -> String {
        format!("redis+unix://{}?pass=wrong", self.socket().display())
    }

    /// At the same address, with nothing in it.
    pub(crate) async fn start_again(&mut self) {
        self.stop();
        let mut command = Command::new("redis-server");
        command
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(self.socket())
            .stdout(Stdio::null());
        if let Some(password) = self.password {
            command.args(["--requirepass", password]);
        }
        self.child = Some(command.spawn().expect("redis-server is installed"));
        while self.connect().await.is_none() {
            tokio::time::sleep(POLL).await;
        }
    }

    /// Connections are refused from now on.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// It accepts connections and never answers.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    pub(crate) async fn flush(&self) {
        let mut connection = self.connect().await.unwrap();
        cmd("FLUSHALL").query_async::<()>(&mut connection).await.unwrap();
    }

    /// It can be read and refuses every write, as a replica does whose primary is gone.
    pub(crate) async fn refuse_writes(&self) {
        let mut connection = self.connect().await.unwrap();
        let nobody = ["127.0.0.1", "1"];
        cmd("REPLICAOF").arg(&nobody).query_async::<()>(&mut connection).await.unwrap();
    }

    /// Everything in it: name, value, and milliseconds left to live.
    pub(crate) async fn dump(&self) -> Vec<(String, Vec<u8>, i64)> {
        let mut connection = self.connect().await.unwrap();
        let names: Vec<String> = cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
        let mut all = Vec::new();
        for name in names {
            let value: Vec<u8> = cmd("GET").arg(&name).query_async(&mut connection).await.unwrap();
            let life = cmd("PTTL").arg(&name).query_async(&mut connection).await.unwrap();
            all.push((name, value, life));
        }
        all
    }

    /// Puts a value there that the application did not.
    pub(crate) async fn put(&self, name: &str, value: &[u8]) {
        let mut connection = self.connect().await.unwrap();
        cmd("SET").arg(name).arg(value).query_async::<()>(&mut connection).await.unwrap();
    }

    async fn connect(&self) -> Option<MultiplexedConnection> {
        let client = Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.ok()?;
        cmd("PING").query_async::<()>(&mut connection).await.ok()?;
        Some(connection)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().expect("it runs").id();
        kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal).unwrap();
    }
}

impl Drop for TestRedis {
    fn drop(&mut self) {
        self.stop();
    }
}
