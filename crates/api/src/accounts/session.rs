//! Sessions: random tokens, stored as hashes, looked up from memory for five seconds at most.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::AccountId;
use moka::sync::Cache;
use rand::TryRngCore as _;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::{Account, sql};
use crate::app::App;
use crate::db;

/// How long another process may still honour a token that was signed out here.
const KEPT: Duration = Duration::from_secs(5);
const KEPT_MAX: u64 = 100_000;

/// What a token is for: bearer tokens open the API, cookies open pages, never the other way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `Authorization: Bearer`
    Bearer,
    /// The cookie of the pages.
    Cookie,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::Cookie => "cookie",
        }
    }

    fn life(self) -> Duration {
        match self {
            Self::Bearer => Duration::from_hours(24),
            Self::Cookie => Duration::from_hours(30 * 24),
        }
    }
}

/// A token that was just made. It is shown once and stored nowhere.
pub struct Token {
    /// The text for the client.
    pub text: String,
    /// When it ends.
    pub expires_at: OffsetDateTime,
}

/// The accounts behind recently seen tokens.
pub struct Sessions {
    accounts: Cache<(Kind, [u8; 32]), Account>,
    /// Counts sign-outs: a look-up that began before one must not bring the account back.
    closed: AtomicU64,
}

impl Default for Sessions {
    fn default() -> Self {
        let accounts = Cache::builder().max_capacity(KEPT_MAX).time_to_live(KEPT).build();
        Self { accounts, closed: AtomicU64::new(0) }
    }
}

impl Sessions {
    /// The account behind a token, if it is good.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn account(
        &self,
        app: &App,
        kind: Kind,
        token: &str,
    ) -> sqlx::Result<Option<Account>> {
        let hash = hashed(token);
        if let Some(account) = self.accounts.get(&(kind, hash)) {
            return Ok(Some(account));
        }
        let closed = self.closed.load(Ordering::Acquire);
        let mut conn = app.db.connection().await?;
        let found = sql::by_session(&mut conn, &hash, kind.as_str());
        let account = db::answered(db::SILENCE, found).await;
        let account = conn.end(account)?;
        let account = account.filter(|account| app.knows(account.email.as_deref()));
        if let Some(account) = &account
            && self.closed.load(Ordering::Acquire) == closed
        {
            self.accounts.insert((kind, hash), account.clone());
        }
        Ok(account)
    }

    /// Forgets a token at once in this process.
    pub fn forget(&self, token: &str) {
        self.closed.fetch_add(1, Ordering::AcqRel);
        for kind in [Kind::Bearer, Kind::Cookie] {
            self.accounts.invalidate(&(kind, hashed(token)));
        }
    }
}

/// Opens a session.
///
/// # Errors
/// Those of the database.
pub async fn open(
    app: &App,
    conn: &mut PgConnection,
    account: AccountId,
    kind: Kind,
) -> sqlx::Result<Token> {
    let mut random = [0; 32];
    rand::rngs::OsRng
        .try_fill_bytes(&mut random)
        .map_err(|error| sqlx::Error::Io(std::io::Error::other(error)))?;
    let text = URL_SAFE_NO_PAD.encode(random);
    let now = app.clock.now();
    let expires_at = now + kind.life();
    sql::insert_session(conn, &hashed(&text), account, kind.as_str(), (now, expires_at)).await?;
    Ok(Token { text, expires_at })
}

/// Closes a session, here at once and elsewhere within five seconds.
///
/// # Errors
/// Those of the database.
pub async fn close(app: &App, conn: &mut PgConnection, token: &str) -> sqlx::Result<()> {
    sql::delete_session(conn, &hashed(token)).await?;
    app.sessions.forget(token);
    Ok(())
}

fn hashed(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}
