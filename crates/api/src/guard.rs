//! The way into the API: the order of checks, once, for every route.
//!
//! Authentication, then the key, then size, type and JSON, then the record look-up. Only then
//! does the operation ask about ownership and validity. A handler that changes something takes a
//! [`Guarded`] request; the routes page has no other way to register one.

mod bodiless;
mod lost_role;

use std::str::FromStr;
use std::time::Duration;

use actix_web::error::PayloadError;
use actix_web::http::header::{self, HeaderMap};
use actix_web::{FromRequest, HttpRequest, HttpResponse, dev::Payload, web};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use idempotency::canonical::Canonical;
use idempotency::fingerprint::Body;
use idempotency::{Claim, Identity, Key, KeyError, Parts, Scope, prefer};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::accounts::{Account, Role, bearer};
use crate::app::App;
use crate::fault;
use crate::operation::{self, Answer, Asked, Operation, Source};
use crate::problem::{Code, Problem, sentence};

/// The largest body of a request to the API, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// What a guarded route asks for beyond the key. Set where the route is registered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rule {
    /// The role that an account must have.
    pub role: Option<Role>,
    /// Nobody is signed in: the identity is the e-mail in the body.
    pub anonymous: bool,
    /// The route has no body; one that is sent all the same counts as a difference.
    pub bodiless: bool,
}

/// The rules of one path, by method.
#[derive(Debug, Clone, Default)]
pub struct Rules(pub Vec<(actix_web::http::Method, Rule)>);

impl Rules {
    fn of(request: &HttpRequest) -> Rule {
        let rules = request.app_data::<Self>().map_or(&[][..], |rules| &rules.0);
        let own = rules.iter().find(|(method, _)| method == request.method());
        own.map(|(_, rule)| *rule).unwrap_or_default()
    }
}

/// Top-level members that enter a fingerprint as an HMAC.
pub(crate) const SECRET_MEMBERS: &[&str] = &["password"];

/// A request that passed everything up to the record look-up.
pub struct Guarded {
    /// Who asks; `None` on the one anonymous route.
    pub account: Option<Account>,
    app: App,
    claim: Claim,
    path: String,
    document: Option<Canonical>,
    wait: Duration,
    wait_applied: Option<u64>,
    forbidden: bool,
    arrived: Instant,
    request: HttpRequest,
}

impl Guarded {
    /// Who asks, on a route that knows.
    ///
    /// # Errors
    /// `unauthenticated` on an anonymous route, which has no business asking.
    pub fn account(&self) -> Result<Account, Problem> {
        self.account.clone().ok_or_else(bearer::missing)
    }

    /// An id in the path. Malformed is the same as not there.
    ///
    /// # Errors
    /// `not_found`.
    pub fn id<T: FromStr>(&self, name: &str) -> Result<T, Problem> {
        let text = self.request.match_info().get(name).unwrap_or_default();
        text.parse().map_err(|_| Problem::not_found())
    }

    /// A text in the path.
    pub fn segment(&self, name: &str) -> String {
        self.request.match_info().get(name).unwrap_or_default().to_owned()
    }

