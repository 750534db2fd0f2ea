//! Every URL of the API on one page.
//!
//! There are three ways to register a route, and only one of them takes a handler that changes
//! something: `guarded`, whose handlers get nothing but a [`Guarded`] request. An exemption has to
//! say why. The start compares this page with the OpenAPI document, and stops on a difference.

use actix_web::dev::HttpServiceFactory;
use actix_web::http::{Method, header};
use actix_web::middleware::{Condition, from_fn};
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, Route, web};
use serde::Serialize;
use serde_json::json;

use crate::accounts::{Role, create as accounts, current};
use crate::app::App;
use crate::catalog::{movement, read as products};
use crate::guard::{Guarded, Rule, Rules};
use crate::problem::{Code, Problem};
use crate::serve::cors;
use crate::webhooks::{endpoints, inbound};
use crate::{openapi, orders, pages, payments, records, refunds};

/// The API.
pub fn api() -> Api {
    let merchant = Rule { role: Some(Role::Merchant), ..Rule::default() };
    let anonymous = Rule { anonymous: true, ..Rule::default() };
    let bodiless = Rule { bodiless: true, ..Rule::default() };
    let keyed = Rule::default();

    let mut api = Api::default();
    api.guarded(Method::POST, "/v1/accounts", anonymous, accounts::create_account);
    api.read("/v1/accounts/me", current::get_account);
    api.read("/v1/accounts/{id}", current::get_account_by_id);
    api.exempt(
        Method::POST,
        "/v1/sessions",
        "a token must never be stored in a reply that can be replayed",
        current::create_session,
    );
    api.exempt(
        Method::DELETE,
        "/v1/sessions/current",
        "signing out twice is the same as once",
        current::delete_session,
    );

    api.read("/v1/products", products::list_products);
    api.read("/v1/products/{sku}", products::get_product);
    api.guarded(
        Method::POST,
        "/v1/products/{sku}/stock-movements",
        merchant,
        movement::create_stock_movement,
    );
    api.read("/v1/products/{sku}/stock-movements/{id}", movement::get_stock_movement);

    api.guarded(Method::POST, "/v1/orders", keyed, orders::create::create_order);
    api.read("/v1/orders", orders::read::list_orders);
    api.read("/v1/orders/{id}", orders::read::get_order);
    api.guarded(Method::POST, "/v1/orders/{id}/cancel", bodiless, orders::cancel::cancel_order);
    api.guarded(
        Method::POST,
        "/v1/orders/{id}/receipts",
        bodiless,
        orders::receipt::create_receipt,
    );

    api.guarded(Method::POST, "/v1/orders/{id}/payments", keyed, payments::create::create_payment);
    api.read("/v1/payments/{id}", payments::read::get_payment);
    // All members of a refund are optional, and so is its body: without one, all of it goes back.
    api.guarded(
        Method::POST,
        "/v1/payments/{id}/refunds",
        bodiless,
        refunds::create::create_refund,
    );
    api.read("/v1/refunds/{id}", refunds::read::get_refund);

    let merchant_bodiless = Rule { bodiless: true, ..merchant };
    let hooks = "/v1/webhook-endpoints";
    let hook = "/v1/webhook-endpoints/{id}";
    api.guarded(Method::POST, hooks, merchant, endpoints::create::create_endpoint);
    api.read(hooks, endpoints::read::list_endpoints);
    api.read(hook, endpoints::read::get_endpoint);
    api.guarded(Method::DELETE, hook, merchant_bodiless, endpoints::delete::delete_endpoint);
    api.read("/v1/webhook-endpoints/{id}/secret", endpoints::read::get_secret);
    api.exempt(
        Method::POST,
        "/v1/webhooks/provider",
        "the event id is the key",
        inbound::receive_event,
    );

    api.read("/v1/idempotency-keys/{key}", records::get_record);
    api.read("/.well-known/idempotency", policy);
    api
}

/// Registered routes.
#[derive(Default)]
pub struct Api {
    paths: Vec<PathRoutes>,
    facts: Vec<RouteFacts>,
}

/// What one path answers to.
struct PathRoutes {
    path: &'static str,
    routes: Vec<(Method, Route)>,
    rules: Vec<(Method, Rule)>,
}

/// What is known of a route without calling it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteFacts {
    /// `POST`, …
    pub method: String,
    /// With placeholders.
    pub path: &'static str,
    /// Whether it takes a key.
    pub guarded: bool,
    /// Why it changes something without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exempt: Option<&'static str>,
    /// The role it asks for.
    #[serde(skip)]
    pub role: Option<Role>,
}

impl Api {
    /// A route that only reads.
    fn read<F, Args>(&mut self, path: &'static str, handler: F)
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.note(&Method::GET, path, None);
        self.add(Method::GET, path, None, web::get().to(handler));
    }

