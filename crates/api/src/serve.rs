//! From a command line to a server that answers, and back to nothing left running.

mod banner;
mod web;

use std::net::{SocketAddr, TcpListener};

use actix_web::dev::Server;
use anyhow::{Context, anyhow};
use sqlx::{Connection, PgConnection};
use tokio::select;

use crate::config::Settings;
use crate::parts::Parts;
use crate::stop::Stop;

/// A second Ctrl-C ends the process the way Ctrl-C ends any other.
const INTERRUPTED: i32 = 130;

/// Runs until told to stop, then lets running requests finish and stops what it started.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    let stop = Stop::listen()?;
    // Bound first: a taken port must not cost the start of a database, nor leave one behind.
    let listener = bind(settings.listen, "--port")?;
    let parts = Parts::own(&settings).await?;
    let end = async {
        let served = serve(&settings, &parts, listener, &stop).await;
        let stopped = parts.stop().await;
        served.and(stopped)
    };
    select! {
        ended = end => ended,
        () = stop.asked_again() => std::process::exit(INTERRUPTED),
    }
}

/// Brings the schema up to date; every replica may do so at once.
pub async fn migrate(database_url: &str) -> anyhow::Result<()> {
    let mut connection = PgConnection::connect(database_url).await?;
    sqlx::migrate!("../../migrations")
        .run(&mut connection)
        .await
        .context("The database schema cannot be brought up to date")?;
    Ok(connection.close().await?)
}

async fn serve(
    settings: &Settings,
    parts: &Parts,
    listener: TcpListener,
    stop: &Stop,
) -> anyhow::Result<()> {
    migrate(parts.database_url.expose()).await?;
    let address = listener.local_addr()?;
    let server = web::server(listener, settings, stop.clone())?;
    banner::print(settings, parts, address)?;
    until_asked(server, stop).await
}

async fn until_asked(server: Server, stop: &Stop) -> anyhow::Result<()> {
    let handle = server.handle();
    let mut running = tokio::spawn(server);
    select! {
        ended = &mut running => return ended?.context("The server ended"),
        () = stop.asked() => tracing::info!("stopping: running requests may finish"),
    }
    handle.stop(true).await;
    running.await?.context("The server ended")
}

/// Listens, or says whose turn it is to move.
pub fn bind(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        anyhow!("Nothing can listen on {address} ({error}): choose another port with {flag}, 0 for a free one")
    })
}
