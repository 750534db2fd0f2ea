//! A private Redis, on a port.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use deadpool_redis::redis::{Client, cmd};

const TRIES: usize = 500;
const POLL: Duration = Duration::from_millis(10);

/// A running server that keeps nothing on disk. It is gone with this value.
pub(crate) struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    pub(crate) async fn start() -> Self {
        let port = super::free_port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let redis = Self { child, port };
        redis.insist("PING").await;
        redis
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn flush(&self) {
        self.insist("FLUSHALL").await;
    }

    /// The client of the library gives up after half a second, which a busy machine may take.
    async fn insist(&self, word: &str) {
        for _ in 0..TRIES {
            if self.ask(word).await {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
        panic!("redis-server does not answer");
    }

    async fn ask(&self, word: &str) -> bool {
        let client = Client::open(self.url()).unwrap();
        let Ok(mut connection) = client.get_multiplexed_async_connection().await else {
            return false;
        };
        cmd(word).exec_async(&mut connection).await.is_ok()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