    /// The body as the operation wants it. Ask for the result only after ownership.
    ///
    /// # Errors
    /// `validation_failed` for unknown members, wrong types and missing ones.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        match &self.document {
            Some(document) => parse(document),
            None => parse(&Canonical::parse(b"{}").expect("this is an object")),
        }
    }

    /// That a route without a body got none; an empty object is as good. Ask for the result only
    /// after ownership.
    ///
    /// # Errors
    /// `validation_failed` for anything else.
    pub fn no_body(&self) -> Result<(), Problem> {
        self.document.as_ref().map_or(Ok(()), bodiless::nothing)
    }

    /// Runs the operation under the key and turns its answer into the response.
    ///
    /// # Errors
    /// The problem that the request ran into.
    pub async fn perform<O: Operation>(self, operation: O) -> Result<HttpResponse, Problem> {
        let scope = self.claim.identity.scope.clone();
        let shared = operation.shared();
        let asked = Asked {
            claim: self.claim,
            path: self.path.clone(),
            wait: self.wait,
            arrived: self.arrived,
        };
        let answer = if self.forbidden {
            lost_role::forbid(operation::perform(&self.app, asked, lost_role::Forbidden).await)
        } else {
            let performed = operation::perform(&self.app, asked, operation);
            fault::for_request(self.request.headers(), performed).await
        };
        if let (Some(object), Some(account)) = (shared, &self.account)
            && matches!(&answer, Answer::Finished(_, source) if *source != Source::Executed)
        {
            lost_role::still_theirs(&self.app, account, &scope, object)
                .await
                .map_err(|problem| problem.key_unread().at(&self.path))?;
        }
        let mut response = match answer {
            Answer::Finished(finished, source) => {
                idempotency::actix::respond(&finished, source != Source::Executed)
            }
            Answer::Problem(problem) => {
                let problem = Problem::clone(&problem).at(&self.path);
                actix_web::ResponseError::error_response(&problem)
            }
        };
        if let Some(seconds) = self.wait_applied {
            let applied = header::HeaderValue::from_str(&format!("wait={seconds}"));
            let applied = applied.expect("digits are a header value");
            response.headers_mut().insert(idempotency::actix::PREFERENCE_APPLIED, applied);
        }
        Ok(response)
    }
}

impl FromRequest for Guarded {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let payload = payload.take();
        Box::pin(async move {
            let path = request.path().to_owned();
            guarded(request, payload).await.map_err(|problem| problem.at(&path))
        })
    }
}

async fn guarded(request: HttpRequest, payload: Payload) -> Result<Guarded, Problem> {
    let asked = Instant::now();
    let app = App::extract(&request).await?;
    let rule = Rules::of(&request);
    let account = match rule.anonymous {
        true => None,
        false => {
            let account = bearer::authenticate(&app, request.headers()).await;
            Some(account.map_err(Problem::key_unread)?)
        }
    };
    let key = idempotency::actix::key(request.headers()).map_err(key_problem)?;
    tracing::Span::current().record("key", key.log_hash());
    let reading = Instant::now();
    let bytes = read(request.headers(), payload).await?;
    // What a client takes to send its body is not held against it.
    let arrived = asked + reading.elapsed();
    let document = match bytes.is_empty() {
        true => None,
        false => Some(json(request.headers(), &bytes)?),
    };
    if document.is_none() && !rule.bodiless {
        return Err(Problem::new(Code::MalformedJson, "The request has no body."));
    }
    let scope = match &account {
        Some(account) => account.scope(),
        None => email_scope(document.as_ref()),
    };
    let forbidden = account.as_ref().is_some_and(|account| !account.may(rule.role));
    let wait = idempotency::actix::wait_seconds(request.headers());
    Ok(Guarded {
        claim: claim(&app, &request, Identity { scope, key }, document.as_ref()),
        path: request.path().to_owned(),
        account,
        app,
        document,
        wait: wait.map_or(prefer::WAIT_DEFAULT, Duration::from_secs),
        wait_applied: wait,
        forbidden,
        arrived,
        request,
    })
}

