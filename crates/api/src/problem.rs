//! Everything that can go wrong, in one table: code, status, may I retry, is a new key safe.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use idempotency::Reply;
use idempotency::reply::ReplyHeader;
use serde_json::{Map, Value, json};

use crate::db;

/// RFC 9457.
pub const PROBLEM_JSON: &str = "application/problem+json";

macro_rules! codes {
    ($($code:ident = $text:literal, $status:literal, retryable: $retryable:literal, safe_new_key: $safe:literal, $title:literal;)*) => {
        /// A stable name for what went wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $title] $code,)* }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$code,)*];

            /// As it stands in documents.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$code => $text,)* }
            }

            /// HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$code => $status,)* }
            }

            /// May the same request be sent again?
            pub const fn retryable(self) -> bool {
                match self { $(Self::$code => $retryable,)* }
            }

            /// Can a new key not cause a second effect?
            pub const fn safe_new_key(self) -> bool {
                match self { $(Self::$code => $safe,)* }
            }

            /// The same for every problem of this code.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$code => $title,)* }
            }
        }
    };
}

codes! {
    IdempotencyKeyMissing = "idempotency_key_missing", 400, retryable: false, safe_new_key: true, "The request has no idempotency key.";
    IdempotencyKeyInvalid = "idempotency_key_invalid", 400, retryable: false, safe_new_key: true, "The idempotency key is malformed.";
    MalformedJson = "malformed_json", 400, retryable: false, safe_new_key: true, "The body is not unambiguous JSON.";
    Unauthenticated = "unauthenticated", 401, retryable: false, safe_new_key: true, "Who is asking is not known.";
    Forbidden = "forbidden", 403, retryable: false, safe_new_key: true, "This account may not do that.";
    NotFound = "not_found", 404, retryable: false, safe_new_key: true, "There is no such thing.";
    MethodNotAllowed = "method_not_allowed", 405, retryable: false, safe_new_key: true, "This path does not know the method.";
    RequestInProgress = "request_in_progress", 409, retryable: true, safe_new_key: false, "The first request with this key is still running.";
    OutcomeUnknown = "outcome_unknown", 409, retryable: true, safe_new_key: false, "What became of the first request is not known yet.";
    PaymentInProgress = "payment_in_progress", 409, retryable: true, safe_new_key: false, "A payment of this order is under way.";
    RefundInProgress = "refund_in_progress", 409, retryable: true, safe_new_key: false, "A refund of this payment is under way.";
    IdempotencyKeyExpired = "idempotency_key_expired", 409, retryable: false, safe_new_key: false, "The key was used; its reply is no longer kept.";
    IdempotencyKeyReused = "idempotency_key_reused", 422, retryable: false, safe_new_key: true, "The key belongs to another request.";
    OrderAlreadyPaid = "order_already_paid", 409, retryable: false, safe_new_key: true, "The order is already paid.";
    OrderExpired = "order_expired", 409, retryable: false, safe_new_key: true, "The order's reservation has run out.";
    OutOfStock = "out_of_stock", 409, retryable: false, safe_new_key: true, "There is not enough in stock.";
    PriceChanged = "price_changed", 409, retryable: false, safe_new_key: true, "The total is not the expected one.";
    InvalidTransition = "invalid_transition", 409, retryable: false, safe_new_key: true, "The current state does not allow this.";
    EmailTaken = "email_taken", 409, retryable: false, safe_new_key: true, "An account with this e-mail exists.";
    CardDeclined = "card_declined", 402, retryable: false, safe_new_key: true, "The card was declined; nothing was charged.";
    InsufficientFunds = "insufficient_funds", 402, retryable: false, safe_new_key: true, "The card does not hold the amount; nothing was charged.";
    RefundTooLarge = "refund_too_large", 422, retryable: false, safe_new_key: true, "More than was paid cannot be refunded.";
    ValidationFailed = "validation_failed", 422, retryable: false, safe_new_key: true, "The request breaks a rule.";
    BodyTooLarge = "body_too_large", 413, retryable: false, safe_new_key: true, "The body is too large.";
    UnsupportedMediaType = "unsupported_media_type", 415, retryable: false, safe_new_key: true, "The body must be application/json.";
    RateLimited = "rate_limited", 429, retryable: true, safe_new_key: true, "Too many requests.";
    ProviderUnavailable = "provider_unavailable", 503, retryable: true, safe_new_key: true, "The payment provider took nothing; nothing was charged.";
    Busy = "busy", 503, retryable: true, safe_new_key: true, "The server is busy; nothing was done.";
    Internal = "internal", 500, retryable: true, safe_new_key: false, "The server failed.";
}

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

    /// A value breaks a rule; `pointer` is the JSON pointer of the member.
    pub fn invalid(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let message = message.into();
        let errors = json!([{ "pointer": pointer.into(), "message": message }]);
        Self::new(Code::ValidationFailed, message).member("errors", errors)
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

    /// The path of the request that ran into it.
    pub fn at(mut self, path: &str) -> Self {
        self.instance.get_or_insert_with(|| path.to_owned());
        self
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
            "type": format!("/problems/{}", self.code.as_str()),
            "title": self.code.title(),
            "status": self.code.status(),
            "detail": self.detail,
            "code": self.code.as_str(),
            "retryable": self.code.retryable(),
            "safe_new_key": self.code.safe_new_key(),
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
            if let Ok(value) = HeaderValue::from_str(value) {
                response.insert_header((name.clone(), value));
            }
        }
        response.body(self.document().to_string())
    }
}

/// A failed read: nothing was changed, so a passing lack of something is `busy`.
impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        if db::is_busy(&error) || db::is_disconnect(&error) {
            tracing::warn!(%error, "the database has no time");
            return Self::new(Code::Busy, "The database is busy. Nothing was done.");
        }
        Self::internal(&error)
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
    fn a_document_has_all_members_of_the_contract() {
        let document = Problem::invalid("/lines/0/quantity", "a quantity is 1 to 99")
            .at("/v1/orders")
            .document();
        assert_eq!(
            document,
            json!({
                "type": "/problems/validation_failed", "title": "The request breaks a rule.",
                "status": 422, "detail": "a quantity is 1 to 99", "instance": "/v1/orders",
                "code": "validation_failed", "retryable": false, "safe_new_key": true,
                "errors": [{"pointer": "/lines/0/quantity", "message": "a quantity is 1 to 99"}],
            })
        );
    }
}
