//! `/problems`: what the `type` of a problem document leads to, a page for each code, from the
//! table that the documents are made of.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::layout::{Layout, Section};
use super::response;
use super::visitor::Visitor;
use crate::app::App;
use crate::problem::Code;

/// `GET /problems`
pub(super) async fn list_problems(app: App, request: HttpRequest) -> HttpResponse {
    let page = frame(&app, &request).await;
    response::html(StatusCode::OK, &ProblemIndex { page, codes: Code::ALL })
}

/// `GET /problems/{code}`
pub(super) async fn show_problem(
    app: App,
    request: HttpRequest,
    code: web::Path<String>,
) -> HttpResponse {
    let page = frame(&app, &request).await;
    match Code::named(&code) {
        Some(code) => response::html(StatusCode::OK, &ProblemPage { page, code }),
        None => response::not_found(&request),
    }
}

/// The visitor's own, where there is one. These pages explain what went wrong, so they need nothing:
/// neither a session nor a database that answers.
async fn frame(app: &App, request: &HttpRequest) -> Layout {
    let section = Section::Elsewhere;
    let known = match Visitor::known(app, request).await {
        Ok(Some(visitor)) => visitor.layout(app, request, section).await.ok(),
        _ => None,
    };
    known.unwrap_or_else(|| Layout::bare(request, section))
}

#[derive(Debug, Template)]
#[template(path = "problems/index.html")]
pub struct ProblemIndex {
    pub page: Layout,
    pub codes: &'static [Code],
}

#[derive(Debug, Template)]
#[template(path = "problems/problem.html")]
pub struct ProblemPage {
    pub page: Layout,
    pub code: Code,
}

impl ProblemPage {
    fn retry_words(&self) -> &'static str {
        match self.code.retryable() {
            true => "yes, with the same key, after Retry-After",
            false => "no, it would be refused again",
        }
    }

    fn new_key_words(&self) -> &'static str {
        match self.code.safe_new_key() {
            true => "yes, nothing that happened can happen twice",
            false => "no: a new key could have a second effect",
        }
    }
}
