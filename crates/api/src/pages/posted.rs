//! The way in for forms: sent from our own page, by a known session, with that session's token.
//!
//! | the form comes | and gets |
//! |---|---|
//! | from another site, or with a token of nobody's | 403 |
//! | with a NUL character, which no text of the database holds | 422 |
//! | without a cookie we know | the form again, and a cookie; nothing was done |
//! | from our page, drawn before somebody signed in or out | on to the page that draws it now |

use std::collections::HashMap;

use actix_web::error::PayloadError;
use actix_web::http::StatusCode;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};

use super::layout::Section;
use super::redrawn::{Reason, Redrawn, RedrawnForm};
use super::response::{self, Detour};
use super::visitor::Visitor;
use crate::app::App;
use crate::guard::BODY_BYTES_MAX;
use crate::problem::{Code, Problem};

/// A form's fields as they came.
pub(super) type Form = web::Form<Vec<(String, String)>>;

/// The fields of a form by name; the first counts.
pub(super) struct Fields(HashMap<String, String>);

/// A form that may be acted upon.
pub(super) struct Posted {
    pub(super) visitor: Visitor,
    pub(super) fields: Fields,
}

/// Where to send somebody whose form could not be taken.
pub(super) struct Again<'a> {
    /// The page that draws the form.
    pub(super) page: &'a str,
    /// The form itself, where it can be drawn from its fields.
    pub(super) form: Option<fn(&Fields) -> RedrawnForm>,
}

/// A form, and whether it may be acted upon.
pub(super) enum Received {
    Ours(Posted),
    /// From our page, but drawn for a session that this browser has no longer.
    Stale(Posted),
    /// No cookie that we know.
    Stranger(Fields),
}

impl Posted {
    /// Takes a form, or says where it goes instead.
    pub(super) async fn take(
        app: &App,
        request: &HttpRequest,
        form: Form,
        again: Again<'_>,
    ) -> Result<Self, Detour> {
        match Received::of(app, request, form).await? {
            Received::Ours(posted) => Ok(posted),
            Received::Stale(_) => Err(response::see_other(again.page).into()),
            Received::Stranger(fields) => Err(redraw(app, request, &fields, &again).await?.into()),
        }
    }
}

impl Received {
    /// Looks at where a form comes from.
    ///
    /// # Errors
    /// `forbidden` for one that another site may have sent.
    pub(super) async fn of(app: &App, request: &HttpRequest, form: Form) -> Result<Self, Problem> {
        let origin = Origin::of(request);
        if origin == Origin::Foreign {
            return Err(foreign());
        }
        if request.headers().get_all(header::CONTENT_TYPE).nth(1).is_some() {
            let words = "This form says twice what it is. Nothing was done.";
            return Err(Problem::new(Code::UnsupportedMediaType, words));
        }
        let form = form.into_inner();
        if form.iter().any(|(name, value)| name.contains('\0') || value.contains('\0')) {
            let words = "A field of this form holds a NUL character. Nothing was done.";
            return Err(Problem::new(Code::ValidationFailed, words));
        }
        let fields = Fields::new(form);
        let Some(visitor) = Visitor::known(app, request).await? else {
            return Ok(Self::Stranger(fields));
        };
        let fits = visitor.csrf_fits(app, fields.get("csrf"));
        let posted = Posted { visitor, fields };
        match origin {
            _ if fits => Ok(Self::Ours(posted)),
            Origin::Own => Ok(Self::Stale(posted)),
            Origin::Unsaid | Origin::Foreign => Err(foreign()),
        }
    }
}

/// Nothing was done; here is the form, and a cookie to send it with.
pub(super) async fn redraw(
    app: &App,
    request: &HttpRequest,
    fields: &Fields,
    again: &Again<'_>,
) -> Result<HttpResponse, Problem> {
    let visitor = Visitor::greet(app, request).await?;
    let page = Redrawn {
        page: visitor.layout(app, request, Section::Elsewhere).await?,
        reason: Reason::NoCookie,
        form: again.form.map(|draw| draw(fields)),
        back: again.page.to_owned(),
    };
    Ok(visitor.show(request, &page))
}

fn foreign() -> Problem {
    Problem::new(
        Code::Forbidden,
        "The form carried no token of this browser's session, so another site may have sent it. \
         Nothing was done.",
    )
}

