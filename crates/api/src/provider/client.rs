//! Talks to the provider. Every answer says what is known, and what is not.
//!
//! A call is one attempt under one provider key; who calls again uses the same key. The line
//! that matters runs between [`Answer::NotSent`], after which nothing can have happened, and
//! [`Answer::Lost`], after which anything may have: only the provider can tell, by that key.

mod reply;
mod wire;

use std::time::Duration;

use domain::{ChargeOutcome, Money, RefundOutcome};
use reqwest::{Method, RequestBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use time::OffsetDateTime;

use reply::Reply;

use crate::telemetry::trace::{TRACEPARENT, Trace};

/// A charge to be made, the same on every attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChargeRequest {
    pub provider_key: String,
    /// Our order's id.
    pub reference: String,
    pub amount: Money,
    pub payment_method: String,
}

/// A refund to be made, the same on every attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefundRequest {
    pub provider_key: String,
    /// The charge's id or its provider key.
    pub charge: String,
    pub amount: Money,
    /// Our order's id.
    pub reference: String,
}

/// What one attempt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<Outcome> {
    /// Final, for ever, under this provider key.
    Settled(Outcome),
    /// The provider is at it; ask again after this long.
    Pending { retry_after: Duration },
    /// The provider does not take such a request; nothing was recorded there.
    Refused { reason: String },
    /// Nothing was recorded there: the connection was refused, or the provider said so.
    NotSent { reason: String },
    /// It may or may not have happened.
    Lost { reason: String },
}

/// A charge in the provider's books. Reads the provider's JSON, from a list or an event.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(from = "wire::Charge")]
pub struct Charge {
    pub id: String,
    pub provider_key: String,
    /// `None`, as the amounts, for a key that was cancelled before a charge came.
    pub reference: Option<String>,
    pub amount: Option<Money>,
    /// What was refunded of it so far.
    pub refunded: Option<Money>,
    /// `None` while it is pending.
    pub outcome: Option<ChargeOutcome>,
    pub created_at: OffsetDateTime,
}

/// A refund in the provider's books. Reads the provider's JSON, from a list or an event.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(from = "wire::Refund")]
pub struct Refund {
    pub id: String,
    pub provider_key: String,
    /// The provider's id of the charge it belongs to.
    pub charge_id: Option<String>,
    pub reference: Option<String>,
    pub amount: Option<Money>,
    /// `None` while it is pending.
    pub outcome: Option<RefundOutcome>,
    pub created_at: OffsetDateTime,
}

impl Charge {
    /// What became of the request; `None` while it is pending.
    fn outcome_of(&self, request: &ChargeRequest) -> Result<Option<ChargeOutcome>, Another> {
        let money_moved = matches!(self.outcome, Some(ChargeOutcome::Succeeded { .. }));
        let asked = (&*request.provider_key, &*request.reference, request.amount);
        let said = (&*self.provider_key, self.reference.as_deref(), self.amount);
        fit(asked, said, money_moved)?;
        Ok(self.outcome.clone())
    }
}

impl Refund {
    /// What became of the request; `None` while it is pending.
    fn outcome_of(&self, request: &RefundRequest) -> Result<Option<RefundOutcome>, Another> {
        let money_moved = matches!(self.outcome, Some(RefundOutcome::Succeeded { .. }));
        let asked = (&*request.provider_key, &*request.reference, request.amount);
        let said = (&*self.provider_key, self.reference.as_deref(), self.amount);
        fit(asked, said, money_moved)?;
        Ok(self.outcome.clone())
    }
}

/// An entry that is not what was asked for.
struct Another;

impl From<Another> for Unreachable {
    fn from(_: Another) -> Self {
        Self { reason: "another amount or order than was asked for".to_owned() }
    }
}

/// Key, order and amount must be those that were asked for. Whoever moved money says for what and how
/// much; an entry without money may leave that out. What does not fit is nobody's outcome: it settles
/// nothing, and somebody has to look.
fn fit(
    asked: (&str, &str, Money),
    said: (&str, Option<&str>, Option<Money>),
    money_moved: bool,
) -> Result<(), Another> {
    let (key, reference, amount) = said;
    let says_all = reference.is_some() && amount.is_some();
    let same = key == asked.0
        && reference.is_none_or(|reference| reference == asked.1)
        && amount.is_none_or(|amount| amount == asked.2);
    if same && (says_all || !money_moved) {
        return Ok(());
    }
    metrics::counter!("payonce_anomalies_total").increment(1);
    tracing::error!(?asked, ?said, "the provider answers with something else");
    Err(Another)
}

/// One page of the provider's books, oldest first; `next` asks for the one that follows.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Page<T> {
    #[serde(rename = "data")]
    pub entries: Vec<T>,
    pub next: Option<String>,
}

