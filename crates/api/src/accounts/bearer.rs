//! `Authorization: Bearer …`: the only way into the API. Cookies open nothing here.

use actix_web::dev::Payload;
use actix_web::http::header::{self, HeaderMap};
use actix_web::{FromRequest, HttpRequest};
use futures_util::future::LocalBoxFuture;

use super::session::Kind;
use super::{Account, Role};
use crate::app::App;
use crate::problem::{Code, Problem};

/// The account behind the bearer token of a request.
///
/// # Errors
/// `unauthenticated` when there is none.
pub async fn authenticate(app: &App, headers: &HeaderMap) -> Result<Account, Problem> {
    let token = token(headers).ok_or_else(missing)?;
    app.sessions.account(app, Kind::Bearer, &token).await?.ok_or_else(missing)
}

/// In a handler that takes an account, who asks is the first question of all.
impl FromRequest for Account {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let app = App::extract(&request).await?;
            authenticate(&app, request.headers()).await
        })
    }
}

/// Nothing, for a merchant.
///
/// # Errors
/// `forbidden` for anybody else.
pub fn merchants_only(account: &Account) -> Result<(), Problem> {
    if account.may(Some(Role::Merchant)) { Ok(()) } else { Err(forbidden()) }
}

/// The token itself. Of two lines nobody knows which one a proxy has looked at: neither counts.
pub fn token(headers: &HeaderMap) -> Option<String> {
    let mut lines = headers.get_all(header::AUTHORIZATION);
    let value = lines.next().filter(|_| lines.next().is_none())?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// Nobody we know.
pub fn missing() -> Problem {
    Problem::new(
        Code::Unauthenticated,
        "Send Authorization: Bearer with a token from POST /v1/sessions.",
    )
    .header(header::WWW_AUTHENTICATE, "Bearer realm=\"payonce\"")
}

/// Somebody we know, but not for this.
pub fn forbidden() -> Problem {
    let merchant = Role::Merchant.as_str();
    Problem::new(Code::Forbidden, format!("Only an account with the role {merchant} may do this."))
        .member("role", merchant)
}
