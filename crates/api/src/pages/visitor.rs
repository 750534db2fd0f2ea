//! Who looks at a page: an account behind a cookie, a guest's where nobody signed in.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::AccountId;
use subtle::ConstantTimeEq as _;

use super::cart;
use super::cookies::{self, Cookie};
use super::layout::{Layout, Section};
use super::response;
use crate::accounts::session::{self, Kind, Token};
use crate::accounts::{Account, Role, sql};
use crate::app::App;
use crate::problem::Problem;
use crate::secrets::Purpose;

/// As long as the session behind it.
const LIFE: u64 = 30 * 24 * 3600;

/// Somebody with a session.
pub(super) struct Visitor {
    pub(super) account: Account,
    token: String,
    /// The token of the forms that were drawn for the guest who then signed in to this session.
    before: Option<String>,
    /// The session is new: its cookie has to be set.
    fresh: bool,
}

impl Visitor {
    /// Whoever the request's cookie belongs to.
    pub(super) async fn known(app: &App, request: &HttpRequest) -> Result<Option<Self>, Problem> {
        let Some(token) = cookies::read(request.headers(), cookies::SESSION) else {
            return Ok(None);
        };
        let account = app.sessions.account(app, Kind::Cookie, token).await?;
        let before = cookies::read(request.headers(), cookies::BEFORE)
            .and_then(|cookie| forms_before(app, token, cookie));
        Ok(account.map(|account| Self { account, token: token.to_owned(), before, fresh: false }))
    }

    /// The same; a stranger becomes a guest, with an account to keep keys and carts under.
    pub(super) async fn greet(app: &App, request: &HttpRequest) -> Result<Self, Problem> {
        match Self::known(app, request).await? {
            Some(visitor) => Ok(visitor),
            None => Self::guest(app).await,
        }
    }

    /// Whoever just signed in: a token of its own, so that one planted before is worth nothing.
    /// What was drawn for the guest in this browser may still be sent.
    pub(super) async fn signed_in(app: &App, token: Token, was: &Self) -> Result<Self, Problem> {
        let account = app.sessions.account(app, Kind::Cookie, &token.text).await?;
        let account = account.ok_or_else(|| Problem::internal(&"a session that just began"))?;
        let before = if was.is_guest() { Some(was.csrf(app)) } else { was.before.clone() };
        Ok(Self { account, token: token.text, before, fresh: true })
    }

    async fn guest(app: &App) -> Result<Self, Problem> {
        let id = AccountId::from_uuid(app.clock.new_id());
        let now = app.clock.now();
        let mut tx = app.db.begin().await?;
        sql::insert_guest(&mut tx, id.uuid(), now).await?;
        let token = session::open(app, &mut tx, id, Kind::Cookie).await?;
        tx.commit().await?;
        let account = Account { id, role: Role::Guest, email: None, name: None, created_at: now };
        Ok(Self { account, token: token.text, before: None, fresh: true })
    }

    pub(super) fn is_guest(&self) -> bool {
        self.account.role == Role::Guest
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// The token of this session's forms. Another session's forms carry another.
    pub(super) fn csrf(&self, app: &App) -> String {
        URL_SAFE_NO_PAD.encode(app.secrets.sign(Purpose::Csrf, &[self.token.as_bytes()]))
    }

    /// Whether a form was drawn for this session, or for the guest who signed in to it.
    pub(super) fn csrf_fits(&self, app: &App, sent: &str) -> bool {
        let is_sent = |token: &str| bool::from(token.as_bytes().ct_eq(sent.as_bytes()));
        is_sent(&self.csrf(app)) || self.before.as_deref().is_some_and(is_sent)
    }

    /// The frame of a page for this visitor.
    pub(super) async fn layout(
        &self,
        app: &App,
        request: &HttpRequest,
        section: Section,
    ) -> Result<Layout, Problem> {
        let mut conn = app.db.connection().await?;
        let count = cart::sql::count(&mut conn, self.account.id).await;
        let account = &self.account;
        let name = account.name.clone().or_else(|| account.email.clone());
        Ok(Layout {
            csrf: self.csrf(app),
            cart_count: Some(conn.end(count)?),
            signed_in: name.filter(|_| !self.is_guest()),
            merchant: account.is_merchant(),
            ..Layout::bare(request, section)
        })
    }

    /// A page, with the cookie if the session is new.
    pub(super) fn show(&self, request: &HttpRequest, page: &impl Template) -> HttpResponse {
        self.remember(request, response::html(StatusCode::OK, page))
    }

    /// Adds the cookie if the session is new.
    pub(super) fn remember(
        &self,
        request: &HttpRequest,
        mut response: HttpResponse,
    ) -> HttpResponse {
        if self.fresh {
            let cookie =
                Cookie { name: cookies::SESSION, value: &self.token, path: "/", life: LIFE };
            cookie.set(request, &mut response);
        }
        response
    }

    /// The same after a sign-in, with the word that the guest's forms are still good.
    pub(super) fn enter(&self, app: &App, request: &HttpRequest, to: &str) -> HttpResponse {
        let mut response = self.remember(request, response::see_other(to));
        if let Some(before) = &self.before {
            let value = format!("{before}.{}", vouch(app, &self.token, before));
            let cookie = Cookie { name: cookies::BEFORE, value: &value, path: "/", life: LIFE };
            cookie.set(request, &mut response);
        }
        response
    }
}

/// The forms' token in the cookie, if this server wrote it there for this very session.
fn forms_before(app: &App, session: &str, cookie: &str) -> Option<String> {
    let (before, seal) = cookie.split_once('.')?;
    let ours = bool::from(vouch(app, session, before).as_bytes().ct_eq(seal.as_bytes()));
    ours.then(|| before.to_owned())
}

/// Binds the forms of a guest to the session that the guest signed in to: planted in another
/// browser, or kept for another session, it is worth nothing.
fn vouch(app: &App, session: &str, before: &str) -> String {
    let parts = [b"before", session.as_bytes(), before.as_bytes()];
    URL_SAFE_NO_PAD.encode(app.secrets.sign(Purpose::Csrf, &parts))
}
