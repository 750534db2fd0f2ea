//! The answer to a form that could not be taken but did no harm: nothing happened, here it is again.

use askama::Template;

use super::layout::Layout;

#[derive(Debug, Template)]
#[template(path = "redrawn.html")]
pub struct Redrawn {
    pub page: Layout,
    pub reason: Reason,
    pub form: Option<RedrawnForm>,
    /// The page that draws the form.
    pub back: String,
}

#[derive(Debug, Clone, Copy)]
pub enum Reason {
    /// The browser sent no cookie with the form.
    NoCookie,
    /// The form was drawn for a session that has ended.
    OldSession,
}

/// The same fields with a fresh token, ready to be sent by one press.
#[derive(Debug, Clone)]
pub struct RedrawnForm {
    pub action: String,
    pub key: Option<String>,
    pub fields: Vec<(String, String)>,
    /// "Put 1 Counter bell into the cart?"
    pub asks: String,
    pub button: String,
}

impl Reason {
    const fn says(self) -> &'static str {
        match self {
            Self::NoCookie => {
                "Your browser sent the form without our cookie, so we did not know whose it was."
            }
            Self::OldSession => "The form was drawn before you signed in or out.",
        }
    }
}
