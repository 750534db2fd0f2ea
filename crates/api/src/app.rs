//! The one value that all handlers and jobs share.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use actix_web::{FromRequest, HttpRequest, dev::Payload, web};
use idempotency::memory::Memory;
use idempotency::redis::Redis;
use idempotency::sealed::Sealer;
use idempotency::{Claim, Fingerprinter, Finished, Flights, Identity};
use time::OffsetDateTime;
use tokio::runtime::Handle;

use crate::accounts::Sessions;
use crate::budget::Budgets;
use crate::catalog::{Catalogue, demo};
use crate::clock::Clock;
use crate::config::{Limits, Mail, Timing};
use crate::db::{self, Db};
use crate::fault;
use crate::mail::smtp::Mailer;
use crate::operation::{Answer, Lookups, Repeats};
use crate::presses::Presses;
use crate::problem::Problem;
use crate::provider::client::ProviderClient;
use crate::secrets::{Purpose, Secrets};
use crate::telemetry::metrics::looked_up;
use crate::telemetry::trace::Trace;
use crate::webhooks::signature::Secret;
use crate::webhooks::target::Targets;

/// Finished replies kept in memory, in bytes.
const MEMORY_BYTES: u64 = 16 * 1024 * 1024;
/// Keys that may run at once in one process; more are told that it is busy.
const FLIGHTS_MAX: usize = 4096;

/// What the application is made of. Cloning shares it.
#[derive(Clone)]
pub struct App(Arc<Shared>);

/// The shared parts.
pub struct Shared {
    /// Leases, deadlines, lifetimes.
    pub limits: Timing,
    /// What clients may do.
    pub clients: Limits,
    /// The database's time.
    pub clock: Clock,
    /// Connections.
    pub db: Db,
    /// Running executions.
    pub flights: Flights<Answer>,
    /// Whether to expect that a key is known already.
    pub repeats: Repeats,
    /// Look-ups in the database that share a statement.
    pub lookups: Lookups,
    /// What repeats were told, until it is written.
    pub presses: Presses,
    /// Finished replies in memory.
    pub memory: Memory,
    /// Finished replies in Redis, where there is one.
    pub redis: Option<Redis>,
    /// Fingerprints and marks.
    pub fingerprinter: Fingerprinter,
    /// Derived keys.
    pub secrets: Secrets,
    /// The payment provider.
    pub provider: ProviderClient,
    /// What the provider's events are signed with; two while they are changed.
    pub webhook_secrets: Vec<Secret>,
    /// Where our own events may go.
    pub targets: Targets,
    /// The way out for mails.
    pub mailer: Mailer,
    /// Names and prices.
    pub catalogue: Catalogue,
    /// Who a token belongs to.
    pub sessions: Sessions,
    /// How much one account may ask for.
    pub budgets: Budgets,
    /// Demo products, accounts and lab.
    pub demo: bool,
    /// Whether other machines may read the metrics.
    pub metrics_open: bool,
    /// The double-click lab; empty outside demo mode.
    pub lab: std::sync::OnceLock<crate::lab::Lab>,
    runtime: Handle,
}

/// What [`App::new`] is made from.
pub struct Ingredients {
    /// Where the database is.
    pub database_url: String,
    /// How many connections at most.
    pub db_connections: usize,
    /// How many threads serve requests.
    pub threads: usize,
    /// Where Redis is, if anywhere.
    pub redis_url: Option<String>,
    /// The server secret.
    pub secret: [u8; 32],
    /// The payment provider.
    pub provider: ProviderClient,
    /// What the provider's events are signed with.
    pub webhook_secrets: Vec<Secret>,
    /// Whether our own events may go to this machine: for demos and tests.
    pub allow_loopback_webhooks: bool,
    /// Where mails go, and from whom.
    pub mail: Mail,
    /// Leases, deadlines, lifetimes.
    pub limits: Timing,
    /// What clients may do.
    pub clients: Limits,
    /// Demo mode.
    pub demo: bool,
    /// Whether other machines may read the metrics.
    pub metrics_open: bool,
}

