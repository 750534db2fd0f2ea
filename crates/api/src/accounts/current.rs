//! Sign in, sign out, who am I. The first two are exempt from keys: a token must never be stored
//! in a reply that can be replayed, and signing out twice is the same as once.

use actix_web::{HttpRequest, HttpResponse, web};
use domain::AccountId;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::session::{self, Kind, Token};
use super::{Account, AccountBody, bearer, password, sql};
use crate::app::App;
use crate::guard;
use crate::problem::{Code, Problem};

/// What somebody signs in with.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// Upper and lower case are the same.
    #[schema(example = "shopper@payonce.test", max_length = 254)]
    pub email: String,
    /// The account's password.
    #[schema(example = "click-twice-pay-once", max_length = 200, format = Password)]
    pub password: String,
}

/// A token, shown once.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionBody {
    /// Send it as `Authorization: Bearer …`.
    pub token: String,
    /// When it ends.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: OffsetDateTime,
}

/// Signs in
#[utoipa::path(
    post, path = "/v1/sessions", tag = "Accounts", security(),
    request_body = CreateSession,
    responses((status = 201, description = "A token", body = SessionBody)),
)]
pub async fn create_session(
    app: App,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let document = guard::exempt_body(&request, payload).await?;
    let wish: CreateSession = guard::parse(&document)?;
    let Token { text, expires_at } = sign_in(&app, &wish, Kind::Bearer).await?;
    Ok(HttpResponse::Created()
        .insert_header(("cache-control", "no-store"))
        .json(SessionBody { token: text, expires_at }))
}

/// Opens a session for somebody who knows the password.
///
/// # Errors
/// `unauthenticated`, in the same words and time for a wrong password and an unknown e-mail.
pub async fn sign_in(app: &App, wish: &CreateSession, kind: Kind) -> Result<Token, Problem> {
    if wish.password.chars().count() > 200 {
        return Err(Problem::invalid("/password", "A password has 10 to 200 characters."));
    }
    let email = wish.email.trim().to_lowercase();
    app.budgets.sign_in(&email)?;
    let mut conn = app.db.connection().await?;
    let found = sql::by_email(&mut conn, &email).await;
    let (account, hash) = conn.end(found)?.unzip();
    let fits = password::verify(wish.password.clone(), hash).await?;
    let Some(account) = account.filter(|_| fits && app.knows(Some(&email))) else {
        return Err(Problem::new(Code::Unauthenticated, "E-mail and password do not fit."));
    };
    let mut conn = app.db.connection().await?;
    let token = session::open(app, &mut conn, account.id, kind).await;
    Ok(conn.end(token)?)
}

/// Signs out
#[utoipa::path(
    delete, path = "/v1/sessions/current", tag = "Accounts",
    responses((status = 204, description = "The token is of no use any more")),
)]
pub async fn delete_session(
    app: App,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    bearer::authenticate(&app, request.headers()).await?;
    guard::exempt_no_body(&request, payload).await?;
    let token = bearer::token(request.headers()).ok_or_else(bearer::missing)?;
    let mut conn = app.db.connection().await?;
    let closed = session::close(&app, &mut conn, &token).await;
    conn.end(closed)?;
    Ok(HttpResponse::NoContent().finish())
}

/// Tells who asks
#[utoipa::path(
    get, path = "/v1/accounts/me", tag = "Accounts",
    responses((status = 200, description = "The account of the token", body = AccountBody)),
)]
pub async fn get_account(account: Account) -> HttpResponse {
    HttpResponse::Ok().json(AccountBody::from(account))
}

/// Shows one's own account
///
/// What a key that made an account leads to. Anybody else's is not there.
#[utoipa::path(
    get, path = "/v1/accounts/{id}", tag = "Accounts",
    params(("id" = String, Path, example = "acc_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses((status = 200, description = "The account of the token", body = AccountBody)),
)]
pub async fn get_account_by_id(
    account: Account,
    id: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    if id.parse::<AccountId>() != Ok(account.id) {
        return Err(Problem::not_found());
    }
    Ok(HttpResponse::Ok().json(AccountBody::from(account)))
}
