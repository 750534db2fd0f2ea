//! Is the process alive, and can it serve?

use actix_web::HttpResponse;
use actix_web::http::header;
use serde_json::json;

use crate::app::App;

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

async fn reaches_database(app: &App) -> bool {
    let Ok(mut conn) = app.db.connection().await else { return false };
    let answer = sqlx::query("select 1").execute(&mut *conn).await;
    conn.end(answer).is_ok()
}
