//! Problem documents: what happened, may I retry, is a new key safe.

mod code;

use std::fmt;

use actix_web::body::BoxBody;
use actix_web::dev::ServiceResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use idempotency::Reply;
use idempotency::reply::ReplyHeader;
use serde_json::{Map, Value, json};

pub use code::Code;

use crate::db;

/// RFC 9457.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// A problem document on its way out.
#[derive(Clone, PartialEq)]
pub struct Problem {
    /// Which row of the table.
    pub code: Code,
    detail: String,
    instance: Option<String>,
    members: Map<String, Value>,
    headers: Vec<(HeaderName, String)>,
}

impl Problem {
    /// A problem with the sentence that says what happened this time.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let problem = Self {
            code,
            detail: detail.into(),
            instance: None,
            members: Map::new(),
            headers: Vec::new(),
        };
        // What may be retried says when, until something better is known.
        if code.retryable() { problem.retry_after(1) } else { problem }
    }

    /// Something of ours broke. The reason goes to the log, once, and not to the client.
    pub fn internal(reason: &dyn fmt::Display) -> Self {
        tracing::error!(%reason, "request failed");
        Self::new(Code::Internal, "Something failed on our side. Send the same request again.")
    }

    /// The database had no connection, lock or time to spare.
    pub fn busy(reason: &sqlx::Error) -> Self {
        tracing::warn!(error = %reason, "the database has no time");
        Self::new(
            Code::Busy,
            "The database is busy. This request did nothing; send it again, with the same key.",
        )
    }

    /// A value breaks a rule; `pointer` is the JSON pointer of the member.
    pub fn invalid(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let message = message.into();
        let errors = json!([{ "pointer": pointer.into(), "message": message }]);
        Self::new(Code::ValidationFailed, sentence(&message)).member("errors", errors)
    }

    /// No such thing, or not yours: the same words for both.
    pub fn not_found() -> Self {
        Self::new(Code::NotFound, "Nothing of yours is at this address.")
    }

    /// One more member of the document.
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The resource that this is about, as a path.
    pub fn resource(self, path: &str) -> Self {
        self.member("resource", path).header(header::LOCATION, path)
    }

    /// When to come again, in seconds.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.headers.retain(|(name, _)| name != header::RETRY_AFTER);
        self.header(header::RETRY_AFTER, &seconds.to_string())
    }

    /// One more header.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// The path of the request that ran into it. What a handler returns is told its path on the
    /// way out (see [`located`]); what is stored with a reply has to say it itself.
    pub fn at(mut self, path: &str) -> Self {
        self.instance.get_or_insert_with(|| path.to_owned());
        self
    }

    /// The same where nobody could read what the key has: this request did nothing, but an earlier
    /// one with its key may have done what a new key would do again.
    pub fn key_unread(self) -> Self {
        match self.code {
            Code::Busy => self.member("safe_new_key", false),
            _ => self,
        }
    }

    /// Can a new key not cause a second effect?
    pub fn safe_new_key(&self) -> bool {
        let said = self.members.get("safe_new_key").and_then(Value::as_bool);
        said.unwrap_or(self.code.safe_new_key())
    }

    /// The sentence.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// An added member.
    pub fn get(&self, member: &str) -> Option<&Value> {
        self.members.get(member)
    }

    /// The document.
    pub fn document(&self) -> Value {
        let mut document = json!({
            "type": self.code.page(),
            "title": self.code.title(),
            "status": self.code.status(),
            "detail": self.detail,
            "code": self.code.as_str(),
            "retryable": self.code.retryable(),
            "safe_new_key": self.safe_new_key(),
        });
        if let Value::Object(members) = &mut document {
            if let Some(instance) = &self.instance {
                members.insert("instance".into(), instance.as_str().into());
            }
            members.extend(self.members.clone());
        }
        document
    }

    /// The same as a reply that can be stored and replayed.
    pub fn to_reply(&self) -> Reply {
        let body = self.document().to_string();
        let reply = Reply::new(self.code.status(), PROBLEM_JSON, body);
        match self.members.get("resource").and_then(Value::as_str) {
            Some(path) => reply.with(ReplyHeader::Location, path),
            None => reply,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.detail)
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponseBuilder::new(self.status_code());
        response.insert_header((header::CONTENT_TYPE, PROBLEM_JSON));
        for (name, value) in &self.headers {
            // The server writes this line itself.
            if *name == header::CONNECTION && value == "close" {
                response.force_close();
            } else if let Ok(value) = HeaderValue::from_str(value) {
                response.insert_header((name.clone(), value));
            }
        }
        response.body(self.document().to_string())
    }
}

/// The words of a rule or a library, which begin small and end without a stop.
pub(crate) fn sentence(words: &str) -> String {
    let mut rest = words.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    let stop = if words.ends_with(char::is_alphanumeric) { "." } else { "" };
    first.chain(rest).chain(stop.chars()).collect()
}

/// The answer, and in it, if it is a problem that has none, the path of its request.
pub fn located(response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let problem = response.response().error().and_then(|error| error.as_error::<Problem>());
    let Some(problem) = problem.filter(|problem| problem.instance.is_none()) else {
        return response;
    };
    let document = problem.clone().at(response.request().path()).document().to_string();
    response.map_body(|_, _| BoxBody::new(document))
}

/// A failed read: nothing was changed, so a passing lack of something is `busy`. What a key has is
/// not known then.
impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        match db::is_busy(&error) || db::is_disconnect(&error) {
            true => Self::busy(&error).key_unread(),
            false => Self::internal(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_may_be_retried_says_when() {
        for code in Code::ALL {
            let response = Problem::new(*code, "x").error_response();
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), code.retryable());
        }
    }

    #[test]
    fn a_read_that_failed_calls_no_new_key_safe() {
        let failed = Problem::from(sqlx::Error::PoolTimedOut);
        assert_eq!((failed.code, failed.safe_new_key()), (Code::Busy, false));
        assert!(Problem::busy(&sqlx::Error::PoolTimedOut).safe_new_key(), "the key was read");
    }

    #[test]
    fn a_document_has_all_members_of_the_contract() {
        let document = Problem::invalid("/lines/0/quantity", "a quantity is 1 to 99")
            .at("/v1/orders")
            .document();
        assert_eq!(
            document,
            json!({
                "type": "/problems/validation_failed", "title": "The request breaks a rule.",
                "status": 422, "detail": "A quantity is 1 to 99.", "instance": "/v1/orders",
                "code": "validation_failed", "retryable": false, "safe_new_key": true,
                "errors": [{"pointer": "/lines/0/quantity", "message": "a quantity is 1 to 99"}],
            })
        );
    }
}