impl App {
    /// Puts the parts together. The database must be reachable and migrated.
    ///
    /// # Errors
    /// When it is not, or a URL is malformed.
    pub async fn new(ingredients: Ingredients) -> anyhow::Result<Self> {
        let db =
            Db::new(&ingredients.database_url, ingredients.db_connections, ingredients.threads)?;
        let mut conn = db.connection().await?;
        let clock = Clock::new(database_time(&mut conn).await?);
        let catalogue = Catalogue::load(&mut conn).await?;
        conn.done();
        let secrets = Secrets::new(ingredients.secret);
        let sealer = Sealer::new(&secrets.key(Purpose::Cache));
        let redis = ingredients.redis_url.map(|url| Redis::new(&url, sealer)).transpose()?;
        Ok(Self(Arc::new(Shared {
            limits: ingredients.limits,
            clients: ingredients.clients,
            clock,
            lookups: Lookups::new(db.lane_count()),
            db,
            flights: Flights::new(FLIGHTS_MAX),
            repeats: Repeats::default(),
            presses: Presses::default(),
            memory: Memory::new(memory_bytes()),
            redis,
            fingerprinter: Fingerprinter::new(&secrets.key(Purpose::Fingerprint)),
            secrets,
            provider: ingredients.provider,
            webhook_secrets: ingredients.webhook_secrets,
            targets: Targets::new(ingredients.allow_loopback_webhooks)?,
            mailer: Mailer::new(&ingredients.mail)?,
            catalogue,
            sessions: Sessions::default(),
            budgets: Budgets::new(!ingredients.demo),
            demo: ingredients.demo,
            metrics_open: ingredients.metrics_open,
            lab: std::sync::OnceLock::new(),
            runtime: Handle::current(),
        })))
    }

    /// Runs a task that outlives the request that asked for it.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        spawn(&self.runtime, task);
    }

    /// The same on the thread that asks: whoever waits for it there is not woken by another one.
    pub fn spawn_here(&self, task: impl Future<Output = ()> + Send + 'static) {
        spawn(&Handle::current(), task);
    }

    /// The same for work whose result somebody may wait for.
    pub fn runtime_spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.runtime.spawn(task)
    }

    /// Whether an account with this e-mail exists here: the demo's do only where there is a demo.
    pub fn knows(&self, email: Option<&str>) -> bool {
        self.demo || email.is_none_or(|email| !demo::ACCOUNTS.contains(&email))
    }

    /// Asks the database for the time again.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn set_clock(&self) -> sqlx::Result<()> {
        let mut conn = self.db.connection().await?;
        let time = database_time(&mut conn).await;
        self.clock.set(conn.end(time)?);
        Ok(())
    }

    /// A finished reply out of this process's memory.
    pub fn remembered(&self, identity: &Identity) -> Option<Arc<Finished>> {
        let kept = self.memory.get(identity).map(Arc::new);
        looked_up("memory", kept.is_some());
        kept
    }

    /// A finished reply out of Redis that has not expired. Not asked while hardly a request is a
    /// repeat.
    pub async fn cached(&self, identity: &Identity) -> Option<Finished> {
        let redis = self.redis.as_ref().filter(|_| self.repeats.are_likely())?;
        let Ok(found) = redis.get(identity).await else {
            metrics::counter!("payonce_cache_errors_total").increment(1);
            return None;
        };
        let found = found.filter(|finished| finished.expires_at > self.clock.now());
        looked_up("redis", found.is_some());
        found
    }

    /// Keeps a finished reply in memory for the rest of its life.
    pub fn remember(&self, claim: &Claim, finished: &Finished) {
        self.memory.put(&claim.identity, finished, self.life(finished));
    }

    /// Keeps a finished reply in Redis for the rest of its life. After the commit, off the hot path.
    pub async fn cache(&self, claim: &Claim, finished: &Finished) {
        let Some(redis) = &self.redis else { return };
        if fault::point("before_cache_write").await.is_err() {
            return;
        }
        if redis.put(&claim.identity, finished, self.life(finished)).await.is_err() {
            metrics::counter!("payonce_cache_errors_total").increment(1);
        }
        // The reply is stored whatever happens to the hint.
        let _ = fault::point("after_cache_write").await;
    }

    fn life(&self, finished: &Finished) -> Duration {
        Duration::try_from(finished.expires_at - self.clock.now()).unwrap_or_default()
    }
}

async fn database_time(conn: &mut db::Conn) -> sqlx::Result<OffsetDateTime> {
    sqlx::query_scalar("select clock_timestamp()").fetch_one(&mut **conn).await
}

fn memory_bytes() -> u64 {
    #[cfg(feature = "bench")]
    if crate::bench::is_forgetful() {
        return 0;
    }
    MEMORY_BYTES
}

/// In the span, the trace and the faults of whoever asks.
fn spawn(runtime: &Handle, task: impl Future<Output = ()> + Send + 'static) {
    use tracing::Instrument as _;
    let task = fault::carried(task.instrument(tracing::Span::current()));
    match Trace::current() {
        Some(trace) => runtime.spawn(trace.cover(task)),
        None => runtime.spawn(task),
    };
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl FromRequest for App {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let app = request.app_data::<web::Data<App>>().map(|app| App::clone(app));
        std::future::ready(app.ok_or_else(|| Problem::internal(&"the application is not set up")))
    }
}
