//! `/sign-in`: signing in, signing out, and making an account.

use askama::Template;

use super::layout::Layout;
use super::marks::Notice;

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

impl SignIn {
    fn heading(&self) -> &'static str {
        if self.page.signed_in.is_some() { "You are signed in" } else { "Sign in" }
    }
}
