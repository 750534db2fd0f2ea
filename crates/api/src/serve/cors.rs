//! Which pages may call the API from a browser: those of listed origins, with a token, never with a
//! cookie.
//!
//! A browser asks first (a preflight), and shows a page only those headers that are named here: a
//! client that cannot read the replay marker or when to come again would have to guess.

use actix_cors::{Cors, CorsError};
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, header};
use actix_web::middleware::Next;

use crate::problem::{Code, Problem};

/// How long a browser may remember what it was told, in seconds.
const REMEMBERED_S: usize = 600;

/// The rules for these origins.
pub(crate) fn cors(origins: &[String]) -> Cors {
    let rules = Cors::default()
        .allowed_methods([Method::GET, Method::HEAD, Method::POST, Method::DELETE])
        .allowed_headers([
            header::AUTHORIZATION.as_str(),
            header::CONTENT_TYPE.as_str(),
            "idempotency-key",
            "prefer",
            "x-request-id",
        ])
        .expose_headers([
            header::LOCATION.as_str(),
            header::RETRY_AFTER.as_str(),
            "content-digest",
            "idempotency-key-expires",
            "idempotency-replayed",
            "preference-applied",
            "x-request-id",
        ])
        // An answer without permission is one that the browser keeps from the page.
        .block_on_origin_mismatch(false)
        .max_age(REMEMBERED_S);
    origins.iter().fold(rules, |rules, origin| rules.allowed_origin(origin))
}

/// A refused preflight is a problem like any other.
pub(crate) async fn refusals(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let response = next.call(request).await?.map_into_boxed_body();
    let refused = response.response().error();
    if refused.and_then(|error| error.as_error::<CorsError>()).is_none() {
        return Ok(response);
    }
    let (request, _) = response.into_parts();
    let problem = Problem::new(Code::Forbidden, "Pages of this origin may not do that here.");
    let answer = actix_web::ResponseError::error_response(&problem.at(request.path()));
    Ok(ServiceResponse::new(request, answer))
}
