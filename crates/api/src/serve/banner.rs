//! What the server says on the standard output once it can be used.

use std::io::{self, Write};
use std::net::SocketAddr;

use crate::config::Settings;
use crate::parts::Parts;

pub(super) fn print(settings: &Settings, parts: &Parts, address: SocketAddr) -> io::Result<()> {
    let shop = base_url(address);
    let mut out = io::stdout().lock();
    writeln!(out, "\nPayonce is at {shop}")?;
    writeln!(out, "  database  {}", parts.database_in_words())?;
    writeln!(out, "  replies   {}", parts.cache_in_words())?;
    match &settings.mail.smtp_url {
        Some(_) => writeln!(out, "  mail      by the server of SMTP_URL")?,
        None => writeln!(out, "  mail      kept here, read it at {shop}/mailbox")?,
    }
    writeln!(out, "Ctrl-C stops it; the data stays.\n")?;
    out.flush()
}

/// A server that listens everywhere is reached at this machine's own address.
pub(super) fn base_url(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => format!("http://127.0.0.1:{}", v4.port()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => format!("http://[::1]:{}", v6.port()),
        other => format!("http://{other}"),
    }
}
