//! The `payonce` command: reads the configuration, starts the log, hands over.

use std::io::Write;
use std::process::ExitCode;

use anyhow::anyhow;
use api::config::{self, Command, Config, Settings};
use api::parts::Parts;
use api::reconcile::{self, Reconciled};
use api::{lab, serve, telemetry};
use clap::Parser;
use clap::error::ErrorKind;

/// An order makes a hundred small things and throws them away: glibc takes a quarter of the time that
/// a request costs here for that, and keeps what was freed in pieces that nothing else fits into.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A configuration that cannot work, as opposed to a start that did not.
const WRONG_CONFIGURATION: u8 = 2;
/// Books that could not be compared, as opposed to books that differ.
const PROVIDER_UNREACHABLE: u8 = 2;

fn main() -> ExitCode {
    if lab::child::is_asked() {
        return match lab::child::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&error, ExitCode::FAILURE),
        };
    }
    let settings = match Config::try_parse() {
        Ok(config) => Settings::resolve(config).and_then(with_log),
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            error.exit()
        }
        Err(error) => Err(anyhow!(config::refusal(&error))),
    };
    match settings.map(run) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => complain(&error, ExitCode::FAILURE),
        Err(error) => complain(&error, ExitCode::from(WRONG_CONFIGURATION)),
    }
}

fn with_log(settings: Settings) -> anyhow::Result<Settings> {
    let listeners = if settings.demo { vec![lab::listener()] } else { Vec::new() };
    telemetry::install(&settings.log, listeners)?;
    Ok(settings)
}

/// One runtime of several threads for everything that must outlive the request that began it.
#[tokio::main]
async fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    match settings.command {
        Command::Serve => serve::run(settings).await?,
        Command::Provider => serve::provider::run(settings).await?,
        Command::Migrate => migrate(&settings).await?,
        Command::Sweep => sweep(&settings).await?,
        Command::Openapi => std::io::stdout().write_all(api::openapi::json()?.as_bytes())?,
        Command::Reconcile => return reconcile(&settings).await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn reconcile(settings: &Settings) -> anyhow::Result<ExitCode> {
    Ok(match reconcile::run(settings, &mut std::io::stdout()).await? {
        Reconciled::Equal => ExitCode::SUCCESS,
        Reconciled::Different => ExitCode::FAILURE,
        Reconciled::Unreachable(error) => {
            complain(&error.into(), ExitCode::from(PROVIDER_UNREACHABLE))
        }
    })
}

async fn migrate(settings: &Settings) -> anyhow::Result<()> {
    let parts = Parts::join(settings).await?;
    let migrated = serve::migrate(parts.database_url.expose()).await;
    parts.stop().await?;
    migrated
}

async fn sweep(settings: &Settings) -> anyhow::Result<()> {
    let parts = Parts::join(settings).await?;
    let swept = swept(parts.database_url.expose()).await;
    parts.stop().await?;
    for (kind, rows) in swept?.0 {
        writeln!(std::io::stdout(), "{kind:16} {rows:>9}")?;
    }
    Ok(())
}

async fn swept(database_url: &str) -> anyhow::Result<api::sweep::Swept> {
    let mut conn = api::db::connect(database_url).await?;
    Ok(api::sweep::run_on(&mut conn).await?)
}

fn complain(error: &anyhow::Error, code: ExitCode) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "payonce: {error:#}");
    code
}
