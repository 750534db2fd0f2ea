//! What the server says on the standard output once it can be used.

use std::io::{self, Write};
use std::net::SocketAddr;

use reqwest::Url;

use crate::config::Settings;
use crate::parts::Parts;
use crate::serve::base_url;

pub(super) fn print(
    settings: &Settings,
    parts: &Parts,
    shop: SocketAddr,
    provider: Option<SocketAddr>,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let shop = base_url(shop);
    writeln!(out, "\nPayonce is at {shop}")?;
    match (provider, &settings.provider_url) {
        (Some(mock), _) => writeln!(out, "Provider is at {}", base_url(mock))?,
        (None, Some(url)) => writeln!(out, "Provider is at {}", given(url))?,
        (None, None) => (),
    }
    writeln!(out, "\n  database   {}", parts.database_in_words())?;
    writeln!(out, "  replies    {}", parts.cache_in_words())?;
    match &settings.mail.smtp_url {
        Some(_) => writeln!(out, "  mail       sent by the server of SMTP_URL")?,
        None => writeln!(out, "  mail       kept here, see {shop}/mailbox")?,
    }
    writeln!(out, "  API        {shop}/docs")?;
    if settings.demo {
        writeln!(out, "  accounts   shopper@payonce.test, merchant@payonce.test")?;
        writeln!(out, "  password   click-twice-pay-once")?;
    }
    writeln!(out, "\nCtrl-C stops it; the data stays.\n")?;
    out.flush()
}

/// As it was configured: a URL without a path is parsed to one with the path `/`.
fn given(url: &Url) -> &str {
    url.as_str().trim_end_matches('/')
}

pub(super) fn print_provider(provider: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "Provider is at {}", base_url(provider))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_said_as_it_was_given() {
        for url in ["http://127.0.0.1:8081", "https://pay.test/v2", "http://[::1]:1"] {
            assert_eq!(given(&url.parse().unwrap()), url);
        }
    }
}
