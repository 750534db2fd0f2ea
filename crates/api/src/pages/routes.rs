//! Every URL of the pages on one page. Forms without a key set something, so that sending them
//! again changes nothing; every other form runs an operation under its hidden key.

use actix_web::http::header;
use actix_web::web::{self, ServiceConfig, get, post};
use actix_web::{HttpRequest, HttpResponse, Resource};

use super::{
    assets, cart, checkout, inspect, mailbox, order, orders, posted, preferences, problems,
    response, shop, sign_in, statement,
};
use crate::problem::{Code, Problem};

/// Registers the pages.
pub fn configure(config: &mut ServiceConfig) {
    config
        .app_data(posted::form_config())
        .app_data(posted::query_config())
        .service(page("/").route(get().to(shop::show_shop)))
        .service(
            page("/cart").route(get().to(cart::show_cart)).route(post().to(cart::set_quantity)),
        )
        .service(page("/cart/currency").route(post().to(cart::keep_currency)))
        .service(
            page("/checkout")
                .route(get().to(checkout::show_checkout))
                .route(post().to(checkout::pay::pay_cart)),
        )
        .service(page("/orders").route(get().to(orders::list_orders)))
        .service(page("/orders/{id}").route(get().to(order::show::show_order)))
        .service(page("/orders/{id}/payments").route(post().to(order::act::pay_order)))
        .service(page("/orders/{id}/refunds").route(post().to(order::act::refund_order)))
        .service(page("/orders/{id}/cancel").route(post().to(order::act::cancel_order)))
        .service(
            page("/sign-in")
                .route(get().to(sign_in::show_sign_in))
                .route(post().to(sign_in::sign_in)),
        )
        .service(page("/accounts").route(post().to(sign_in::create_account)))
        .service(page("/sign-out").route(post().to(sign_in::sign_out)))
        .service(page("/theme").route(post().to(preferences::set_theme)))
        .service(page("/language").route(post().to(preferences::set_language)))
        .service(page("/mailbox").route(get().to(mailbox::show_mailbox)))
        .service(page("/inspect").route(get().to(inspect::show_inspect)))
        .service(page("/statement").route(get().to(statement::show_statement)))
        .service(page("/problems").route(get().to(problems::list_problems)))
        .service(page("/problems/{code}").route(get().to(problems::show_problem)))
        .configure(super::lab::configure)
        .service(page("/static/{hash}/{name:.*}").route(get().to(assets::serve)));
}

/// A path whose refusals are pages, too.
pub(super) fn page(path: &str) -> Resource {
    web::resource(path).default_service(web::to(async |request: HttpRequest| {
        let words = "This page does not know that method. Nothing was done.";
        response::refusal(&request, &Problem::new(Code::MethodNotAllowed, words))
    }))
}

/// The answer for an address that is none, if it was asked for by a person.
pub fn nowhere(request: &HttpRequest) -> Option<HttpResponse> {
    let accepts = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let person = accepts.is_some_and(|kinds| kinds.contains("text/html"));
    (person && !request.path().starts_with("/v1")).then(|| response::not_found(request))
}
