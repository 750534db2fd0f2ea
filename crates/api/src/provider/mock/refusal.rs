//! What the provider refuses, and what it cannot do: one status and one code each.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpResponse, ResponseError};
use serde_json::{Value, json};

#[derive(Debug)]
pub(super) enum Refusal {
    /// 400: no JSON, or not the documented members.
    Malformed(String),
    /// 422: a member's value makes no sense; nothing was recorded.
    Invalid(&'static str),
    /// 422: the key belongs to another request.
    KeyReused,
    /// 409: the first request under this key is still at work.
    KeyInUse,
    /// 409, for ever: the key was cancelled before a charge came. Carries the charge.
    Cancelled(Value),
    /// 409, for ever: the refund failed, for the reason its code gives. Carries the refund.
    RefundFailed { code: String, refund: Value },
    /// 404: outside of what is offered.
    NotFound,
    /// 503: nothing was recorded and nothing will happen.
    Unavailable,
    /// 500: anything may have happened.
    Broken(anyhow::Error),
}

impl Refusal {
    pub(super) fn malformed(error: &impl fmt::Display) -> Self {
        Self::Malformed(error.to_string())
    }

    fn code(&self) -> &str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::Invalid(_) => "invalid",
            Self::KeyReused => "key_reused",
            Self::KeyInUse => "key_in_use",
            Self::Cancelled(_) => "cancelled",
            Self::RefundFailed { code, .. } => code,
            Self::NotFound => "not_found",
            Self::Unavailable => "unavailable",
            Self::Broken(_) => "internal",
        }
    }

    fn body(&self) -> Value {
        let mut body = json!({ "code": self.code(), "message": self.to_string() });
        match self {
            Self::Cancelled(charge) => body["charge"] = charge.clone(),
            Self::RefundFailed { refund, .. } => body["refund"] = refund.clone(),
            _ => {}
        }
        body
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => f.write_str(why),
            Self::Invalid(why) => f.write_str(why),
            Self::KeyReused => f.write_str("this key was used for another request"),
            Self::KeyInUse => f.write_str("a request with this key is still at work"),
            Self::Cancelled(_) => {
                f.write_str("this key was cancelled; nothing was or will be charged")
            }
            Self::RefundFailed { code, .. } => write!(f, "the refund failed: {code}"),
            Self::NotFound => f.write_str("there is no such thing"),
            Self::Unavailable => f.write_str("not available; nothing was recorded"),
            Self::Broken(_) => f.write_str("something went wrong"),
        }
    }
}

impl ResponseError for Refusal {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Invalid(_) | Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::KeyInUse | Self::Cancelled(_) | Self::RefundFailed { .. } => StatusCode::CONFLICT,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        if let Self::Broken(error) = self {
            tracing::error!(error = format!("{error:#}"), "the mock provider failed");
        }
        let mut response = HttpResponse::build(self.status_code());
        if matches!(self, Self::KeyInUse | Self::Unavailable) {
            response.insert_header((RETRY_AFTER, "1"));
        }
        response.json(self.body())
    }
}

impl<E: Into<anyhow::Error>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}
