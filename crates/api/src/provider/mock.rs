//! The mock payment provider: stands for somebody else's system, in a schema of its own.
//!
//! | call | answer |
//! |---|---|
//! | `POST /charges {provider_key, reference, amount, payment_method}` | 201 the charge; the same key again 200 the same charge, 409 `key_in_use` while it is pending, 422 `key_reused` with another body, 409 `cancelled` after a cancel |
//! | `GET /charges?provider_key=&reference=&after=&limit=` | `{"data": [charge]}`, and `"next": id` where a page is full |
//! | `POST /charges/cancel {provider_key}` | 200 the charge: its result, or `cancelled`, after which the key is refused for ever |
//! | `POST /refunds {provider_key, charge, amount, reference}` | 201 the refund, or 409 with the reason it failed for ever; `charge` is an id or a provider key |
//! | `GET /refunds`, `POST /refunds/cancel` | like charges |
//! | `POST /_control`, `GET /_log` | for tests, see `control` |
//!
//! A declined charge is a result like any other: 201 with `status: declined`. 503 `unavailable`
//! promises that nothing was recorded. What a payment method token does is in `card`. An
//! operation runs as a task of its own: a caller that hangs up changes nothing.
//!
//! A charge is committed as pending before it is made. A process that dies in between leaves it
//! so, and the next one to start, or any that runs, completes it.

mod card;
mod charges;
mod connection;
mod control;
mod database;
mod events;
mod refunds;
mod refusal;
mod wire;

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_web::web::{self, Data, JsonConfig, QueryConfig, ServiceConfig};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, dev::ServerHandle};
use anyhow::Context;
use serde::Serialize;
use sqlx::PgPool;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use card::Manner;
use control::Control;
use events::Deliveries;
use refusal::Refusal;

use crate::webhooks::signature::Secret;

/// How long a withheld answer keeps its socket open at most.
const WITHHOLD: Duration = Duration::from_mins(1);
/// How long a cancel waits for a pending charge to reach its result.
const CANCEL_POLL: Duration = Duration::from_millis(100);
const CANCEL_POLLS: u32 = 30;
/// Pending for longer than this means that nobody is at it any more.
const ABANDONED_SECONDS: f64 = 10.0;
const COMPLETE_EVERY: Duration = Duration::from_secs(5);

/// What the provider needs to run.
#[derive(Debug, Clone)]
pub struct MockSettings {
    /// Where its schema `provider` is, or will be made.
    pub database_url: String,
    /// Who is told about charges and refunds. `None`: nobody.
    pub webhook_url: Option<String>,
    /// The first one signs.
    pub webhook_secrets: Vec<Secret>,
    pub webhook_order: WebhookOrder,
}

/// How events arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookOrder {
    /// At once, once, in the order in which things happened.
    Straight,
    /// Sometimes twice, late and out of order, as `seed` has it.
    Shuffled { seed: u64 },
}

/// A provider that serves until it is stopped; hold on to it, its tasks end when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Running {
    address: SocketAddr,
    server: ServerHandle,
    stopping: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// Everything the handlers and tasks share.
struct Mock {
    pool: PgPool,
    /// Operations run here, not on the connection's worker, and so outlive the connection.
    runtime: Handle,
    control: Control,
    deliveries: Option<Deliveries>,
    stopping: watch::Receiver<bool>,
}

/// What an operation came to, and how its answer is to leave.
struct Turn<T> {
    value: T,
    is_first: bool,
    manner: Manner,
}

/// Makes the schema where it is missing, completes what is pending, and serves on `listener`.
pub async fn serve(settings: MockSettings, listener: TcpListener) -> anyhow::Result<Running> {
    let pool = database::open(&settings.database_url).await.context("the provider's database")?;
    let (stopping, stop) = watch::channel(false);
    let mock = Data::new(Mock {
        pool,
        runtime: Handle::current(),
        control: Control::default(),
        deliveries: Deliveries::new(settings)?,
        stopping: stop,
    });
    complete_pending(&mock, 0.0).await;
    let address = listener.local_addr()?;
    let server = start(mock.clone(), listener)?;
    let mut tasks = events::start(&mock);
    tasks.push(tokio::spawn(complete_abandoned(mock)));
    Ok(Running { address, server, stopping, tasks })
}

