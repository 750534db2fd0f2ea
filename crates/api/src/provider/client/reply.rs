//! What came back from one call, and what may be concluded from it.

use std::error::Error;
use std::io;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Another, Answer, Unreachable};

/// Where the provider does not say.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(1);

pub(super) enum Reply {
    Came(Came),
    /// The request cannot have reached the provider.
    NeverSent(String),
    /// The request may have reached the provider.
    Missing(String),
}

pub(super) struct Came {
    status: StatusCode,
    retry_after: Duration,
    body: Vec<u8>,
}

/// The provider's refusals; a failed refund and a cancelled charge come along with theirs.
#[derive(Deserialize)]
struct Refusal<Entry> {
    code: String,
    #[serde(default)]
    message: String,
    #[serde(alias = "charge", alias = "refund")]
    entry: Option<Entry>,
}

impl Reply {
    pub(super) async fn to(request: RequestBuilder) -> Self {
        match request.send().await {
            Ok(response) => Self::read(response).await,
            Err(error) if is_refused(&error) => Self::NeverSent("connection refused".to_owned()),
            Err(error) => Self::Missing(describe(&error)),
        }
    }

    async fn read(response: Response) -> Self {
        let status = response.status();
        let retry_after = retry_after(&response);
        match response.bytes().await {
            Ok(body) => Self::Came(Came { status, retry_after, body: body.into() }),
            Err(error) => Self::Missing(describe(&error)),
        }
    }

    /// `outcome` fails where the entry is not the one that was asked for, else it gives the
    /// outcome, which is missing as long as the entry is pending.
    pub(super) fn into_answer<Entry: DeserializeOwned, Outcome>(
        self,
        outcome: impl Fn(&Entry) -> Result<Option<Outcome>, Another>,
    ) -> Answer<Outcome> {
        match self {
            Self::Came(came) => came.into_answer(outcome),
            Self::NeverSent(reason) => Answer::NotSent { reason },
            Self::Missing(reason) => Answer::Lost { reason },
        }
    }

    pub(super) fn into_page<Page: DeserializeOwned>(self) -> Result<Page, Unreachable> {
        let reason = match self {
            Self::Came(came) if came.status.is_success() => {
                match serde_json::from_slice(&came.body) {
                    Ok(page) => return Ok(page),
                    Err(error) => error.to_string(),
                }
            }
            Self::Came(came) => came.status.to_string(),
            Self::NeverSent(reason) | Self::Missing(reason) => reason,
        };
        Err(Unreachable { reason })
    }
}

impl Came {
    fn into_answer<Entry: DeserializeOwned, Outcome>(
        self,
        outcome: impl Fn(&Entry) -> Result<Option<Outcome>, Another>,
    ) -> Answer<Outcome> {
        let settled = |entry: &Entry| match outcome(entry) {
            Ok(Some(outcome)) => Answer::Settled(outcome),
            Ok(None) => Answer::Pending { retry_after: self.retry_after },
            Err(Another) => self.lost("an answer to another request"),
        };
        if self.status.is_success() {
            let entry = serde_json::from_slice(&self.body);
            return entry.map_or_else(|_| self.lost("unreadable"), |entry| settled(&entry));
        }
        match serde_json::from_slice::<Refusal<Entry>>(&self.body) {
            Ok(Refusal { entry: Some(entry), .. }) if self.status == StatusCode::CONFLICT => {
                settled(&entry)
            }
            Ok(refusal) => self.refused(&refusal.code, refusal.message),
            Err(_) => self.lost("unreadable"),
        }
    }

    /// Status and code together: a proxy's own 503 promises nothing.
    fn refused<Outcome>(&self, code: &str, reason: String) -> Answer<Outcome> {
        match (self.status.as_u16(), code) {
            (409, "key_in_use") => Answer::Pending { retry_after: self.retry_after },
            (400, "malformed") | (422, "invalid") => Answer::Refused { reason },
            (503, "unavailable") => Answer::NotSent { reason },
            (_, code) => self.lost(code),
        }
    }

    fn lost<Outcome>(&self, what: &str) -> Answer<Outcome> {
        let reason = format!("{} {what}", self.status.as_u16());
        Answer::Lost { reason }
    }
}

fn retry_after(response: &Response) -> Duration {
    let value = response.headers().get(RETRY_AFTER);
    let seconds = value.and_then(|value| value.to_str().ok()?.parse().ok());
    seconds.map_or(RETRY_AFTER_DEFAULT, Duration::from_secs)
}

/// Only this failure proves that not one byte of the request arrived anywhere.
fn is_refused(error: &reqwest::Error) -> bool {
    let refused = |cause: &(dyn Error + 'static)| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused)
    };
    error.is_connect() && causes(error).any(refused)
}

/// The innermost cause: the outer ones only repeat the address.
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let innermost = causes(error).last();
    innermost.map_or_else(|| error.to_string(), ToString::to_string)
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}
