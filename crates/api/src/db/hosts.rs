//! Several servers in one URL, of which one takes writes: `postgres://user@one,two:5433/shop`.
//!
//! The hosts are tried in turn, beginning with the one that was last found good. Where there is
//! more than one, only a server that is not in recovery is accepted, so that after a failover the
//! next connections find the new primary by themselves.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};

/// How long one of several hosts may take, so that a silent one leaves time for the next.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Where the database may be. Cloning shares which host was last found good.
#[derive(Debug, Clone)]
pub struct Hosts {
    all: Arc<[PgConnectOptions]>,
    last: Arc<AtomicUsize>,
}

impl FromStr for Hosts {
    type Err = anyhow::Error;

    fn from_str(url: &str) -> anyhow::Result<Self> {
        let urls = each(url).context("it has no host")?;
        let options = |url: &String| {
            // A notice that nobody logs makes the log forget the event after it.
            let quiet = [("client_min_messages", "warning")];
            PgConnectOptions::from_str(url).map(|options| options.options(quiet))
        };
        let all = urls.iter().map(options).collect::<Result<Vec<_>, _>>()?;
        ensure!(!all.is_empty(), "it has no host");
        Ok(Self { all: all.into(), last: Arc::default() })
    }
}

impl Hosts {
    /// The same hosts with other options.
    pub fn map(self, change: impl Fn(PgConnectOptions) -> PgConnectOptions) -> Self {
        Self { all: self.all.iter().cloned().map(change).collect(), last: self.last }
    }

    /// All of them, as they were given.
    pub fn all(&self) -> &[PgConnectOptions] {
        &self.all
    }

    /// A connection to a server that takes writes.
    ///
    /// # Errors
    /// Why the last host that was tried is not one.
    pub async fn connect(&self) -> sqlx::Result<PgConnection> {
        if let [only] = &*self.all {
            return only.connect().await;
        }
        let first = self.last.load(Ordering::Relaxed);
        let mut failure = sqlx::Error::PoolTimedOut;
        for step in 0..self.all.len() {
            let at = (first + step) % self.all.len();
            match tokio::time::timeout(PATIENCE, primary(&self.all[at])).await {
                Ok(Ok(connection)) => {
                    self.last.store(at, Ordering::Relaxed);
                    return Ok(connection);
                }
                Ok(Err(error)) => failure = error,
                Err(_) => failure = away("a host did not answer in time"),
            }
        }
        Err(failure)
    }
}

async fn primary(options: &PgConnectOptions) -> sqlx::Result<PgConnection> {
    let mut connection = options.connect().await?;
    let in_recovery: bool =
        sqlx::query_scalar("select pg_is_in_recovery()").fetch_one(&mut connection).await?;
    if in_recovery {
        connection.close().await?;
        return Err(away("no host takes writes"));
    }
    Ok(connection)
}

/// The server is not there: the same kind of failure as a refused connection.
fn away(why: &'static str) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::NotConnected, why))
}

/// One URL for each host of a URL.
fn each(url: &str) -> Option<Vec<String>> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    Some(hosts.split(',').map(|host| format!("{scheme}://{user}{host}{tail}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(url: &str) -> Vec<(String, u16)> {
        let hosts: Hosts = url.parse().unwrap();
        hosts.all().iter().map(|at| (at.get_host().to_owned(), at.get_port())).collect()
    }

    #[test]
    fn every_host_has_the_user_and_the_database_of_the_url() {
        let url = "postgres://shop:a%40b@one,two:5433,three/payonce?sslmode=disable";
        assert_eq!(
            places(url),
            [("one".into(), 5432), ("two".into(), 5433), ("three".into(), 5432)]
        );
        let hosts: Hosts = url.parse().unwrap();
        for at in hosts.all() {
            assert_eq!((at.get_username(), at.get_database()), ("shop", Some("payonce")));
        }
    }

    #[test]
    fn one_host_or_a_socket_is_what_it_always_was() {
        assert_eq!(places("postgres://u@db/shop"), [("db".into(), 5432)]);
        let socket: Hosts = "postgres://u@localhost/shop?host=/run/pg".parse().unwrap();
        assert!(socket.all()[0].get_socket().is_some());
        assert!("shop".parse::<Hosts>().is_err());
    }
}
