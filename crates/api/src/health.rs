//! Is the process alive, can it serve, and what does it count?

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::json;

use crate::app::App;
use crate::problem::Problem;
use crate::telemetry::metrics::page;

/// `GET /healthz`: the process answers.
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(r#"{"status":"alive"}"#)
}

/// `GET /readyz`: the database answers. The cache is reported, but nothing depends on it.
pub async fn readyz(app: App) -> HttpResponse {
    let database = reaches_database(&app).await;
    let cache = match &app.redis {
        None => "none",
        Some(redis) if redis.ping().await => "ready",
        Some(_) => "unavailable",
    };
    let status = if database { "ready" } else { "not ready" };
    let body = json!({
        "status": status,
        "database": if database { "ready" } else { "unavailable" },
        "cache": cache,
    });
    let mut response = match database {
        true => HttpResponse::Ok(),
        false => HttpResponse::ServiceUnavailable(),
    };
    response.insert_header((header::CACHE_CONTROL, "no-store")).json(body)
}

/// `GET /metrics`, for this machine alone unless told otherwise. To others it does not exist.
pub async fn metrics(app: App, request: HttpRequest) -> Result<HttpResponse, Problem> {
    if !app.metrics_open && !is_local(&request) {
        return Err(Problem::not_found());
    }
    let page = page(&app).map_err(|error| Problem::internal(&error))?;
    Ok(HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(page))
}

/// From this machine, and not from a proxy on it that speaks for somebody else.
fn is_local(request: &HttpRequest) -> bool {
    let forwarded = ["forwarded", "x-forwarded-for", "x-real-ip"]
        .iter()
        .any(|header| request.headers().contains_key(*header));
    !forwarded && request.peer_addr().is_some_and(|peer| peer.ip().to_canonical().is_loopback())
}

async fn reaches_database(app: &App) -> bool {
    let Ok(mut conn) = app.db.connection().await else { return false };
    let answer = sqlx::query("select 1").execute(&mut *conn).await;
    conn.end(answer).is_ok()
}