impl Running {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits for calls in progress, a second at most; withheld ones are cut.
    pub async fn stop(self) {
        self.stopping.send_replace(true);
        self.server.stop(true).await;
        for task in self.tasks {
            task.await.ok();
        }
    }
}

fn start(mock: Data<Mock>, listener: TcpListener) -> anyhow::Result<ServerHandle> {
    let app = move || App::new().app_data(mock.clone()).configure(routes);
    let server = HttpServer::new(app)
        .on_connect(connection::remember)
        .workers(1)
        .shutdown_timeout(1)
        .disable_signals()
        .listen(listener)?
        .run();
    let handle = server.handle();
    tokio::spawn(server);
    Ok(handle)
}

fn routes(app: &mut ServiceConfig) {
    app.app_data(JsonConfig::default().error_handler(|error, _| Refusal::malformed(&error).into()))
        .app_data(
            QueryConfig::default().error_handler(|error, _| Refusal::malformed(&error).into()),
        )
        .route("/charges", web::post().to(charges::create))
        .route("/charges", web::get().to(charges::list))
        .route("/charges/cancel", web::post().to(charges::cancel))
        .route("/refunds", web::post().to(refunds::create))
        .route("/refunds", web::get().to(refunds::list))
        .route("/refunds/cancel", web::post().to(refunds::cancel))
        .route("/_control", web::post().to(control::change))
        .route("/_log", web::get().to(control::log))
        .default_service(web::to(not_found));
}

async fn not_found() -> Result<HttpResponse, Refusal> {
    Err(Refusal::NotFound)
}

async fn complete_abandoned(mock: Data<Mock>) {
    loop {
        tokio::select! {
            () = mock.stopped() => return,
            () = tokio::time::sleep(COMPLETE_EVERY) => complete_pending(&mock, ABANDONED_SECONDS).await,
        }
    }
}

async fn complete_pending(mock: &Mock, older_than_seconds: f64) {
    let charges = charges::complete_pending(mock, older_than_seconds).await;
    let refunds = refunds::complete_pending(mock, older_than_seconds).await;
    if let Err(refusal) = charges.and(refunds) {
        tracing::warn!(%refusal, "what is pending stays so for now");
    }
}

impl Mock {
    /// Runs an operation to its end whether or not anybody still waits for it.
    async fn run<T: Send + 'static>(
        &self,
        operation: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.runtime.spawn(operation).await?
    }

    async fn answer<T: Serialize>(
        &self,
        request: &HttpRequest,
        turn: Turn<T>,
    ) -> Result<HttpResponse, Refusal> {
        match turn.manner {
            Manner::Answered if turn.is_first => Ok(HttpResponse::Created().json(turn.value)),
            Manner::Answered => Ok(HttpResponse::Ok().json(turn.value)),
            Manner::Withheld => Ok(self.withhold().await),
            Manner::Reset => Ok(connection::reset(request)),
            Manner::KeyInUse => Err(Refusal::KeyInUse),
        }
    }

    async fn withhold(&self) -> HttpResponse {
        tokio::time::timeout(WITHHOLD, self.stopped()).await.ok();
        connection::abort()
    }

    /// Also when nobody holds the running provider any more.
    async fn stopped(&self) {
        let mut stopping = self.stopping.clone();
        stopping.wait_for(|stop| *stop).await.map(drop).ok();
    }

    fn wake_deliveries(&self) {
        if let Some(deliveries) = &self.deliveries {
            deliveries.wake();
        }
    }
}

impl<T> Turn<T> {
    fn first(value: T, manner: Manner) -> Self {
        Self { value, is_first: true, manner }
    }

    /// Only a first answer is ever lost.
    fn again(value: T) -> Self {
        Self { value, is_first: false, manner: Manner::Answered }
    }
}

/// Ids of one kind sort by the time they were made.
#[expect(clippy::disallowed_methods, reason = "another system has a clock of its own")]
fn id(prefix: &str) -> String {
    format!("{prefix}_{}", Uuid::now_v7().simple())
}
