//! The page of a refusal or a fault: the same facts as the API's problem document, in words.

use askama::Template;

use super::layout::Layout;
use super::marks::Mark;

#[derive(Debug, Template)]
#[template(path = "error.html")]
pub struct ErrorPage {
    pub page: Layout,
    pub status: u16,
    pub code: String,
    pub detail: String,
    /// May the same request be sent again?
    pub retryable: bool,
    /// Can a new key not cause a second effect?
    pub safe_new_key: bool,
    /// Where the answer lies, if it exists already.
    pub link: Option<Link>,
}

#[derive(Debug, Clone)]
pub struct Link {
    pub href: String,
    pub text: String,
}

impl ErrorPage {
    fn heading(&self) -> &'static str {
        match (self.status, self.code.as_str()) {
            (_, "request_in_progress" | "payment_in_progress" | "refund_in_progress") => {
                "Still at it"
            }
            (_, "outcome_unknown") => "We do not know yet",
            (_, "idempotency_key_reused") => "This key belongs to another request",
            (_, "idempotency_key_expired") => "This was done before",
            (_, "order_already_paid") => "This is paid already",
            (_, "out_of_stock") => "Not enough on the shelf",
            (_, "price_changed") => "The price has changed",
            (401, _) => "Sign in first",
            (403, _) if self.link.is_some() => "This is not for this account",
            (403, _) => "This form did not come from here",
            (404, _) => "There is nothing here",
            (429, _) => "Too many requests",
            (503, _) => "Not just now",
            (500.., _) => "Something broke on our side",
            (409, _) => "This cannot be done now",
            (422, _) => "We could not take this",
            _ => "This request was refused",
        }
    }

    /// Whether money moved is open after a fault of ours and while an outcome is unknown.
    fn mark(&self) -> Mark {
        match (self.status, self.safe_new_key) {
            (409 | 500.., false) => Mark::Unsure,
            _ => Mark::Refused,
        }
    }

    fn retry_words(&self) -> &'static str {
        if self.retryable { "yes" } else { "no" }
    }

    fn new_key_words(&self) -> &'static str {
        if self.safe_new_key { "yes" } else { "no, keep this one" }
    }
}