impl Fields {
    fn new(pairs: Vec<(String, String)>) -> Self {
        let mut fields = HashMap::new();
        for (name, value) in pairs {
            fields.entry(name).or_insert(value);
        }
        Self(fields)
    }

    /// A field; one that was not sent is empty.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// A path of ours to go back to, never another site.
    pub(super) fn back(&self) -> &str {
        local(self.get("back"))
    }
}

/// The path if it is one of ours, else the shop.
pub(super) fn local(path: &str) -> &str {
    let ours = path.starts_with('/') && !path.starts_with("//") && !path.contains('\\');
    if ours && path.bytes().all(|b| b.is_ascii_graphic()) { path } else { "/" }
}

/// What the browser says about the page that sent a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Own,
    Foreign,
    /// Not every client says.
    Unsaid,
}

impl Origin {
    fn of(request: &HttpRequest) -> Self {
        let text = |name: &str| request.headers().get(name).map(|value| value.to_str());
        let site = match text("sec-fetch-site") {
            None | Some(Ok("none")) => Self::Unsaid,
            Some(Ok("same-origin")) => Self::Own,
            Some(_) => Self::Foreign,
        };
        let host = request.connection_info().host().to_owned();
        let origin = match text(header::ORIGIN.as_str()) {
            None => Self::Unsaid,
            Some(Ok(origin)) if origin.split_once("://").is_some_and(|o| o.1 == host) => Self::Own,
            Some(_) => Self::Foreign,
        };
        match (site, origin) {
            (Self::Foreign, _) | (_, Self::Foreign) => Self::Foreign,
            (Self::Own, _) | (_, Self::Own) => Self::Own,
            (Self::Unsaid, Self::Unsaid) => Self::Unsaid,
        }
    }
}

/// Forms that cannot be read are refused as pages.
pub(super) fn form_config() -> web::FormConfig {
    web::FormConfig::default().limit(BODY_BYTES_MAX).error_handler(|error, request| {
        let code = match error {
            actix_web::error::UrlencodedError::Overflow { .. } => Code::BodyTooLarge,
            actix_web::error::UrlencodedError::ContentType => Code::UnsupportedMediaType,
            actix_web::error::UrlencodedError::Payload(PayloadError::Incomplete(_)) => {
                Code::RequestIncomplete
            }
            _ => Code::ValidationFailed,
        };
        let problem = Problem::new(code, "This form cannot be read. Nothing was done.");
        let answer = response::refusal(request, &problem);
        debug_assert_ne!(answer.status(), StatusCode::OK);
        actix_web::error::InternalError::from_response(error, answer).into()
    })
}

/// So are queries, which only pages leave to the framework.
pub(super) fn query_config() -> web::QueryConfig {
    web::QueryConfig::default().error_handler(|error, request| {
        let answer = response::refusal(request, &Problem::invalid("", "The query is malformed."));
        actix_web::error::InternalError::from_response(error, answer).into()
    })
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_form_of_another_site_is_foreign_whatever_else_it_says() {
        let cases = [
            (None, None, Origin::Unsaid),
            (Some("same-origin"), None, Origin::Own),
            (None, Some("http://shop.test"), Origin::Own),
            (None, Some("https://shop.test"), Origin::Own),
            (Some("same-origin"), Some("http://evil.test"), Origin::Foreign),
            (Some("cross-site"), Some("http://shop.test"), Origin::Foreign),
            (Some("same-site"), None, Origin::Foreign),
            (None, Some("null"), Origin::Foreign),
            (None, Some("http://shop.test.evil.test"), Origin::Foreign),
        ];
        for (site, origin, expected) in cases {
            let mut request = TestRequest::post().insert_header(("host", "shop.test"));
            if let Some(site) = site {
                request = request.insert_header(("sec-fetch-site", site));
            }
            if let Some(origin) = origin {
                request = request.insert_header(("origin", origin));
            }
            assert!(Origin::of(&request.to_http_request()) == expected, "{site:?} {origin:?}");
        }
    }

    #[test]
    fn nobody_is_sent_to_another_site() {
        for path in ["//evil.test", "https://evil.test", "/\\evil.test", "", "/a\r\nb", "/ü"] {
            assert_eq!(local(path), "/");
        }
        assert_eq!(local("/?currency=EUR#pen"), "/?currency=EUR#pen");
    }
}
