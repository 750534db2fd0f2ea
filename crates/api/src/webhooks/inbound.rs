//! Events of the provider: each is taken in once, whatever comes twice, late or out of order.
//!
//! | what happens …                       | what is left behind        | the next delivery …           |
//! |--------------------------------------|----------------------------|-------------------------------|
//! | not signed, too old, too large       | nothing                    | is judged anew                |
//! | the work fails, or we die during it  | nothing                    | is worked on, for the first time |
//! | the work commits, the answer is lost | the event and its effect   | is a repeat                   |
//!
//! The id of an event and its effect commit in one transaction; they must stay together: an id
//! that is marked first loses the event when the work fails, one that is marked later lets two
//! copies work at the same time. An event is an answer of the provider that came another way, so
//! it settles like one: through the record of the request that it answers.

pub mod charge;
pub mod refund;
pub mod sql;
pub mod stray;

use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use idempotency::canonical::Canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;
use utoipa::ToSchema;

use super::signature::{self, Signed, Untrusted};
use crate::app::App;
use crate::db;
use crate::fault;
use crate::guard;
use crate::operation::Stop;
use crate::problem::{Code, Problem};

/// What an event about a charge or refund that nobody knows violates when a repeat of the request that
/// made it has just written it down again.
const BEGUN: [&str; 2] = ["payment_provider_key_key", "refund_provider_key_key"];
const ID_BYTES_MAX: usize = 255;
const WORD_BYTES_MAX: usize = 100;

/// An event of the provider.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ProviderEvent {
    /// `charge.succeeded`, `refund.failed`, …; what is not known is ignored.
    #[serde(default)]
    #[schema(example = "charge.succeeded")]
    pub r#type: String,
    /// The charge or refund that it is about.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub data: Value,
}

/// What was made of an event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventReceipt)]
pub struct Receipt {
    /// `applied`, `repeated`, `ignored: …` or `anomaly: …`
    #[schema(example = "applied")]
    outcome: String,
}

/// What an event came to. Each is a 2xx: sending it again would change nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It settled something.
    Applied,
    /// This id was taken in before.
    Repeated,
    /// It says nothing new, and why.
    Ignored(&'static str),
    /// It contradicts what we know, and how. Somebody has to look.
    Anomaly(&'static str),
}

impl Outcome {
    /// As stored and answered.
    pub fn text(self) -> String {
        match self {
            Self::Applied => "applied".to_owned(),
            Self::Repeated => "repeated".to_owned(),
            Self::Ignored(why) => format!("ignored: {why}"),
            Self::Anomaly(how) => format!("anomaly: {how}"),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Repeated => "repeated",
            Self::Ignored(_) => "ignored",
            Self::Anomaly(_) => "anomaly",
        }
    }
}

/// Takes in an event of the payment provider
#[utoipa::path(
    post, path = "/v1/webhooks/provider", tag = "Webhooks", security(), request_body = ProviderEvent,
    params(
        ("webhook-id" = String, Header, description = "The same on every delivery of one event", example = "evt_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f"),
        ("webhook-timestamp" = String, Header, description = "Unix seconds of this delivery", example = "1764450000"),
        ("webhook-signature" = String, Header, description = "Standard Webhooks: v1, and base64 of HMAC-SHA256 over id.timestamp.body", example = "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="),
    ),
    responses((status = 200, description = "Taken in, or known from before", body = Receipt)),
)]
pub async fn receive_event(
    app: App,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let outcome = receive(&app, &request, payload).await?;
    Ok(HttpResponse::Ok().json(Receipt { outcome: outcome.text() }))
}