/// A question that got no usable answer; nothing follows from it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the provider gave no usable answer: {reason}")]
pub struct Unreachable {
    pub reason: String,
}

/// The provider's API under one address. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ProviderClient {
    base_url: String,
    http: reqwest::Client,
    call_limit: Duration,
}

impl ProviderClient {
    /// `call_limit` bounds each call from connecting to the last byte.
    pub fn new(base_url: &str, http: reqwest::Client, call_limit: Duration) -> Self {
        Self { base_url: base_url.trim_end_matches('/').to_owned(), http, call_limit }
    }

    /// Charges once per provider key, however often it is called.
    pub async fn charge(&self, request: &ChargeRequest) -> Answer<ChargeOutcome> {
        let reply = self.post("/charges", request).await;
        reply.into_answer(|charge: &Charge| charge.outcome_of(request))
    }

    /// What became of a charge; `None` says that the provider has no such charge *yet*: an attempt
    /// may still be under way.
    pub async fn charged(
        &self,
        request: &ChargeRequest,
    ) -> Result<Option<Option<ChargeOutcome>>, Unreachable> {
        let found = self.find_charge(&request.provider_key).await?;
        Ok(found.map(|charge| charge.outcome_of(request)).transpose()?)
    }

    /// The charge in the provider's books, whatever it is for.
    pub async fn find_charge(&self, provider_key: &str) -> Result<Option<Charge>, Unreachable> {
        let page: Page<Charge> = self.get("/charges", &[("provider_key", provider_key)]).await?;
        first(page, |charge| charge.provider_key == provider_key)
    }

    /// A known charge keeps its outcome; an unknown key is refused from now on, for ever.
    pub async fn cancel_charge(&self, request: &ChargeRequest) -> Answer<ChargeOutcome> {
        let key = json!({ "provider_key": request.provider_key });
        let reply = self.post("/charges/cancel", &key).await;
        reply.into_answer(|charge: &Charge| charge.outcome_of(request))
    }

    /// All charges after the one with the id `after`, or from the first.
    pub async fn list_charges(&self, after: Option<&str>) -> Result<Page<Charge>, Unreachable> {
        self.get("/charges", after.map(|id| ("after", id)).as_slice()).await
    }

    /// Refunds once per provider key, however often it is called.
    pub async fn refund(&self, request: &RefundRequest) -> Answer<RefundOutcome> {
        let reply = self.post("/refunds", request).await;
        reply.into_answer(|refund: &Refund| refund.outcome_of(request))
    }

    /// What became of a refund; `None` says that the provider has no such refund *yet*.
    pub async fn refunded(
        &self,
        request: &RefundRequest,
    ) -> Result<Option<Option<RefundOutcome>>, Unreachable> {
        let found = self.find_refund(&request.provider_key).await?;
        Ok(found.map(|refund| refund.outcome_of(request)).transpose()?)
    }

    /// The refund in the provider's books, whatever it is for.
    pub async fn find_refund(&self, provider_key: &str) -> Result<Option<Refund>, Unreachable> {
        let page: Page<Refund> = self.get("/refunds", &[("provider_key", provider_key)]).await?;
        first(page, |refund| refund.provider_key == provider_key)
    }

    /// A known refund keeps its outcome; an unknown key is refused from now on, for ever.
    pub async fn cancel_refund(&self, request: &RefundRequest) -> Answer<RefundOutcome> {
        let key = json!({ "provider_key": request.provider_key });
        let reply = self.post("/refunds/cancel", &key).await;
        reply.into_answer(|refund: &Refund| refund.outcome_of(request))
    }

    pub async fn list_refunds(&self, after: Option<&str>) -> Result<Page<Refund>, Unreachable> {
        self.get("/refunds", after.map(|id| ("after", id)).as_slice()).await
    }

    async fn post(&self, path: &str, body: &impl Serialize) -> Reply {
        Reply::to(self.request(Method::POST, path).json(body)).await
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, Unreachable> {
        Reply::to(self.request(Method::GET, path).query(query)).await.into_page()
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.base_url);
        let request = self.http.request(method, url).timeout(self.call_limit);
        match Trace::current() {
            Some(trace) => request.header(TRACEPARENT, trace.header()),
            None => request,
        }
    }
}

/// A page of somebody else's entries answers another question.
fn first<T>(page: Page<T>, is_asked_for: impl Fn(&T) -> bool) -> Result<Option<T>, Unreachable> {
    match page.entries.into_iter().next() {
        None => Ok(None),
        Some(entry) if is_asked_for(&entry) => Ok(Some(entry)),
        Some(_) => Err(Unreachable { reason: "another key than the one asked for".to_owned() }),
    }
}