/// The body of a route that is exempt from keys, under the same limits as any other.
///
/// # Errors
/// As for guarded routes: 413, 415, 400.
pub async fn exempt_body(
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<Canonical, Problem> {
    let bytes = read(request.headers(), payload.into_inner()).await?;
    json(request.headers(), &bytes)
}

/// That a route that is exempt from keys, and has no body, got none.
///
/// # Errors
/// As for guarded routes: 413, 415, 400, and then 422.
pub async fn exempt_no_body(request: &HttpRequest, payload: web::Payload) -> Result<(), Problem> {
    let bytes = read(request.headers(), payload.into_inner()).await?;
    if bytes.is_empty() {
        return Ok(());
    }
    bodiless::nothing(&json(request.headers(), &bytes)?)
}

/// The bytes of a body that proves itself by a signature over them.
///
/// # Errors
/// 413, and 415 for bytes that are not those that were signed.
pub async fn exempt_bytes(request: &HttpRequest, payload: web::Payload) -> Result<Bytes, Problem> {
    read(request.headers(), payload.into_inner()).await
}

fn claim(
    app: &App,
    request: &HttpRequest,
    identity: Identity,
    document: Option<&Canonical>,
) -> Claim {
    let parts = Parts {
        method: request.method().as_str(),
        path: request.path(),
        query: request.query_string(),
        content_type: document.map(|_| "application/json"),
        body: document.map_or(Body::Empty, Body::Json),
    };
    app.fingerprinter.claim(identity, parts, SECRET_MEMBERS)
}

/// Whoever has no account yet is known by the e-mail that the account is to have.
fn email_scope(document: Option<&Canonical>) -> Scope {
    #[derive(serde::Deserialize)]
    struct HasEmail {
        email: String,
    }
    let email = document
        .and_then(|document| document.read::<HasEmail>().ok())
        .map(|has| has.email.trim().to_lowercase())
        .unwrap_or_default();
    Scope::digest(email.as_bytes())
}

fn key_problem(error: KeyError) -> Problem {
    match error {
        KeyError::Missing => {
            metrics::counter!("payonce_records_total", "outcome" => "missing").increment(1);
            Problem::new(
                Code::IdempotencyKeyMissing,
                "Send an Idempotency-Key header, for example a fresh UUID, and send the same one when you repeat the request.",
            )
        }
        malformed => {
            metrics::counter!("payonce_records_total", "outcome" => "invalid").increment(1);
            Problem::new(Code::IdempotencyKeyInvalid, sentence(&malformed.to_string()))
        }
    }
}

/// Reads at most [`BODY_BYTES_MAX`], whatever the declared length says.
async fn read(headers: &HeaderMap, mut payload: Payload) -> Result<Bytes, Problem> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > BODY_BYTES_MAX) {
        return Err(too_large());
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(Problem::new(
            Code::UnsupportedMediaType,
            "Send the body as it is, without Content-Encoding.",
        ));
    }
    let mut bytes = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| broken_off(&error))?;
        if bytes.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

/// What did not arrive as a whole may do so next time.
fn broken_off(error: &PayloadError) -> Problem {
    let problem = match error {
        PayloadError::Incomplete(_) | PayloadError::Io(_) => Problem::new(
            Code::RequestIncomplete,
            "The body did not arrive as a whole in its time. Nothing was done.",
        ),
        _ => Problem::new(Code::MalformedJson, "The chunks of the body are malformed."),
    };
    problem.header(header::CONNECTION, "close")
}

fn too_large() -> Problem {
    Problem::new(Code::BodyTooLarge, "A body has at most 65536 bytes.")
        .header(header::CONNECTION, "close")
}

fn json(headers: &HeaderMap, bytes: &[u8]) -> Result<Canonical, Problem> {
    if headers.get_all(header::CONTENT_TYPE).nth(1).is_some() {
        return Err(Problem::new(Code::UnsupportedMediaType, "Send one Content-Type."));
    }
    let media_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .unwrap_or_default()
        .trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(Code::UnsupportedMediaType, "Send application/json."));
    }
    Canonical::parse(bytes)
        .map_err(|error| Problem::new(Code::MalformedJson, sentence(&error.to_string())))
}

/// Reads a request's document; what does not fit is named by its JSON pointer.
///
/// # Errors
/// `validation_failed`.
pub fn parse<T: DeserializeOwned>(document: &Canonical) -> Result<T, Problem> {
    serde_path_to_error::deserialize(document.reader()).map_err(|error| {
        let pointer = pointer(error.path());
        Problem::invalid(pointer, sentence(&without_value(&error.inner().to_string())))
    })
}

/// What was sent may be a password at the wrong place: it is not said back.
fn without_value(message: &str) -> String {
    let names_value = message.starts_with("invalid type") || message.starts_with("invalid value");
    match message.rsplit_once(", expected ") {
        Some((_, expected)) if names_value => format!("expected {expected}"),
        _ => message.to_owned(),
    }
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => bodiless::member(key),
            Segment::Enum { .. } | Segment::Unknown => String::new(),
        })
        .collect()
}

/// What a claim by a page is filed under: the same key as a client of the API would send.
///
/// # Errors
/// [`KeyError`] for a form's hidden field that is not a key.
pub fn form_key(hidden: &str, part: &str) -> Result<Key, KeyError> {
    Key::from_bare(format!("{hidden}/{part}").as_bytes())
}
