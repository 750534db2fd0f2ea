//! The mock provider: beside the shop in this process, or alone in one of its own.

use std::net::{SocketAddr, TcpListener};

use crate::config::Settings;
use crate::parts::Parts;
use crate::provider::mock::{self, MockSettings, Running, WebhookOrder};
use crate::serve::{base_url, bind};
use crate::stop::Stop;

/// Where a provider that runs alone finds the shop unless it is told.
const SHOP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

/// `payonce provider`: until told to stop.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    let stop = Stop::listen()?;
    let listener = bind(settings.provider_listen, "--provider-port")?;
    let parts = Parts::join(&settings).await?;
    let work = async {
        let served = alone(&settings, &parts, listener, &stop).await;
        served.and(parts.stop().await)
    };
    stop.patient(Box::pin(work)).await
}

async fn alone(
    settings: &Settings,
    parts: &Parts,
    listener: TcpListener,
    stop: &Stop,
) -> anyhow::Result<()> {
    let provider = start(settings, parts, listener, SHOP).await?;
    super::banner::print_provider(provider.address())?;
    stop.asked().await;
    provider.stop().await;
    Ok(())
}

/// Its events go to `shop` unless PROVIDER_WEBHOOK_URL says otherwise.
pub(super) async fn start(
    settings: &Settings,
    parts: &Parts,
    listener: TcpListener,
    shop: SocketAddr,
) -> anyhow::Result<Running> {
    let told = settings.provider_webhook_url.as_ref().map(ToString::to_string);
    let webhook_url = told.unwrap_or_else(|| format!("{}/v1/webhooks/provider", base_url(shop)));
    let mock = MockSettings {
        database_url: parts.database_url.expose().clone(),
        webhook_url: Some(webhook_url),
        webhook_secrets: parts.webhook_secrets.clone(),
        webhook_order: WebhookOrder::Shuffled { seed: rand::random() },
    };
    mock::serve(mock, listener).await
}
