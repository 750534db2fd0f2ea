//! Cookies: read from a request, written so that only this site and no script gets at them.

use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};

/// Who somebody is on the pages. Opens nothing in the API.
pub(super) const SESSION: &str = "payonce_session";
/// Which guest's forms this browser may still hold, since that guest signed in.
pub(super) const BEFORE: &str = "payonce_before";
/// A preference each; they hold nothing about a person.
pub(super) const THEME: &str = "payonce_theme";
pub(super) const LANGUAGE: &str = "payonce_language";
/// What the page that a form leads to should say once.
pub(super) const SAID: &str = "payonce_said";

/// A cookie to be set.
pub(super) struct Cookie<'a> {
    pub(super) name: &'static str,
    pub(super) value: &'a str,
    pub(super) path: &'a str,
    /// In seconds; 0 takes the cookie away.
    pub(super) life: u64,
}

/// The value of a cookie that came with the request.
pub(super) fn read<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim(), value.trim())).find(|pair| pair.0 == name).map(|p| p.1)
}

impl Cookie<'_> {
    /// Adds the cookie to a response. `Lax` keeps it out of forms that other sites send.
    pub(super) fn set(&self, request: &HttpRequest, response: &mut HttpResponse) {
        let Self { name, value, path, life } = self;
        let secure = if request.connection_info().scheme() == "https" { "; Secure" } else { "" };
        let line =
            format!("{name}={value}; Path={path}; Max-Age={life}; HttpOnly; SameSite=Lax{secure}");
        // A value that does not fit into a header was not made by us.
        if let Ok(line) = HeaderValue::from_str(&line) {
            response.headers_mut().append(header::SET_COOKIE, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        let line = HeaderValue::from_static("x_payonce_theme=light; payonce_theme=dark; a=b");
        headers.insert(header::COOKIE, line);
        assert_eq!(read(&headers, THEME), Some("dark"));
        assert_eq!(read(&headers, SESSION), None);
    }
}
