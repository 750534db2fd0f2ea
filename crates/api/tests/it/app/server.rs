//! The real HTTP server in this process, as often as a test wants.

use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;

use actix_web::dev::ServerHandle;
use api::app::{App, Ingredients};
use api::jobs::{self, Jobs};
use api::provider::client::ProviderClient;
use api::serve::{self, web};
use api::stop::Stop;
use api::sweep::schedule::Schedule;
use api::telemetry::metrics;
use tokio::sync::watch;

use super::options::Options;

/// One server with an application of its own.
pub(crate) struct Server {
    pub(crate) app: App,
    pub(crate) address: SocketAddr,
    handle: ServerHandle,
    told: watch::Sender<usize>,
    jobs: Option<Jobs>,
    /// The same socket once more: nobody else gets its port between two servers.
    pub(super) held: Mutex<Option<TcpListener>>,
}

/// What a server is started on.
pub(super) struct Parts<'a> {
    pub(super) database_url: &'a str,
    pub(super) redis_url: Option<String>,
    pub(super) provider_url: &'a str,
    pub(super) secret: [u8; 32],
    pub(super) options: &'a Options,
}

pub(super) async fn start(parts: &Parts<'_>, listener: TcpListener) -> Server {
    metrics::install().unwrap();
    let app = App::new(ingredients(parts)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let held = Mutex::new(Some(listener.try_clone().unwrap()));
    let (told, stop) = Stop::by_hand();
    let threads = web::Threads { workers: 2, grace: parts.options.timing.grace };
    let server = web::server(listener, app.clone(), threads, stop).unwrap();
    let handle = server.handle();
    tokio::spawn(server);
    let jobs =
        parts.options.jobs.then(|| jobs::start(&app, Schedule::new("0 * * * *", None).unwrap()));
    Server { app, address, handle, told, jobs, held }
}

fn ingredients(parts: &Parts<'_>) -> Ingredients {
    let timing = parts.options.timing;
    let http = serve::http().unwrap();
    Ingredients {
        database_url: parts.database_url.to_owned(),
        db_connections: parts.options.db_connections,
        threads: 2,
        redis_url: parts.redis_url.clone(),
        secret: parts.secret,
        provider: ProviderClient::new(parts.provider_url, http, timing.provider_timeout),
        webhook_secrets: parts.options.webhook_secrets(),
        allow_loopback_webhooks: parts.options.loopback_targets,
        mail: parts.options.mail(),
        limits: timing,
        clients: parts.options.clients.clone(),
        demo: !parts.options.limited,
        metrics_open: false,
    }
}

impl Server {
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// As a signal would: running requests finish.
    pub(crate) async fn stop(&self) {
        self.told.send_modify(|times| *times += 1);
        drop(self.held.lock().unwrap().take());
        self.handle.stop(true).await;
        self.app.flights.drained().await;
        self.app.db.close();
    }

    /// Whether its jobs run by themselves.
    pub(crate) fn has_jobs(&self) -> bool {
        self.jobs.is_some()
    }
}
