//! Where our events may go: to addresses of the public internet and nowhere else.
//!
//! A merchant names the address, so it must not open what only this machine or its network can
//! reach. The check is made when an endpoint is created, to say no early, and again by the client
//! that connects, because a name may stand for another address by then. Redirects are not
//! followed, and nobody is shown what the receiver said.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use tokio::time::timeout;

/// One attempt, from the look-up of the name to the status line.
pub const ATTEMPT: Duration = Duration::from_secs(10);
const LOOK_UP: Duration = Duration::from_secs(3);
const URL_BYTES_MAX: usize = 2000;

/// The way out for events.
#[derive(Clone)]
pub struct Targets {
    reach: Reach,
    http: reqwest::Client,
}

/// Which addresses may be reached.
#[derive(Debug, Clone, Copy)]
struct Reach {
    loopback: bool,
}

/// Why nothing is sent to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not an absolute URL for the web.
    #[error("Give an absolute URL that begins with https:// or http://, 2000 bytes at most.")]
    Malformed,
    /// A password in a URL would be stored and logged.
    #[error("Leave user and password out; every delivery is signed instead.")]
    Credentials,
    /// The name stands for no address.
    #[error("This host has no address.")]
    Unresolved,
    /// The host is, or its name stands for, an address of some private network.
    #[error("This host is not on the public internet.")]
    Private,
}

impl Targets {
    /// A client of its own, which resolves names under the same rule.
    ///
    /// # Errors
    /// When the client cannot be set up.
    pub fn new(allow_loopback: bool) -> anyhow::Result<Self> {
        let reach = Reach { loopback: allow_loopback };
        // Already installed is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(std::sync::Arc::new(reach))
            .timeout(ATTEMPT)
            .user_agent("Payonce")
            .build()?;
        Ok(Self { reach, http })
    }

    /// Reads an address and looks at everything its host stands for.
    ///
    /// # Errors
    /// Why it cannot be an endpoint.
    pub async fn check(&self, text: &str) -> Result<Url, Refused> {
        let url = self.parse(text)?;
        if let Some(name) = url.domain() {
            self.reach.look_up(name).await?;
        }
        Ok(url)
    }

    /// A request to an endpoint; connecting fails where the address is no longer a public one.
    ///
    /// # Errors
    /// Why it is not even tried.
    pub fn post(&self, text: &str) -> Result<reqwest::RequestBuilder, Refused> {
        Ok(self.http.post(self.parse(text)?))
    }

    /// The client connects to literal addresses without a look-up, so they are judged here.
    fn parse(&self, text: &str) -> Result<Url, Refused> {
        let url = Url::parse(text).map_err(|_| Refused::Malformed)?;
        let is_web = matches!(url.scheme(), "http" | "https");
        // Nobody listens at port 0, and a fragment is never sent.
        let says_more = url.port() == Some(0) || url.fragment().is_some();
        if text.len() > URL_BYTES_MAX || !is_web || says_more {
            return Err(Refused::Malformed);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse();
        match literal {
            Ok(address) if !self.reach.allows(address) => Err(Refused::Private),
            _ => Ok(url),
        }
    }
}

impl Reach {
    /// The addresses of a name, if all of them may be reached.
    async fn look_up(self, name: &str) -> Result<Vec<SocketAddr>, Refused> {
        let found = timeout(LOOK_UP, lookup_host((name, 0))).await;
        let found = found.ok().and_then(Result::ok).ok_or(Refused::Unresolved)?;
        let addresses: Vec<SocketAddr> = found.collect();
        if addresses.is_empty() {
            return Err(Refused::Unresolved);
        }
        match addresses.iter().all(|address| self.allows(address.ip())) {
            true => Ok(addresses),
            false => Err(Refused::Private),
        }
    }

    fn allows(self, address: IpAddr) -> bool {
        let public = match address {
            IpAddr::V4(v4) => is_public_v4(v4),
            IpAddr::V6(v6) => is_public_v6(v6),
        };
        public || (self.loopback && address.is_loopback())
    }
}

impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = *self;
        Box::pin(async move {
            let addresses = reach.look_up(name.as_str()).await;
            let addresses = addresses.map_err(Box::<dyn Error + Send + Sync>::from)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Everything but the blocks that the registry of special addresses keeps for other uses.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = matches!(
        address.octets(),
        // This network, private, loopback, multicast and reserved.
        [0 | 10 | 127 | 224..=255, ..]
            // Shared by carriers, link-local with the clouds' metadata, private.
            | [100, 64..=127, ..] | [169, 254, ..] | [172, 16..=31, ..] | [192, 168, ..]
            // Protocols, 6to4 relays, benchmarks, documentation.
            | [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..]
            | [198, 51, 100, _] | [203, 0, 113, _]
    );
    !special
}

/// Global unicast without the blocks that carry other addresses inside or are for documents.
/// What maps, translates or is private lies outside 2000::/3 anyhow.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Teredo and other protocols, documentation, 6to4.
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(allow_loopback: bool) -> Targets {
        Targets::new(allow_loopback).unwrap()
    }

    const PRIVATE: &[&str] = &[
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://172.16.0.1/",
        "http://172.31.255.255/",
        "http://192.168.1.1/",
        "http://198.18.0.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://[::]/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::10.0.0.1]/",
        "http://[64:ff9b::10.0.0.1]/",
        "http://[64:ff9b:1::1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001::1]/",
        "http://[2001:db8::1]/",
        "http://[fc00::1]/",
        "http://[fd12:3456::1]/",
        "http://[fe80::1]/",
        "http://[ff02::1]/",
    ];

    #[tokio::test]
    async fn private_addresses_are_refused_however_they_are_written() {
        let targets = targets(false);
        for url in PRIVATE {
            assert_eq!(targets.check(url).await.err(), Some(Refused::Private), "{url}");
            assert_eq!(targets.post(url).err(), Some(Refused::Private), "{url} at delivery");
        }
    }

    #[tokio::test]
    async fn a_name_for_a_private_address_is_refused_by_the_look_up_and_by_the_client() {
        let targets = targets(false);
        let url = "http://localhost:9/";
        assert_eq!(targets.check(url).await.err(), Some(Refused::Private));
        let error = targets.post(url).unwrap().send().await.unwrap_err();
        assert!(format!("{error:?}").contains("Private"), "{error:?}");
    }

    #[tokio::test]
    async fn public_addresses_pass() {
        for url in ["https://93.184.215.14/hook", "http://[2606:4700::1111]:8080/"] {
            assert!(targets(false).check(url).await.is_ok(), "{url}");
        }
    }

    #[tokio::test]
    async fn only_the_web_and_no_passwords() {
        let refused = [
            "ftp://93.184.215.14/",
            "file:///etc/passwd",
            "/hook",
            "",
            "https://",
            "https://93.184.215.14:0/",
            "https://93.184.215.14/#hook",
        ];
        for url in refused {
            assert_eq!(targets(false).check(url).await.err(), Some(Refused::Malformed), "{url}");
        }
        let url = "https://user:password@93.184.215.14/";
        assert_eq!(targets(false).check(url).await.err(), Some(Refused::Credentials));
    }

    #[tokio::test]
    async fn loopback_alone_opens_where_it_is_allowed() {
        let targets = targets(true);
        assert!(targets.check("http://127.0.0.1:9/").await.is_ok());
        assert!(targets.check("http://localhost:9/").await.is_ok());
        assert_eq!(targets.check("http://10.0.0.1/").await.err(), Some(Refused::Private));
        let mapped = targets.check("http://[::ffff:127.0.0.1]/").await;
        assert_eq!(mapped.err(), Some(Refused::Private));
    }
}
