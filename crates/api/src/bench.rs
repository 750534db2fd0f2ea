//! For measurements only (feature `bench`): the order path without its guard, and switches that
//! say where a replay has to come from.

use std::sync::OnceLock;

use actix_web::{HttpRequest, HttpResponse, web};
use domain::OrderId;

use crate::accounts::bearer;
use crate::app::App;
use crate::guard;
use crate::operation::Stop;
use crate::orders::create::{Create, CreateOrder};
use crate::problem::Problem;

/// Where replays come from, by `PAYONCE_BENCH_REPLAY`: `memory`, `redis` or `postgres`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayFrom {
    /// Wherever a reply is found first, as in production.
    Anywhere,
    /// Not out of memory.
    Redis,
    /// Neither out of memory nor out of Redis.
    Postgres,
}

/// What the environment asked for at the first call.
pub fn replay_from() -> ReplayFrom {
    static FROM: OnceLock<ReplayFrom> = OnceLock::new();
    *FROM.get_or_init(|| match std::env::var("PAYONCE_BENCH_REPLAY").as_deref() {
        Ok("redis") => ReplayFrom::Redis,
        Ok("postgres") => ReplayFrom::Postgres,
        _ => ReplayFrom::Anywhere,
    })
}

/// `POST /bench/orders`: the same checks, pricing and writes as `POST /v1/orders`, but for the
/// key, the fingerprint, the flight and the record.
pub fn routes(config: &mut web::ServiceConfig) {
    config.route("/bench/orders", web::post().to(unguarded_order));
}

async fn unguarded_order(
    app: App,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let account = bearer::authenticate(&app, request.headers()).await?;
    let document = guard::exempt_body(&request, payload).await?;
    let body: Result<CreateOrder, Problem> = guard::parse(&document);
    let create = Create { account, cart: None, body };
    let (order, reply) = create.without_guard(&app).await.map_err(|stop| match stop {
        Stop::Refused(problem) | Stop::Passing(problem) => problem,
        Stop::Database(error) => error.into(),
        Stop::Taken => Problem::internal(&"an unguarded order has no key"),
    })?;
    let _: OrderId = order;
    Ok(HttpResponse::Created().content_type("application/json").body(reply.body().clone()))
}
