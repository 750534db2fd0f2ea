//! For measurements only (feature `bench`): the order path without its guard, and a process that
//! keeps no reply in memory.

use actix_web::{HttpRequest, HttpResponse, web};
use domain::OrderId;

use crate::accounts::bearer;
use crate::app::App;
use crate::guard;
use crate::operation::Stop;
use crate::orders::create::{Create, CreateOrder};
use crate::problem::Problem;

/// Whether to keep no replies in memory, so that replays come out of Redis, or out of Postgres where
/// there is no Redis: `PAYONCE_BENCH_FORGETFUL`.
pub fn is_forgetful() -> bool {
    std::env::var_os("PAYONCE_BENCH_FORGETFUL").is_some()
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
        Stop::Taken | Stop::Overtaken | Stop::GivingBack(_) => {
            Problem::internal(&"an unguarded order has no key")
        }
    })?;
    let _: OrderId = order;
    Ok(HttpResponse::Created().content_type("application/json").body(reply.body().clone()))
}
