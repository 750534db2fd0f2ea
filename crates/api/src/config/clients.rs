//! What clients may do: from which pages, how slowly, and how much without an outcome.

use std::time::Duration;

use anyhow::bail;
use reqwest::Url;

use super::Clients;

const UNRESOLVED_KEYS_MAX: u32 = 200;

/// The checked limits of clients.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Origins whose pages may call the API.
    pub origins: Vec<String>,
    /// For the head of a request, and again for its body.
    pub patience: Duration,
    /// Unresolved keys of one account; `None` for any number.
    pub unresolved_keys_max: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { origins: Vec::new(), patience: Duration::from_secs(15), unresolved_keys_max: None }
    }
}

impl Limits {
    pub(super) fn resolve(clients: &Clients, demo: bool) -> anyhow::Result<Self> {
        let usual = (!demo).then_some(UNRESOLVED_KEYS_MAX);
        let origins = clients.cors_origins.as_deref().unwrap_or_default().split(',');
        Ok(Self {
            origins: origins
                .map(str::trim)
                .filter(|origin| !origin.is_empty())
                .map(origin)
                .collect::<anyhow::Result<_>>()?,
            patience: clients.patience_ms,
            unresolved_keys_max: clients.unresolved_keys_max.or(usual),
        })
    }
}

/// As browsers write it, or it would match none. A star would be everybody: that is no list.
fn origin(text: &str) -> anyhow::Result<String> {
    let written = Url::parse(text).ok().map(|url| url.origin().ascii_serialization());
    if !text.starts_with("http") || written.as_deref() != Some(text) {
        bail!(
            "--cors-origins cannot be read at {text}: write scheme and host only, as in https://shop.example.com"
        );
    }
    Ok(text.to_owned())
}
