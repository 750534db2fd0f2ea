//! Every URL of the pages on one page. Forms without a key set something, so that sending them
//! again changes nothing; every other form runs an operation under its hidden key.

use actix_web::dev::{AppService, HttpServiceFactory};
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::{self, ServiceConfig};
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, Route};

use super::{
    assets, cart, checkout, inspect, mailbox, order, orders, posted, preferences, problems,
    response, shop, sign_in, statement,
};
use crate::problem::{Code, Problem};
use crate::routes::allowed;

/// Registers the pages.
pub fn configure(config: &mut ServiceConfig) {
    config
        .app_data(posted::form_config())
        .app_data(posted::query_config())
        .service(page("/").get(shop::show_shop))
        .service(page("/cart").get(cart::show_cart).post(cart::set_quantity))
        .service(page("/cart/currency").post(cart::keep_currency))
        .service(page("/checkout").get(checkout::show_checkout).post(checkout::pay::pay_cart))
        .service(page("/orders").get(orders::list_orders))
        .service(page("/orders/{id}").get(order::show::show_order))
        .service(page("/orders/{id}/payments").post(order::act::pay_order))
        .service(page("/orders/{id}/refunds").post(order::act::refund_order))
        .service(page("/orders/{id}/cancel").post(order::act::cancel_order))
        .service(page("/sign-in").get(sign_in::show_sign_in).post(sign_in::sign_in))
        .service(page("/accounts").post(sign_in::create_account))
        .service(page("/sign-out").post(sign_in::sign_out))
        .service(page("/theme").post(preferences::set_theme))
        .service(page("/language").post(preferences::set_language))
        .service(page("/mailbox").get(mailbox::show_mailbox))
        .service(page("/inspect").get(inspect::show_inspect))
        .service(page("/statement").get(statement::show_statement))
        .service(page("/problems").get(problems::list_problems))
        .service(page("/problems/{code}").get(problems::show_problem))
        .configure(super::lab::configure)
        .service(page("/static/{hash}/{name:.*}").get(assets::serve));
}

/// A path whose refusals are pages, too.
pub(super) fn page(path: &'static str) -> Page {
    Page { resource: web::resource(path), methods: Vec::new() }
}

/// What one path of the pages answers to.
pub(super) struct Page {
    resource: Resource,
    methods: Vec<Method>,
}

impl Page {
    /// What is shown there.
    pub(super) fn get<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.add(Method::GET, web::get().to(handler))
    }

    /// What a form does that is sent there.
    pub(super) fn post<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.add(Method::POST, web::post().to(handler))
    }

    fn add(mut self, method: Method, route: Route) -> Self {
        self.methods.push(method);
        Self { resource: self.resource.route(route), methods: self.methods }
    }
}

impl HttpServiceFactory for Page {
    fn register(self, config: &mut AppService) {
        let allow = allowed(&self.methods);
        let refusal =
            move |request: HttpRequest| std::future::ready(wrong_method(&request, &allow));
        self.resource.default_service(web::to(refusal)).register(config);
    }
}

fn wrong_method(request: &HttpRequest, allow: &str) -> HttpResponse {
    let words = "This page does not know that method. Nothing was done.";
    let mut response = response::refusal(request, &Problem::new(Code::MethodNotAllowed, words));
    if let Ok(allow) = HeaderValue::from_str(allow) {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

/// The answer for an address that is none, if it was asked for by a person.
pub fn nowhere(request: &HttpRequest) -> Option<HttpResponse> {
    let accepts = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let person = accepts.is_some_and(|kinds| kinds.contains("text/html"));
    (person && !request.path().starts_with("/v1")).then(|| response::not_found(request))
}
