//! How a test's shop differs from the usual one.

use std::time::Duration;

use api::config::{Limits, Mail, Redacted, Timing};
use api::webhooks::signature::Secret;

use crate::redis::TestRedis;

/// Jobs do not run by themselves unless asked for: tests call `run_once` when it is time.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) timing: Timing,
    pub(crate) clients: Limits,
    pub(crate) db_connections: usize,
    pub(crate) jobs: bool,
    pub(crate) redis: bool,
    pub(crate) redis_password: Option<&'static str>,
    pub(crate) knows_redis_password: bool,
    pub(crate) webhooks: bool,
    pub(crate) loopback_targets: bool,
    pub(crate) limited: bool,
    smtp_url: Option<String>,
    webhook_secret: [u8; 32],
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timing: Timing {
                lease: Duration::from_secs(30),
                deadline: Duration::from_secs(20),
                provider_timeout: Duration::from_secs(5),
                retention: Duration::from_hours(24),
                reservation: Duration::from_mins(15),
                recover_every: Duration::from_millis(100),
                grace: Duration::from_secs(5),
            },
            clients: Limits::default(),
            db_connections: 10,
            jobs: false,
            redis: false,
            redis_password: None,
            knows_redis_password: true,
            webhooks: false,
            loopback_targets: true,
            limited: false,
            smtp_url: None,
            webhook_secret: rand::random(),
        }
    }
}

impl Options {
    /// The deadline shrinks with the lease.
    pub(crate) fn lease_ms(mut self, ms: u64) -> Self {
        self.timing.lease = Duration::from_millis(ms);
        self.timing.deadline = self.timing.deadline.min(self.timing.lease * 4 / 5);
        self.timing.provider_timeout = self.timing.provider_timeout.min(self.timing.deadline);
        self
    }

    pub(crate) fn provider_timeout_ms(mut self, ms: u64) -> Self {
        self.timing.provider_timeout = Duration::from_millis(ms);
        self
    }

    pub(crate) fn retention_ms(mut self, ms: u64) -> Self {
        self.timing.retention = Duration::from_millis(ms);
        self
    }

    pub(crate) fn reservation_ms(mut self, ms: u64) -> Self {
        self.timing.reservation = Duration::from_millis(ms);
        self
    }

    pub(crate) fn connections(mut self, most: usize) -> Self {
        self.db_connections = most;
        self
    }

    /// Pages of these origins may call the API.
    pub(crate) fn origins(mut self, origins: &[&str]) -> Self {
        self.clients.origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
        self
    }

    /// Requests arrive in this time or not at all.
    pub(crate) fn patience_ms(mut self, ms: u64) -> Self {
        self.clients.patience = Duration::from_millis(ms);
        self
    }

    /// An account may have this many keys without an outcome.
    pub(crate) fn unresolved_keys_max(mut self, most: u32) -> Self {
        self.clients.unresolved_keys_max = Some(most);
        self
    }

    /// Jobs run as in a real process.
    pub(crate) fn jobs(mut self) -> Self {
        self.jobs = true;
        self
    }

    /// With a private Redis.
    pub(crate) fn redis(mut self) -> Self {
        self.redis = true;
        self
    }

    /// With a Redis that asks for a password the shop does not know.
    pub(crate) fn redis_with_another_password(mut self) -> Self {
        self.redis_password = Some("right");
        self.knows_redis_password = false;
        self.redis()
    }

    /// The provider tells the server what happens.
    pub(crate) fn webhooks(mut self) -> Self {
        self.webhooks = true;
        self
    }

    /// Events of ours go nowhere on this machine, as in production.
    pub(crate) fn public_targets_only(mut self) -> Self {
        self.loopback_targets = false;
        self
    }

    /// An account may ask for so much and no more, as in production.
    pub(crate) fn limited(mut self) -> Self {
        self.limited = true;
        self
    }

    /// Mails go to this server.
    pub(crate) fn smtp(mut self, url: &str) -> Self {
        self.smtp_url = Some(url.to_owned());
        self
    }

    pub(super) fn mail(&self) -> Mail {
        Mail {
            smtp_url: self.smtp_url.clone().map(Redacted::new),
            from: "Payonce <shop@payonce.test>".parse().unwrap(),
        }
    }

    /// What events of the provider are signed with.
    pub(crate) fn webhook_secrets(&self) -> Vec<Secret> {
        vec![Secret::new(self.webhook_secret.to_vec())]
    }

    pub(super) fn redis_url(&self, redis: &TestRedis) -> String {
        match self.knows_redis_password {
            true => redis.url(),
            false => redis.url_with_wrong_password(),
        }
    }
}
