//! `/sign-in`: signing in, signing out, and making an account.

mod sql;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use idempotency::Scope;
use serde::{Deserialize, Serialize};

use super::cookies::{self, Cookie};
use super::keyed;
use super::layout::{Layout, Section};
use super::marks::{Mark, Notice};
use super::posted::{self, Again, Fields, Form, Posted, Received};
use super::response::{self, Detour, Shown};
use super::visitor::Visitor;
use crate::accounts::create::{Create, CreateAccount};
use crate::accounts::current::{self, CreateSession};
use crate::accounts::session::{self, Kind};
use crate::app::App;
use crate::operation::{self, Answer, Asked};
use crate::problem::{Code, Problem};

#[derive(Debug, Template)]
#[template(path = "sign-in.html")]
pub struct SignIn {
    pub page: Layout,
    /// Where to go afterwards.
    pub back: String,
    pub email: String,
    /// The key of the form that makes an account.
    pub key: String,
    pub notice: Option<Notice>,
    /// Whether the demo accounts exist and may be named.
    pub demo: bool,
}

/// Where to go after signing in.
#[derive(Deserialize)]
pub(super) struct Wish {
    back: Option<String>,
}

/// `GET /sign-in`
pub(super) async fn show_sign_in(
    app: App,
    request: HttpRequest,
    wish: web::Query<Wish>,
) -> HttpResponse {
    let shown = async {
        let visitor = Visitor::greet(&app, &request).await?;
        let back = wish.back.as_deref().map_or("/", posted::local);
        draw(&app, &request, &visitor, Draft { back, email: "", refused: None }).await
    };
    response::answer(&request, shown.await)
}

/// `POST /sign-in`
pub(super) async fn sign_in(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    let shown = async {
        let Posted { visitor, fields } = Posted::take(&app, &request, form, AGAIN).await?;
        enter(&app, &request, &visitor, &fields).await
    };
    response::answer(&request, shown.await)
}

/// `POST /accounts`: makes an account under the form's key, then signs in to it.
pub(super) async fn create_account(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    let shown = async {
        let Posted { visitor, fields } = Posted::take(&app, &request, form, AGAIN).await?;
        match create(&app, &fields).await {
            Ok(()) => enter(&app, &request, &visitor, &fields).await,
            Err(problem) => refuse(&app, &request, &visitor, &fields, problem).await,
        }
    };
    response::answer(&request, shown.await)
}

/// `POST /sign-out`: twice is the same as once.
pub(super) async fn sign_out(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    response::answer(&request, leave(&app, &request, form).await)
}

const AGAIN: Again<'static> = Again { page: "/sign-in", form: None };

/// What the forms hold when they are drawn.
struct Draft<'a> {
    back: &'a str,
    email: &'a str,
    refused: Option<&'a str>,
}

async fn draw(
    app: &App,
    request: &HttpRequest,
    visitor: &Visitor,
    draft: Draft<'_>,
) -> Result<HttpResponse, Detour> {
    let page = SignIn {
        page: visitor.layout(app, request, Section::Elsewhere).await?,
        back: draft.back.to_owned(),
        email: draft.email.to_owned(),
        key: keyed::of_session(app, visitor.token()),
        notice: draft.refused.map(|says| Notice::new(Mark::Refused, says, "")),
        demo: app.demo,
    };
    let status = match draft.refused {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    Ok(visitor.remember(request, response::html(status, &page)))
}

/// Opens a session with a new token. The guest's session stays what it is, a guest's, so that a
/// second press of the same form signs in as well.
async fn enter(app: &App, request: &HttpRequest, visitor: &Visitor, fields: &Fields) -> Shown {
    let wish = CreateSession {
        email: fields.get("email").to_owned(),
        password: fields.get("password").to_owned(),
    };
    let token = match current::sign_in(app, &wish, Kind::Cookie).await {
        Ok(token) => token,
        Err(problem) => return refuse(app, request, visitor, fields, problem).await,
    };
    let entered = Visitor::signed_in(app, token, visitor).await?;
    if visitor.is_guest() {
        let mut tx = app.db.begin().await?;
        let now = app.clock.now();
        sql::move_belongings(&mut tx, visitor.account.id, entered.account.id, now).await?;
        tx.commit().await?;
    }
    Ok(entered.enter(app, request, fields.back()))
}

async fn refuse(
    app: &App,
    request: &HttpRequest,
    visitor: &Visitor,
    fields: &Fields,
    problem: Problem,
) -> Shown {
    let words = match problem.code {
        Code::Unauthenticated | Code::ValidationFailed => problem.detail(),
        // The same e-mail with another password: somebody has it already.
        Code::EmailTaken | Code::IdempotencyKeyReused | Code::IdempotencyKeyExpired => {
            "An account with this e-mail exists. Sign in instead."
        }
        _ => return Err(problem.into()),
    };
    let draft = Draft { back: fields.back(), email: fields.get("email"), refused: Some(words) };
    draw(app, request, visitor, draft).await
}

async fn create(app: &App, fields: &Fields) -> Result<(), Problem> {
    let name = fields.get("name").trim();
    let body = CreateAccount {
        email: fields.get("email").to_owned(),
        password: fields.get("password").to_owned(),
        name: (!name.is_empty()).then(|| name.to_owned()),
    };
    let asked = ask(app, fields, &body)?;
    match operation::perform(app, asked, Create { body: Ok(body) }).await {
        Answer::Finished(finished, _) if finished.reply.status() == 201 => Ok(()),
        Answer::Finished(..) => Err(Problem::new(Code::EmailTaken, "")),
        Answer::Problem(problem) => Err(Problem::clone(&problem)),
    }
}

/// Whoever has no account yet is known by the e-mail that the account is to have.
fn ask(app: &App, fields: &Fields, body: &CreateAccount) -> Result<Asked, Problem> {
    #[derive(Serialize)]
    struct Sent<'a> {
        email: &'a str,
        password: &'a str,
        name: Option<&'a str>,
    }
    let scope = Scope::digest(body.email.trim().to_lowercase().as_bytes());
    let key = keyed::read(fields.get("idempotency_key"))?;
    let sent = Sent { email: &body.email, password: &body.password, name: body.name.as_deref() };
    keyed::ask(app, scope, key, "/v1/accounts", Some(&sent))
}

async fn leave(app: &App, request: &HttpRequest, form: Form) -> Shown {
    let visitor = match Received::of(app, request, form).await? {
        Received::Ours(posted) => posted.visitor,
        Received::Stale(_) => return Ok(response::see_other("/sign-in")),
        Received::Stranger(_) => return Ok(response::see_other("/")),
    };
    let mut conn = app.db.connection().await?;
    let closed = session::close(app, &mut conn, visitor.token()).await;
    conn.end(closed)?;
    let mut response = response::see_other("/");
    for name in [cookies::SESSION, cookies::BEFORE] {
        Cookie { name, value: "", path: "/", life: 0 }.set(request, &mut response);
    }
    Ok(response)
}

impl SignIn {
    fn heading(&self) -> &'static str {
        if self.page.signed_in.is_some() { "You are signed in" } else { "Sign in" }
    }
}
