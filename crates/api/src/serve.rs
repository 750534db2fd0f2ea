//! From a command line to a server that answers, and back to nothing left running.
//!
//! Order of the start: ports, database and cache, schema, provider, shop. The stop is the same
//! backwards; running requests finish before anything they stand on goes.

mod banner;
pub(crate) mod cors;
mod head;
mod patience;
pub mod provider;
pub mod web;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_web::dev::Server;
use anyhow::{Context, anyhow};
use sqlx::Connection;
use tokio::select;
use tokio::time::timeout;

use crate::app::{App, Ingredients};
use crate::catalog::demo;
use crate::config::Settings;
use crate::lab::{Lab, Recipe};
use crate::parts::Parts;
use crate::provider::client::ProviderClient;
use crate::provider::mock::Running;
use crate::stop::Stop;
use crate::{db, jobs, presses, routes, telemetry};

/// Bound before anything else: a taken port must not cost the start of a database.
struct Ports {
    shop: TcpListener,
    /// Unless the provider runs elsewhere.
    provider: Option<TcpListener>,
}

/// `payonce serve`: until told to stop.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    let stop = Stop::listen()?;
    let ports = Ports::bind(&settings)?;
    let parts = Parts::own(&settings).await?;
    let work = async {
        let served = serve(&settings, &parts, ports, &stop).await;
        served.and(parts.stop().await)
    };
    stop.patient(Box::pin(work)).await
}

/// Brings the schema up to date; every replica may do so at once.
pub async fn migrate(database_url: &str) -> anyhow::Result<()> {
    let mut connection = db::connect(database_url).await?;
    sqlx::migrate!("../../migrations")
        .run(&mut connection)
        .await
        .context("The database schema cannot be brought up to date")?;
    Ok(connection.close().await?)
}

async fn serve(
    settings: &Settings,
    parts: &Parts,
    ports: Ports,
    stop: &Stop,
) -> anyhow::Result<()> {
    migrate(parts.database_url.expose()).await?;
    let shop = ports.shop.local_addr()?;
    let provider = match ports.provider {
        Some(listener) => Some(provider::start(settings, parts, listener, shop).await?),
        None => None,
    };
    routes::api().check()?;
    telemetry::metrics::install()?;
    let app = application(settings, parts, provider.as_ref()).await?;
    let threads = web::Threads { workers: settings.workers, grace: settings.timing.grace };
    let server = web::server(ports.shop, app.clone(), threads, stop.clone())?;
    let running_jobs = jobs::start(&app, settings.sweep.clone());
    banner::print(settings, parts, shop, provider.as_ref().map(Running::address))?;
    let served = until_asked(server, &app, settings.timing.grace, stop).await;
    drop(running_jobs);
    if let Err(error) = presses::write(&app).await {
        tracing::debug!(%error, "the last repeats stay untold");
    }
    if let Some(lab) = app.lab.get() {
        lab.stop().await;
    }
    app.db.close();
    if let Some(provider) = provider {
        provider.stop().await;
    }
    served
}

/// The application on its parts, with demo data if it is a demo.
async fn application(
    settings: &Settings,
    parts: &Parts,
    mock: Option<&Running>,
) -> anyhow::Result<App> {
    let provider = match (mock, &settings.provider_url) {
        (Some(mock), _) => base_url(mock.address()),
        (None, Some(url)) => url.to_string(),
        (None, None) => return Err(anyhow!("There is no payment provider: set PROVIDER_URL")),
    };
    let app = App::new(Ingredients {
        database_url: parts.database_url.expose().clone(),
        db_connections: settings.db_connections,
        threads: settings.workers,
        redis_url: parts.redis_url.as_ref().map(|url| url.expose().clone()),
        secret: *parts.secret.expose(),
        provider: ProviderClient::new(&provider, http()?, settings.timing.provider_timeout),
        webhook_secrets: parts.webhook_secrets.clone(),
        allow_loopback_webhooks: settings.allow_loopback_webhooks,
        mail: settings.mail.clone(),
        limits: settings.timing,
        clients: settings.clients.clone(),
        demo: settings.demo,
        metrics_open: settings.metrics_open,
    })
    .await?;
    if settings.demo {
        let mut conn = app.db.connection().await?;
        demo::insert(&mut conn, &app.clock).await?;
        app.catalogue.reload(&mut conn).await?;
        conn.done();
        app.lab.get_or_init(|| lab(parts));
    }
    Ok(app)
}

/// Costs nothing until somebody enters it.
fn lab(parts: &Parts) -> Lab {
    Lab::new(Recipe {
        database_url: parts.database_url.expose().clone(),
        redis_url: parts.redis_url.as_ref().map(|url| url.expose().clone()),
        program: std::env::current_exe().unwrap_or_else(|_| "payonce".into()),
        crowd: 1000,
    })
}

/// A client that goes where it is sent and nowhere else.
pub fn http() -> anyhow::Result<reqwest::Client> {
    // Already installed is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    Ok(client)
}

/// Serves until told to stop, then answers what is running.
async fn until_asked(
    server: Server,
    app: &App,
    grace: Duration,
    stop: &Stop,
) -> anyhow::Result<()> {
    let handle = server.handle();
    let mut running = tokio::spawn(server);
    select! {
        ended = &mut running => return ended?.context("The server ended"),
        () = stop.asked() => tracing::info!("stopping: running requests may finish"),
    }
    let drained = async {
        // Work ends with the thread that it runs on, and a thread with its last connection. Work
        // whose client hung up is nobody's connection any more, but it is still work.
        app.flights.attended().await;
        handle.stop(true).await;
        app.flights.drained().await;
    };
    if timeout(grace, drained).await.is_err() {
        tracing::warn!("stopping with requests unfinished: their keys say how far they came");
    }
    Ok(())
}

impl Ports {
    fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let shop = bind(settings.listen, "--port")?;
        let provider = match settings.provider_url {
            Some(_) => None,
            None => Some(bind(settings.provider_listen, "--provider-port")?),
        };
        Ok(Self { shop, provider })
    }
}

/// Listens, or says what to do.
fn bind(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        anyhow!(
            "Nothing can listen on {address} ({error}): choose another port with {flag}, 0 for \
             a free one"
        )
    })
}

/// A server that listens everywhere is reached at this machine's own address.
fn base_url(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => format!("http://127.0.0.1:{}", v4.port()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => format!("http://[::1]:{}", v6.port()),
        other => format!("http://{other}"),
    }
}
