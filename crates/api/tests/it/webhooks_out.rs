//! Events of ours: told to who listens, signed, the same bytes every time, and to nobody private.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix_web::web::{Bytes, Data};
use actix_web::{App as Web, HttpRequest, HttpResponse, HttpServer, web};
use api::webhooks::deliver;
use api::webhooks::signature::{Secret, Signed, verify};
use serde_json::{Value, json};

use crate::app::{Caller, TestApp, eventually};

/// Whatever arrived at a receiver.
#[derive(Debug, Clone)]
struct Arrival {
    path: String,
    id: String,
    timestamp: String,
    signature: String,
    body: Vec<u8>,
}

impl Arrival {
    fn is_signed_with(&self, secret: &Secret) -> bool {
        let signed =
            Signed { id: &self.id, timestamp: &self.timestamp, signature: &self.signature };
        let now = self.timestamp.parse().unwrap();
        verify(std::slice::from_ref(secret), signed, &self.body, now).is_ok()
    }

    fn event(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A merchant's server: `/ok`, `/hang`, `/refuse`, `/redirect`.
#[derive(Clone, Default)]
struct Receiver {
    arrivals: Arc<Mutex<Vec<Arrival>>>,
}

impl Receiver {
    fn open() -> (Self, String) {
        let receiver = Self::default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let data = Data::new(receiver.clone());
        let app = move || Web::new().app_data(data.clone()).default_service(web::to(receive));
        let server = HttpServer::new(app).workers(1).disable_signals().listen(listener).unwrap();
        tokio::spawn(server.run());
        (receiver, url)
    }

    fn at(&self, path: &str) -> Vec<Arrival> {
        let arrivals = self.arrivals.lock().unwrap();
        arrivals.iter().filter(|arrival| arrival.path == path).cloned().collect()
    }
}

async fn receive(receiver: Data<Receiver>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let header = |name: &str| {
        let value = request.headers().get(name);
        value.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    receiver.arrivals.lock().unwrap().push(Arrival {
        path: request.path().to_owned(),
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
        body: body.to_vec(),
    });
    match request.path() {
        "/hang" => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            HttpResponse::NoContent().finish()
        }
        "/refuse" => HttpResponse::InternalServerError().body("a secret of the receiver"),
        "/redirect" => HttpResponse::Found().insert_header(("location", "/private")).finish(),
        _ => HttpResponse::NoContent().finish(),
    }
}

/// Registers a receiver and returns its id.
async fn listen(merchant: &Caller, key: &str, url: &str) -> String {
    let body = json!({ "url": url, "events": ["order.paid", "order.cancelled"] });
    merchant.post("/v1/webhook-endpoints", key, &body).await.expect(201).text("id")
}

async fn secret(merchant: &Caller, endpoint: &str) -> Secret {
    let path = format!("/v1/webhook-endpoints/{endpoint}/secret");
    merchant.get(&path).await.expect(200).text("secret").parse().unwrap()
}

async fn cancel_one(shopper: &Caller, key: &str) {
    let order = shopper.order(&format!("{key}-order")).await;
    shopper
        .post_empty(&format!("/v1/orders/{order}/cancel"), &format!("{key}-cancel"))
        .await
        .expect(200);
}

#[tokio::test]
async fn an_endpoint_is_made_once_and_its_secret_is_in_no_reply() {
    let app = TestApp::start().await;
    let (merchant, shopper) = (app.merchant().await, app.shopper().await);
    let body = json!({ "url": "http://127.0.0.1:9/hook", "events": ["order.paid"] });
    let made = merchant.post("/v1/webhook-endpoints", "k1", &body).await.expect(201);
    let id = made.text("id");
    let path = format!("/v1/webhook-endpoints/{id}");
    assert_eq!(made.header("location"), Some(&*path));
    merchant.post("/v1/webhook-endpoints", "k1", &body).await.expect(201).replays(&made);
    let revealed = merchant.get(&format!("{path}/secret")).await.expect(200);
    assert_eq!(revealed.header("cache-control"), Some("no-store"));
    app.traffic.keep_secret(revealed.text("secret").trim_start_matches("whsec_"));
    assert_eq!(merchant.get(&path).await.expect(200).json(), made.json());
    let list = merchant.get("/v1/webhook-endpoints").await.expect(200).json();
    assert_eq!(list["data"], json!([made.json()]));

    shopper.post("/v1/webhook-endpoints", "k1", &body).await.problem(403, "forbidden");
    shopper.get(&path).await.problem(403, "forbidden");
    shopper.get("/v1/webhook-endpoints").await.problem(403, "forbidden");
    shopper.delete(&path, "k2").await.problem(403, "forbidden");

    let gone = merchant.delete(&path, "k2").await.expect(204);
    assert!(gone.body.is_empty());
    merchant.delete(&path, "k2").await.expect(204).replays(&gone);
    merchant.delete(&path, "k3").await.problem(404, "not_found");
    merchant.get(&path).await.problem(404, "not_found");
    // What was said when it was made stays said, and makes no second one.
    merchant.post("/v1/webhook-endpoints", "k1", &body).await.expect(201).replays(&made);
    merchant.get(&format!("{path}/secret")).await.problem(404, "not_found");
    merchant.delete("/v1/webhook-endpoints/nonsense", "k4").await.problem(404, "not_found");
    assert_eq!(app.number("select count(*) from webhook_endpoint").await, 1);
    let kept = "select sum(octet_length(sealed_secret)) from webhook_endpoint";
    assert_eq!(app.number(kept).await, 0);
    app.finish().await;
}

#[tokio::test]
async fn what_cannot_be_an_endpoint_is_said_with_a_pointer() {
    let app = TestApp::with(crate::app::Options::public_targets_only).await;
    let merchant = app.merchant().await;
    let ok = "https://93.184.215.14/";
    for (url, events, pointer) in [
        ("http://127.0.0.1/", json!(["order.paid"]), "/url"),
        ("http://localhost:8080/", json!(["order.paid"]), "/url"),
        ("http://169.254.169.254/latest", json!(["order.paid"]), "/url"),
        ("http://2130706433/", json!(["order.paid"]), "/url"),
        ("http://[::ffff:10.0.0.1]/", json!(["order.paid"]), "/url"),
        ("ftp://93.184.215.14/", json!(["order.paid"]), "/url"),
        (ok, json!([]), "/events"),
        (ok, json!(["order.paid", "order.paid"]), "/events"),
        (ok, json!(["order.eaten"]), "/events/0"),
    ] {
        let body = json!({ "url": url, "events": events });
        let refused = merchant.post("/v1/webhook-endpoints", "k", &body).await;
        let refused = refused.problem(422, "validation_failed").json();
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{url} {refused}");
    }
    app.finish().await;
}

#[tokio::test]
async fn who_listens_is_told_once_with_a_signature_that_fits() {
    let app = TestApp::start().await;
    let (receiver, url) = Receiver::open();
    let (merchant, shopper) = (app.merchant().await, app.new_account().await);
    let endpoint = listen(&merchant, "k", &format!("{url}/ok")).await;
    let order = shopper.order("order").await;
    shopper.pay(&order, "k1", "pm_card_declined").await.expect(402);
    shopper.pay(&order, "k2", "pm_card_ok").await.expect(201);
    let (one, other) = (app.app().clone(), app.app().clone());
    let rounds = tokio::join!(deliver::run_once(&one), deliver::run_once(&other));
    assert_eq!(rounds.0.unwrap().delivered + rounds.1.unwrap().delivered, 1);
    let arrivals = receiver.at("/ok");
    assert_eq!(arrivals.len(), 1, "a declined card is not heard of: {arrivals:?}");
    assert!(arrivals[0].is_signed_with(&secret(&merchant, &endpoint).await));
    let event = arrivals[0].event();
    assert_eq!(event["type"], "order.paid");
    assert_eq!(event["id"], arrivals[0].id);
    assert_eq!(event["data"]["order_id"], order);
    assert_eq!(deliver::run_once(app.app()).await.unwrap().taken, 0);
    app.finish().await;
}

#[tokio::test]
async fn every_attempt_has_the_same_id_and_bytes_until_it_is_given_up() {
    let app = TestApp::start().await;
    let (receiver, url) = Receiver::open();
    let (merchant, shopper) = (app.merchant().await, app.new_account().await);
    let endpoint = listen(&merchant, "k", &format!("{url}/refuse")).await;
    cancel_one(&shopper, "one").await;
    let mut attempts = 0;
    while app.number("select count(*) from delivery where state = 'queued'").await > 0 {
        attempts += deliver::run_once(app.app()).await.unwrap().taken;
        app.execute("update delivery set next_attempt_at = clock_timestamp()").await;
        assert!(attempts < 50, "it is given up some day");
    }
    let arrivals = receiver.at("/refuse");
    assert_eq!((arrivals.len(), attempts), (11, 11));
    let secret = secret(&merchant, &endpoint).await;
    for arrival in &arrivals {
        assert_eq!((&arrival.id, &arrival.body), (&arrivals[0].id, &arrivals[0].body));
        assert!(arrival.is_signed_with(&secret));
    }
    let leaked = "select count(*) from delivery where last_error like '%secret of the receiver%'";
    assert_eq!(app.number(leaked).await, 0);
    assert_eq!(app.number("select count(*) from delivery where state = 'dead'").await, 1);
    app.finish().await;
}

#[tokio::test]
async fn a_worker_that_died_leaves_its_delivery_to_the_end_of_the_lease() {
    let app = TestApp::start().await;
    let (receiver, url) = Receiver::open();
    let (merchant, shopper) = (app.merchant().await, app.new_account().await);
    listen(&merchant, "k", &format!("{url}/ok")).await;
    cancel_one(&shopper, "one").await;
    let mut conn = app.database.connect().await;
    let taken = deliver::sql::claim(&mut conn).await.unwrap().expect("one is due");
    assert_eq!(deliver::run_once(app.app()).await.unwrap().taken, 0, "it is leased");
    app.execute(
        "update delivery set next_attempt_at = clock_timestamp(), lease_until = clock_timestamp()",
    )
    .await;
    assert_eq!(deliver::run_once(app.app()).await.unwrap().delivered, 1);
    assert!(
        !deliver::sql::delivered(&mut conn, &taken).await.unwrap(),
        "the old worker is too late"
    );
    assert_eq!(receiver.at("/ok").len(), 1);
    app.finish().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_deleted_endpoint_hears_nothing_more() {
    let app = TestApp::start().await;
    let (receiver, url) = Receiver::open();
    let (merchant, shopper) = (app.merchant().await, app.new_account().await);
    listen(&merchant, "k1", &format!("{url}/redirect")).await;
    let deleted = listen(&merchant, "k2", &format!("{url}/ok")).await;
    cancel_one(&shopper, "one").await;
    merchant.delete(&format!("/v1/webhook-endpoints/{deleted}"), "k3").await.expect(204);
    let counts = deliver::run_once(app.app()).await.unwrap();
    assert_eq!((counts.taken, counts.delivered), (2, 0));
    assert_eq!(receiver.at("/redirect").len(), 1);
    assert_eq!(receiver.at("/private").len() + receiver.at("/ok").len(), 0);
    assert_eq!(app.number("select count(*) from delivery where state = 'dead'").await, 1);
    app.finish().await;
}

/// The endpoint was allowed when it was made; what its host stands for has changed since.
#[tokio::test]
async fn targets_are_looked_at_again_when_something_is_sent() {
    let app = TestApp::with(crate::app::Options::public_targets_only).await;
    let (receiver, url) = Receiver::open();
    let (merchant, shopper) = (app.merchant().await, app.new_account().await);
    let port = url.rsplit(':').next().unwrap();
    for (number, host) in ["93.184.215.14", "93.184.215.15"].into_iter().enumerate() {
        listen(&merchant, &format!("k{number}"), &format!("http://{host}/")).await;
    }
    app.execute(format!(
        "update webhook_endpoint set url = case when url like '%14/' then 'http://127.0.0.1:{port}/ok'
                                                else 'http://localhost:{port}/ok' end"
    ))
    .await;
    cancel_one(&shopper, "one").await;
    let counts = deliver::run_once(app.app()).await.unwrap();
    assert_eq!((counts.taken, counts.delivered), (2, 0));
    assert!(receiver.arrivals.lock().unwrap().is_empty());
    let why = "select count(*) from delivery where last_error like '%not on the public internet%'";
    assert_eq!(app.number(why).await, 2);
    app.finish().await;
}

#[tokio::test]
async fn a_receiver_that_hangs_delays_nobody() {
    let app = TestApp::start().await;
    let (receiver, url) = Receiver::open();
    let (merchant, shopper) = (app.merchant().await, app.new_account().await);
    listen(&merchant, "hang", &format!("{url}/hang")).await;
    for number in 0..4 {
        listen(&merchant, &format!("k{number}"), &format!("{url}/ok/{number}")).await;
    }
    for number in 0..10 {
        cancel_one(&shopper, &format!("c{number}")).await;
    }
    let replica = app.second_server().await;
    let begun = Instant::now();
    let workers = [app.app().clone(), replica.app.clone()]
        .map(|app| tokio::spawn(async move { deliver::run_once(&app).await.unwrap() }));
    let healthy = async || (0..4).map(|n| receiver.at(&format!("/ok/{n}")).len()).sum::<usize>();
    eventually("the others are told", async || healthy().await == 40).await;
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!(healthy().await, 40, "each once");
    assert!(receiver.at("/hang").len() >= 4);
    replica.stop().await;
    app.execute("delete from delivery where state = 'queued'").await;
    app.finish().await;
}

#[tokio::test]
async fn another_merchants_endpoint_is_not_there() {
    let app = TestApp::start().await;
    let (merchant, other) = (app.merchant().await, app.new_account().await);
    app.execute(format!(
        "update account set role = 'merchant' where id = '{}'",
        other.account().id.uuid()
    ))
    .await;
    let endpoint = listen(&merchant, "k", "http://127.0.0.1:9/").await;
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    other.get(&path).await.problem(404, "not_found");
    other.get(&format!("{path}/secret")).await.problem(404, "not_found");
    other.delete(&path, "k").await.problem(404, "not_found");
    assert_eq!(other.get("/v1/webhook-endpoints").await.expect(200).json()["data"], json!([]));
    merchant.get(&path).await.expect(200);
    app.finish().await;
}

#[tokio::test]
async fn a_merchant_who_is_none_any_more_hears_nothing_more() {
    let app = TestApp::start().await;
    let (receiver, url) = Receiver::open();
    let (merchant, shopper) = (app.new_account().await, app.new_account().await);
    let id = merchant.account().id.uuid();
    let role = |role: &str| format!("update account set role = '{role}' where id = '{id}'");
    app.execute(role("merchant")).await;
    listen(&merchant, "k", &format!("{url}/ok")).await;
    cancel_one(&shopper, "heard").await;
    assert_eq!(deliver::run_once(app.app()).await.unwrap().delivered, 1);

    // One event waits while the role is lost, and one comes after.
    cancel_one(&shopper, "waiting").await;
    app.execute(role("shopper")).await;
    cancel_one(&shopper, "after").await;
    let counts = deliver::run_once(app.app()).await.unwrap();
    assert_eq!((counts.taken, counts.delivered), (1, 0));
    assert_eq!(receiver.at("/ok").len(), 1);
    assert_eq!(app.number("select count(*) from delivery where state = 'dead'").await, 1);
    app.finish().await;
}
