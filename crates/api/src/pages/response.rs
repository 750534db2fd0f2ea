//! What leaves the pages: HTML under a strict policy, redirects after posts, refusals as pages.

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use idempotency::Finished;

use super::error::{ErrorPage, Link};
use super::layout::{Layout, Section};
use crate::problem::{Code, Problem};

/// Everything from this server, nothing inline, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Why a handler ends before its own answer.
pub(super) enum Detour {
    /// Another page does better.
    Answer(HttpResponse),
    /// Refused or failed.
    Problem(Problem),
}

/// What a handler of the pages comes to.
pub(super) type Shown = Result<HttpResponse, Detour>;

/// A finished page.
pub(super) fn html(status: StatusCode, page: &impl Template) -> HttpResponse {
    match page.render() {
        Ok(text) => HttpResponse::build(status)
            .insert_header((header::CONTENT_TYPE, "text/html; charset=utf-8"))
            .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
            .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
            .insert_header((header::X_FRAME_OPTIONS, "DENY"))
            .insert_header((header::REFERRER_POLICY, "same-origin"))
            .insert_header(("cross-origin-opener-policy", "same-origin"))
            // Kept nowhere: the way back must not lead whoever comes next to what a person saw who
            // has signed out.
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .insert_header((header::VARY, "Cookie"))
            .body(text),
        Err(error) => {
            tracing::error!(%error, "a page cannot be drawn");
            HttpResponse::InternalServerError().body("This page cannot be drawn.")
        }
    }
}

/// On from a post to the page that tells.
pub(super) fn see_other(path: &str) -> HttpResponse {
    let path = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    HttpResponse::SeeOther()
        .insert_header((header::LOCATION, path))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .finish()
}

/// Turns what a handler came to into a response.
pub(super) fn answer(request: &HttpRequest, shown: Shown) -> HttpResponse {
    match shown {
        Ok(response) | Err(Detour::Answer(response)) => response,
        Err(Detour::Problem(problem)) => refusal(request, &problem),
    }
}

/// A problem as a page, with the facts that a program would get.
pub(super) fn refusal(request: &HttpRequest, problem: &Problem) -> HttpResponse {
    let code = problem.code;
    let page = ErrorPage {
        page: Layout::bare(request, Section::Elsewhere),
        status: code.status(),
        code: code.as_str().to_owned(),
        detail: problem.detail().to_owned(),
        retryable: code.retryable(),
        safe_new_key: problem.safe_new_key(),
        link: way_on(problem),
    };
    let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = html(status, &page);
    let from = actix_web::ResponseError::error_response(problem);
    if let Some(seconds) = from.headers().get(header::RETRY_AFTER) {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.clone());
    }
    response
}

/// The page for a path that is none.
pub(super) fn not_found(request: &HttpRequest) -> HttpResponse {
    let problem = Problem::new(Code::NotFound, "There is no such page, or it is not yours to see.");
    refusal(request, &problem)
}

/// The code of a stored refusal.
pub(super) fn refused_with(finished: &Finished) -> Option<String> {
    let document: serde_json::Value = serde_json::from_slice(finished.reply.body()).ok()?;
    Some(document.get("code")?.as_str()?.to_owned())
}

/// Where what the refusal is about can be seen, or who may see it.
fn way_on(problem: &Problem) -> Option<Link> {
    if problem.get("role").is_some() {
        return Some(Link { href: "/sign-in".to_owned(), text: "To the sign-in".to_owned() });
    }
    problem.get("resource").and_then(|path| to_page(path.as_str()?))
}

/// Orders have pages; what belongs to them is told there.
fn to_page(resource: &str) -> Option<Link> {
    let id = resource.strip_prefix("/v1/orders/")?;
    Some(Link { href: format!("/orders/{id}"), text: "To the order".to_owned() })
}

impl From<Problem> for Detour {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<sqlx::Error> for Detour {
    fn from(error: sqlx::Error) -> Self {
        Self::Problem(error.into())
    }
}

impl From<HttpResponse> for Detour {
    fn from(response: HttpResponse) -> Self {
        Self::Answer(response)
    }
}
