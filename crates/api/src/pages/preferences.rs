//! Dark or light, and the language of the frame: two cookies that say nothing about a person.

use actix_web::{HttpRequest, HttpResponse};

use super::cookies::{self, Cookie};
use super::layout::Theme;
use super::posted::{Again, Form, Posted};
use super::response::{self, Shown};
use super::words::Words;
use crate::app::App;

const YEAR: u64 = 365 * 24 * 3600;

/// `POST /theme`
pub(super) async fn set_theme(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    let shown = set(&app, &request, form, cookies::THEME, "theme").await;
    response::answer(&request, shown)
}

/// `POST /language`
pub(super) async fn set_language(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    let shown = set(&app, &request, form, cookies::LANGUAGE, "language").await;
    response::answer(&request, shown)
}

async fn set(
    app: &App,
    request: &HttpRequest,
    form: Form,
    cookie: &'static str,
    field: &str,
) -> Shown {
    let posted = Posted::take(app, request, form, Again { page: "/", form: None }).await?;
    let mut response = response::see_other(posted.fields.back());
    let value = match cookie {
        cookies::THEME => Theme::from_name(posted.fields.get(field)).map(Theme::name),
        _ => Some(Words::of(posted.fields.get(field)).code),
    };
    if let Some(value) = value {
        Cookie { name: cookie, value, path: "/", life: YEAR }.set(request, &mut response);
    }
    Ok(response)
}
