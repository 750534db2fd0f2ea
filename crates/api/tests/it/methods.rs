//! Which methods a path knows: HEAD wherever GET is, and 405 with `Allow` for the rest.

use std::collections::BTreeMap;

use crate::app::{Caller, TestApp};
use crate::openapi::described;
use crate::raw;

/// Pages and what stands beside the API; what it answers, and what it allows.
const BESIDE: &[(&str, u16, &str)] = &[
    ("/healthz", 200, "GET, HEAD"),
    ("/readyz", 200, "GET, HEAD"),
    ("/openapi.json", 200, "GET, HEAD"),
    ("/v1/.well-known/idempotency", 200, "GET, HEAD"),
    ("/docs/", 200, "GET, HEAD"),
    ("/docs/index.css", 200, "GET, HEAD"),
    ("/", 200, "GET, HEAD"),
    ("/cart", 200, "GET, HEAD, POST"),
    ("/checkout", 200, "GET, HEAD, POST"),
    ("/orders", 200, "GET, HEAD"),
    ("/orders/ord_1", 404, "GET, HEAD"),
    ("/sign-in", 200, "GET, HEAD, POST"),
    ("/mailbox", 200, "GET, HEAD"),
    ("/inspect", 200, "GET, HEAD"),
    ("/problems", 200, "GET, HEAD"),
    ("/problems/busy", 200, "GET, HEAD"),
    ("/problems/no-such", 404, "GET, HEAD"),
    ("/learn", 200, "GET, HEAD"),
];

/// The lines of a head that two answers to the same question have in common.
fn lines(head: &str) -> BTreeMap<String, String> {
    let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    let own = |name: &str| ["date", "x-request-id", "set-cookie"].contains(&name);
    lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .map(|(name, value)| if own(&name) { (name, String::new()) } else { (name, value) })
        .collect()
}

async fn raw(caller: &Caller, method: &str, path: &str) -> raw::RawResponse {
    let token = caller.token.as_ref().map(|token| format!("Authorization: Bearer {token}"));
    let headers: Vec<&str> = token.iter().map(String::as_str).collect();
    raw::send(caller.address, &raw::request(&format!("{method} {path}"), &headers, "")).await
}

#[tokio::test]
async fn whatever_is_shown_is_shown_to_head_without_its_body() {
    let app = TestApp::start().await;
    let merchant = app.merchant().await;
    let order = merchant.order("an-order").await;
    let real = [format!("/v1/orders/{order}"), "/v1/idempotency-keys/an-order".to_owned()];
    let of_the_api = described().into_iter().filter(|one| one.method == "GET");
    let mut paths: Vec<String> = of_the_api.map(|one| one.concrete()).collect();
    assert!(paths.len() > 10, "{paths:?}");
    paths.extend(real);
    paths.extend(BESIDE.iter().map(|(path, ..)| (*path).to_owned()));
    for path in paths {
        let (whole, head) =
            (raw(&merchant, "GET", &path).await, raw(&merchant, "HEAD", &path).await);
        assert_eq!(head.status, whole.status, "{path}: {head:?}");
        assert_eq!(lines(&head.head), lines(&whole.head), "{path}");
        assert_eq!(head.body, "", "{path}");
        assert!(!whole.body.is_empty(), "{path}");
    }
    let nowhere = raw(&merchant, "HEAD", "/v1/nowhere").await;
    assert_eq!((nowhere.status, &*nowhere.body), (404, ""));
    app.finish().await;
}

#[tokio::test]
async fn a_known_path_says_which_methods_it_knows() {
    let app = TestApp::start().await;
    let anybody = app.anonymous();
    for (path, status, allow) in BESIDE {
        anybody.get(path).await.expect(*status);
        let refused = anybody.request("PATCH", path).send().await.expect(405);
        assert_eq!(refused.header("allow"), Some(*allow), "{path}");
    }
    let allowed = |path: &str| {
        let known = described().into_iter().filter(|one| one.path == path);
        let mut methods: Vec<String> = known.map(|one| one.method).collect();
        if methods.iter().any(|method| method == "GET") {
            methods.push("HEAD".to_owned());
        }
        methods.sort_unstable();
        methods.join(", ")
    };
    for one in described() {
        let refused = anybody.request("PATCH", &one.concrete()).send().await;
        let refused = refused.problem(405, "method_not_allowed");
        let mut said: Vec<&str> = refused.header("allow").unwrap().split(", ").collect();
        said.sort_unstable();
        assert_eq!(said.join(", "), allowed(&one.path), "{}", one.path);
    }
    anybody.request("POST", "/healthz").send().await.problem(405, "method_not_allowed");
    for path in ["/healthz/x", "/nowhere", "/v1/nowhere"] {
        anybody.request("POST", path).send().await.problem(404, "not_found");
    }
    app.finish().await;
}