/// Who sent it comes first: nothing is parsed, and no more is read than fits, for a stranger.
async fn receive(
    app: &App,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<Outcome, Problem> {
    let signed = signed(request.headers())?;
    let body = guard::exempt_bytes(request, payload).await?;
    let now = app.clock.now().unix_timestamp();
    signature::verify(&app.webhook_secrets, signed, &body, now).map_err(untrusted)?;
    let event = parse(&body)?;
    let arrival = Arrival { id: signed.id.to_owned(), event, body };
    let outcome = fault::for_request(request.headers(), in_a_task(app, arrival)).await?;
    metrics::counter!("payonce_provider_events_total", "outcome" => outcome.word()).increment(1);
    Ok(outcome)
}

/// The three headers, each exactly once.
fn signed(headers: &HeaderMap) -> Result<Signed<'_>, Problem> {
    let one = |name: &str| {
        let mut lines = headers.get_all(name);
        let line = lines.next()?.to_str().ok()?;
        lines.next().is_none().then_some(line)
    };
    let (id, timestamp, signature) =
        (one(signature::ID), one(signature::TIMESTAMP), one(signature::SIGNATURE));
    let id = id.filter(|id| id.len() <= ID_BYTES_MAX);
    match (id, timestamp, signature) {
        (Some(id), Some(timestamp), Some(signature)) => Ok(Signed { id, timestamp, signature }),
        _ => Err(unsigned("Send webhook-id, webhook-timestamp and webhook-signature, each once.")),
    }
}

/// Why exactly is nobody's business but ours.
fn untrusted(why: Untrusted) -> Problem {
    tracing::warn!(%why, "an event was not let in");
    metrics::counter!("payonce_provider_events_total", "outcome" => "untrusted").increment(1);
    unsigned("The signature does not fit this body, an active secret and the present time.")
}

fn unsigned(detail: &str) -> Problem {
    Problem::new(Code::Unauthenticated, detail)
}

fn parse(body: &[u8]) -> Result<ProviderEvent, Problem> {
    let document = Canonical::parse(body).ok();
    document
        .and_then(|document| document.read().ok())
        .ok_or_else(|| Problem::new(Code::MalformedJson, "The body is no event in JSON."))
}

struct Arrival {
    id: String,
    event: ProviderEvent,
    body: Bytes,
}

/// A sender that hangs up does not cut the work short.
async fn in_a_task(app: &App, arrival: Arrival) -> Result<Outcome, Problem> {
    let (tell, told) = oneshot::channel();
    app.spawn({
        let app = app.clone();
        async move {
            let taken = db::retrying(|| take(&app, &arrival)).await;
            tell.send(taken.map_err(later)).ok();
        }
    });
    told.await.unwrap_or_else(|_| Err(Problem::internal(&"the work on an event broke off")))
}

/// Nothing was done and nothing is remembered: the provider sends it again.
fn later(stop: Stop) -> Problem {
    match stop {
        Stop::Refused(problem) | Stop::Passing(problem) => problem,
        Stop::Taken | Stop::Overtaken | Stop::GivingBack(_) => changing(),
        Stop::Database(error) if db::violated(&error).is_some_and(|name| BEGUN.contains(&name)) => {
            changing()
        }
        Stop::Database(error) => Problem::from(error),
    }
}

fn changing() -> Problem {
    Problem::new(Code::Busy, "Somebody else is at this payment. Send the event again.")
}

/// The id first, so that a second copy waits for the first; then the effect; then both commit.
async fn take(app: &App, arrival: &Arrival) -> Result<Outcome, Stop> {
    let Arrival { id, event, body } = arrival;
    let kind = word(&event.r#type);
    let provider_key = event.data.get("provider_key").and_then(Value::as_str).map(word);
    let mut tx = app.db.begin().await?;
    if !sql::insert(&mut tx, id, &kind, provider_key.as_deref(), body).await? {
        tx.rollback().await;
        return Ok(Outcome::Repeated);
    }
    fault::point("event_marked").await?;
    let outcome = match kind.split_once('.') {
        Some(("charge", status)) => charge::take(app, &mut tx, status, &event.data).await?,
        Some(("refund", status)) => refund::take(app, &mut tx, status, &event.data).await?,
        _ => Outcome::Ignored("unknown type"),
    };
    sql::set_outcome(&mut tx, id, &outcome.text()).await?;
    fault::point("before_event_commit").await?;
    tx.commit().await?;
    fault::point("event_committed").await?;
    tracing::info!(target: "payonce::flow", step = "event", event = id, kind,
        outcome = outcome.word(), "took in an event of the provider");
    if let Outcome::Anomaly(how) = outcome {
        metrics::counter!("payonce_anomalies_total").increment(1);
        tracing::warn!(event = id, kind, how, "an event contradicts what we know");
    }
    Ok(outcome)
}

/// A name as it can be stored and shown, whatever was sent.
fn word(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(WORD_BYTES_MAX).collect()
}
