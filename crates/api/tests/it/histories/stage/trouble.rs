//! Everything that goes wrong on a stage: kills, a cache that lies or stops, a provider that is slow.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor};

use super::Stage;
use crate::histories::step::Trouble;
use crate::process::Request;

impl Stage {
    pub(super) async fn trouble(&mut self, trouble: Trouble) {
        let port = self.shop.port();
        self.commands.push(match trouble {
            Trouble::Kill => format!("kill -9 $PAYONCE; payonce serve --port={port} &"),
            Trouble::Expire => {
                "psql -c 'update \"order\" set reserved_until = …the past…'".to_owned()
            }
            other => format!("# {other:?}"),
        });
        match trouble {
            Trouble::Kill => {
                self.shop.kill();
                self.shop = self.launch.start();
            }
            Trouble::Flush if !self.cache_stopped => self.redis.flush().await,
            Trouble::Poison if !self.cache_stopped => self.poison().await,
            Trouble::Remember if !self.cache_stopped => self.remembered = self.redis.dump().await,
            Trouble::Restore if !self.cache_stopped => {
                for (name, value, _) in &self.remembered {
                    self.redis.put(name, value).await;
                }
            }
            Trouble::Freeze if !self.cache_stopped => {
                self.redis.freeze();
                self.cache_stopped = true;
            }
            Trouble::StopCache if !self.cache_stopped => {
                self.redis.stop();
                self.cache_stopped = true;
            }
            Trouble::Thaw | Trouble::StartCache => self.cache_again().await,
            Trouble::ProviderDown => self.control(json!({ "down": true })).await,
            Trouble::ProviderSlow => self.control(json!({ "latency_ms": 700 })).await,
            Trouble::ProviderFine => self.control(json!({ "down": false, "latency_ms": 0 })).await,
            Trouble::HoldEvents => self.control(json!({ "hold_webhooks": true })).await,
            Trouble::ReleaseEvents => self.control(json!({ "hold_webhooks": false })).await,
            Trouble::Expire => self.expire().await,
            Trouble::Pause(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Trouble::Flush
            | Trouble::Poison
            | Trouble::Remember
            | Trouble::Restore
            | Trouble::Freeze
            | Trouble::StopCache => {}
        }
    }

    pub(super) async fn cache_again(&mut self) {
        if std::mem::take(&mut self.cache_stopped) {
            self.redis.stop();
            self.redis.start_again().await;
        }
    }

    /// Each value under the next one's name, and one that is nobody's.
    async fn poison(&self) {
        let values = self.redis.dump().await;
        for (number, (name, _, _)) in values.iter().enumerate() {
            let (_, other, _) = &values[(number + 1) % values.len()];
            match number % 3 {
                0 => self.redis.put(name, b"{\"status\":201,\"body\":\"stolen\"}").await,
                _ => self.redis.put(name, other).await,
            }
        }
    }

    pub(super) async fn control(&self, change: Value) {
        let answer =
            Request::new("POST", "/_control").json(&change).ask(self.provider.port()).await;
        assert_eq!(answer.unwrap().status, 200);
    }

    async fn expire(&self) {
        let statement = r#"update "order" set reserved_until = clock_timestamp() - interval '1 second'
                           where status = 'pending'"#;
        let mut conn = self.database.connect().await;
        // A payment that holds the row is a reason to wait, not to fail.
        conn.execute(AssertSqlSafe(statement)).await.unwrap();
    }
}
