//! The HTTP server: what it serves, how many threads, how it ends.

use std::io;
use std::net::TcpListener;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Server, Service, ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{ConnectionType, StatusCode};
use actix_web::middleware::{Next, from_fn};
use actix_web::{App as Web, HttpServer, web};
use futures_util::FutureExt as _;
use tracing::Instrument as _;
use tracing::field::Empty;

use super::{head, patience};
use crate::app::App;
use crate::db::lanes;
use crate::operation::in_progress;
use crate::problem::{self, Code, Problem};
use crate::routes::shown;
use crate::stop::Stop;
use crate::telemetry::trace::Trace;
use crate::{health, openapi, pages, records, routes};

/// A connection, then a statement.
const READ_MAX: Duration = Duration::from_secs(25);
/// A body that takes its time, then the longest wait for another request, then a connection and a statement.
const CHANGE_MAX: Duration = Duration::from_secs(75);
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How the server runs.
#[derive(Debug, Clone, Copy)]
pub struct Threads {
    /// How many serve requests.
    pub workers: usize,
    /// How long running requests may take when the server stops.
    pub grace: Duration,
}

/// A server that answers as soon as it is awaited.
///
/// # Errors
/// When the listener cannot be used.
pub fn server(listener: TcpListener, app: App, threads: Threads, stop: Stop) -> io::Result<Server> {
    let patience = app.clients.patience;
    let server = HttpServer::new(move || {
        lanes::take();
        let stop = stop.clone();
        Web::new()
            .wrap_fn(|mut request, next| {
                let asked = head::taken_for_get(&mut request);
                let answer = next.call(request);
                async move { answer.await.map(|answer| asked.answer(answer)) }
            })
            .wrap(from_fn(in_time))
            .wrap(from_fn(observed))
            .wrap(from_fn(move |request, next| patience::bounded(patience, request, next)))
            .wrap_fn(move |request, next| {
                let stop = stop.clone();
                let answer = next.call(request);
                async move { answer.await.map(|answer| last_if_stopping(answer, &stop)) }
            })
            .app_data(web::Data::new(app.clone()))
            .configure(|config| everything(config, &app))
            .default_service(web::to(routes::nowhere))
    })
    .workers(threads.workers)
    .disable_signals()
    .client_request_timeout(patience)
    .shutdown_timeout(threads.grace.as_secs().max(1));
    Ok(server.listen(listener)?.run())
}

/// Every address of the server.
fn everything(config: &mut web::ServiceConfig, app: &App) {
    config
        .service(shown("/healthz", health::healthz))
        .service(shown("/readyz", health::readyz))
        .service(shown("/metrics", health::metrics))
        .service(shown("/openapi.json", openapi::served))
        .service(shown("/v1/.well-known/idempotency", routes::policy));
    openapi::docs(config);
    #[cfg(feature = "bench")]
    crate::bench::routes(config);
    for service in routes::api().into_services(&app.clients.origins) {
        config.service(service);
    }
    pages::configure(config);
}

/// One span and one log line for each request; a panic is a 500 like any other.
async fn observed(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let id = request_id(&request);
    let method = request.method().clone();
    let path = request.path().to_owned();
    let trace = Trace::of(request.headers());
    let logged = records::without_key(&path);
    let span = tracing::info_span!("request", %id, %method, path = %logged, trace = trace.id(),
        key = Empty, attempt = Empty, outcome = Empty);
    let started = tokio::time::Instant::now();
    let answered = AssertUnwindSafe(next.call(request)).catch_unwind().instrument(span.clone());
    let answered = trace
        .cover(answered)
        .await
        .unwrap_or_else(|_| Err(Problem::internal(&"a handler panicked").at(&path).into()));
    let _in_span = span.enter();
    let answered = answered.inspect_err(unanswered)?;
    let mut response = problem::located(answered.map_into_boxed_body());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    record(&response, started.elapsed());
    Ok(response)
}

/// Whoever only reads waits no longer than for a statement, and anybody else no longer than for what
/// they joined: a database that is silent would keep them and their connections for ever.
async fn in_time(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let path = request.path().to_owned();
    let (longest, late) = match request.method().is_safe() {
        true => (READ_MAX, Problem::new(Code::Busy, "The database does not answer.")),
        false => (CHANGE_MAX, in_progress()),
    };
    let app = request.app_data::<web::Data<App>>().map(|app| app.as_ref().clone());
    match tokio::time::timeout(longest, next.call(request)).await {
        Ok(response) => Ok(response?.map_into_boxed_body()),
        Err(_) => {
            tracing::warn!("gave up on a database that is silent");
            if let Some(app) = app {
                app.db.forget_idle();
            }
            Err(late.at(&path).into())
        }
    }
}

/// What broke before there was an answer has no route any more, but it counts.
fn unanswered(error: &actix_web::Error) {
    let status = error.as_response_error().status_code().as_u16();
    metrics::counter!("payonce_requests_total", "route" => "none", "status" => status.to_string())
        .increment(1);
    tracing::warn!(status, "request");
}

fn record(response: &ServiceResponse<BoxBody>, time: Duration) {
    let ms = time.as_secs_f64() * 1000.0;
    let status = response.status().as_u16();
    let route = response.request().match_pattern().unwrap_or_else(|| "none".to_owned());
    metrics::histogram!("payonce_request_duration_seconds", "route" => route.clone()).record(time);
    metrics::counter!("payonce_requests_total", "route" => route, "status" => status.to_string())
        .increment(1);
    if response.status() >= StatusCode::INTERNAL_SERVER_ERROR {
        tracing::warn!(status, ms, "request");
    } else {
        tracing::info!(status, ms, "request");
    }
}

/// The client's own id, if it is one, so that both sides find the same lines.
fn request_id(request: &ServiceRequest) -> String {
    let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let usable = |id: &&str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    given.filter(usable).map_or_else(|| hex::encode(rand::random::<[u8; 8]>()), str::to_owned)
}

/// Clients that keep their connection would otherwise feed a stopping server until it is cut off.
fn last_if_stopping<B>(mut answer: ServiceResponse<B>, stop: &Stop) -> ServiceResponse<B> {
    if stop.is_asked() {
        answer.response_mut().head_mut().set_connection_type(ConnectionType::Close);
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}