    /// A route that changes something, under a key.
    fn guarded<F>(&mut self, method: Method, path: &'static str, rule: Rule, handler: F)
    where
        F: Handler<(Guarded,)>,
        F::Output: Responder + 'static,
    {
        self.facts.push(RouteFacts {
            method: method.to_string(),
            path,
            guarded: true,
            exempt: None,
            role: rule.role,
        });
        self.add(method.clone(), path, Some(rule), web::method(method).to(handler));
    }

    /// A route that changes something without a key, and why it may.
    fn exempt<F, Args>(&mut self, method: Method, path: &'static str, why: &'static str, handler: F)
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.note(&method, path, Some(why));
        self.add(method.clone(), path, None, web::method(method).to(handler));
    }

    fn note(&mut self, method: &Method, path: &'static str, exempt: Option<&'static str>) {
        let method = method.to_string();
        self.facts.push(RouteFacts { method, path, guarded: false, exempt, role: None });
    }

    fn add(&mut self, method: Method, path: &'static str, rule: Option<Rule>, route: Route) {
        let known = self.paths.iter().position(|known| known.path == path);
        let at = known.unwrap_or_else(|| {
            self.paths.push(PathRoutes { path, routes: Vec::new(), rules: Vec::new() });
            self.paths.len() - 1
        });
        let entry = &mut self.paths[at];
        entry.rules.extend(rule.map(|rule| (method.clone(), rule)));
        entry.routes.push((method, route));
    }

    /// What is known of all routes.
    pub fn facts(&self) -> &[RouteFacts] {
        &self.facts
    }

    /// The routes for actix-web. They are tried one after the other: fixed paths, which are compared
    /// in no time, go first, and fixed segments before placeholders.
    pub fn into_services(mut self, origins: &[String]) -> Vec<impl HttpServiceFactory + use<>> {
        let rank = |path: &str| (path.contains('{'), path.replace('{', "~"));
        self.paths.sort_by_key(|entry| rank(entry.path));
        self.paths
            .into_iter()
            .map(|PathRoutes { path, routes, rules }| {
                let allow = allowed(routes.iter().map(|(method, _)| method));
                // A key may hold slashes.
                let pattern = path.replace("{key}", "{key:.+}");
                let mut resource = web::resource(pattern).app_data(Rules(rules));
                for (_, route) in routes {
                    resource = resource.route(route);
                }
                resource
                    .default_service(web::to(move || std::future::ready(wrong_method(&allow))))
                    .wrap(Condition::new(!origins.is_empty(), cors::cors(origins)))
                    .wrap(Condition::new(!origins.is_empty(), from_fn(cors::refusals)))
            })
            .collect()
    }

    /// Compares the routes with the OpenAPI document.
    ///
    /// # Errors
    /// A sentence for each difference.
    pub fn check(&self) -> anyhow::Result<()> {
        let document = openapi::operations();
        let missing: Vec<String> = self
            .facts
            .iter()
            .map(|route| format!("{} {}", route.method, route.path))
            .filter(|route| !document.contains(route))
            .chain(document.iter().filter(|operation| !self.has(operation)).cloned())
            .collect();
        anyhow::ensure!(
            missing.is_empty(),
            "routes and OpenAPI document differ in {}",
            missing.join(", ")
        );
        Ok(())
    }

    fn has(&self, operation: &str) -> bool {
        self.facts.iter().any(|route| format!("{} {}", route.method, route.path) == *operation)
    }
}

/// A path beside the API that only shows something.
pub fn shown<F, Args>(path: &'static str, handler: F) -> Resource
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    only_shown(path).route(web::get().to(handler))
}

/// The refusal of every other method, where somebody else's code shows it.
pub fn only_shown(path: &'static str) -> Resource {
    let allow = allowed([&Method::GET]);
    let refusal = web::to(move || std::future::ready(wrong_method(&allow)));
    web::resource(path).default_service(refusal)
}

/// What a path says that it knows: whatever is shown is shown to HEAD as well.
pub fn allowed<'a>(methods: impl IntoIterator<Item = &'a Method>) -> String {
    let names = methods.into_iter().map(|method| match *method {
        Method::GET => "GET, HEAD",
        ref other => other.as_str(),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn wrong_method(allow: &str) -> Result<HttpResponse, Problem> {
    Err(Problem::new(Code::MethodNotAllowed, format!("This path knows {allow}."))
        .header(header::ALLOW, allow))
}

/// Nothing is at this address.
pub async fn nowhere(request: HttpRequest) -> Result<HttpResponse, Problem> {
    if let Some(page) = pages::nowhere(&request) {
        return Ok(page);
    }
    Err(Problem::not_found())
}

/// Tells the rules of keys, for machines
#[utoipa::path(
    get, path = "/.well-known/idempotency", tag = "Idempotency", security(),
    responses((status = 200, description = "Key syntax, retention, waiting, and each route", body = openapi::Policy)),
)]
pub async fn policy(app: App) -> HttpResponse {
    let api = api();
    HttpResponse::Ok().json(json!({
        "key": { "min": 1, "max": idempotency::key::KEY_BYTES_MAX,
                 "charset": "visible ASCII without , ; \" \\" },
        "retention_seconds": app.limits.retention.as_secs(),
        "wait": { "default": idempotency::prefer::WAIT_DEFAULT.as_secs(),
                  "max": idempotency::prefer::WAIT_MAX.as_secs() },
        "routes": api.facts(),
    }))
}
