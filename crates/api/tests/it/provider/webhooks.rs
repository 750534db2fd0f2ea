//! The provider's webhooks: signed, the same bytes on every attempt, and as unruly as asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use actix_web::web::{Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use api::provider::mock::{MockSettings, WebhookOrder};
use api::webhooks::signature::{Secret, Signed, Untrusted, verify};
use serde_json::{Value, json};

use super::{Provider, TestDatabase, charge, eventually, free_listener, refund_of};

/// One arrival, with its headers as they came.
#[derive(Debug, Clone)]
struct Arrival {
    id: String,
    timestamp: String,
    signature: String,
    body: Vec<u8>,
}

#[derive(Clone, Default)]
struct Inbox {
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    refusals_left: Arc<Mutex<u32>>,
}

impl Inbox {
    fn open(&self) -> String {
        let listener = free_listener();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let inbox = self.clone();
        let app = move || {
            App::new().app_data(Data::new(inbox.clone())).route("/hook", web::post().to(receive))
        };
        let server = HttpServer::new(app).workers(1).disable_signals().listen(listener).unwrap();
        tokio::spawn(server.run());
        url
    }

    fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap().clone()
    }

    async fn when(&self, enough: impl Fn(&[Arrival]) -> bool) -> Vec<Arrival> {
        eventually("enough arrivals", async || Some(self.arrivals()).filter(|all| enough(all)))
            .await
    }
}

async fn receive(inbox: Data<Inbox>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let header = |name: &str| request.headers().get(name).unwrap().to_str().unwrap().to_owned();
    inbox.arrivals.lock().unwrap().push(Arrival {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
        body: body.to_vec(),
    });
    let mut refusals = inbox.refusals_left.lock().unwrap();
    if *refusals > 0 {
        *refusals -= 1;
        return HttpResponse::InternalServerError().finish();
    }
    HttpResponse::NoContent().finish()
}

impl Arrival {
    fn event(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn kind(&self) -> String {
        self.event()["type"].as_str().unwrap().to_owned()
    }

    fn verify(&self, secret: &Secret) -> Result<(), Untrusted> {
        let signed =
            Signed { id: &self.id, timestamp: &self.timestamp, signature: &self.signature };
        verify(std::slice::from_ref(secret), signed, &self.body, self.timestamp.parse().unwrap())
    }
}

fn secrets() -> Vec<Secret> {
    vec![Secret::new(vec![1; 32]), Secret::new(vec![2; 32])]
}

async fn provider_telling(inbox: &Inbox, webhook_order: WebhookOrder) -> Provider {
    let database = TestDatabase::empty().await;
    let settings = MockSettings {
        database_url: database.url.clone(),
        webhook_url: Some(inbox.open()),
        webhook_secrets: secrets(),
        webhook_order,
    };
    Provider::start_with(database, settings).await
}

#[tokio::test]
async fn every_change_is_told_and_signed_with_the_first_secret() {
    let inbox = Inbox::default();
    let provider = provider_telling(&inbox, WebhookOrder::Straight).await;
    let charged = provider.charged("k1", 100, "pm_card_ok").await;
    provider.client.refund(&refund_of(&charged, "r1", 40)).await;
    provider.client.refund(&refund_of(&charged, "r2", 100)).await;
    provider.client.charge(&charge("k2", 100, "pm_card_declined")).await;
    provider.client.cancel_charge(&charge("k3", 100, "pm_card_ok")).await;
    let arrivals = inbox.when(|all| all.len() == 7).await;
    let kinds: Vec<_> = arrivals.iter().map(Arrival::kind).collect();
    assert_eq!(
        kinds,
        [
            "charge.pending",
            "charge.succeeded",
            "refund.succeeded",
            "refund.failed",
            "charge.pending",
            "charge.declined",
            "charge.cancelled",
        ]
    );
    for arrival in &arrivals {
        assert_eq!(arrival.verify(&secrets()[0]), Ok(()));
        assert_eq!(arrival.verify(&secrets()[1]), Err(Untrusted::NoMatch));
        assert_eq!(arrival.event()["id"], arrival.id);
    }
    let told = arrivals[5].event()["data"].clone();
    assert_eq!(told, provider.get("/charges?provider_key=k2").await["data"][0]);
}

#[tokio::test]
async fn an_event_keeps_its_id_and_bytes_until_it_arrives() {
    let inbox = Inbox::default();
    *inbox.refusals_left.lock().unwrap() = 3;
    let provider = provider_telling(&inbox, WebhookOrder::Straight).await;
    provider.client.cancel_charge(&charge("k1", 100, "pm_card_ok")).await;
    let arrivals = inbox.when(|all| all.len() == 4).await;
    for arrival in &arrivals {
        assert_eq!((&arrival.id, &arrival.body), (&arrivals[0].id, &arrivals[0].body));
        assert_eq!(arrival.verify(&secrets()[0]), Ok(()));
    }
}

#[tokio::test]
async fn shuffled_events_all_arrive_some_twice_and_some_overtaken() {
    let inbox = Inbox::default();
    let provider = provider_telling(&inbox, WebhookOrder::Shuffled { seed: 7 }).await;
    for number in 0..30 {
        provider.charged(&format!("k{number}"), 100, "pm_card_ok").await;
    }
    let ids = |all: &[Arrival]| all.iter().map(|arrival| arrival.id.clone()).collect::<Vec<_>>();
    let arrivals = inbox.when(|all| has_duplicate(ids(all)) && distinct(ids(all)) == 60).await;
    assert!(
        !ids(&arrivals).is_sorted(),
        "ids grow with time, so arrivals in order would be sorted"
    );
    let mut bodies = HashMap::new();
    for arrival in &arrivals {
        let first = bodies.entry(&arrival.id).or_insert(&arrival.body);
        assert_eq!(*first, &arrival.body);
    }
}

#[tokio::test]
async fn held_webhooks_arrive_when_they_are_let_go() {
    let inbox = Inbox::default();
    let provider = provider_telling(&inbox, WebhookOrder::Straight).await;
    provider.control(json!({ "hold_webhooks": true })).await;
    for number in 0..10 {
        provider.charged(&format!("k{number}"), 100, "pm_card_ok").await;
    }
    assert_eq!(inbox.arrivals().len(), 0, "the first ones had time to arrive");
    provider.control(json!({ "hold_webhooks": false })).await;
    inbox.when(|all| all.len() == 20).await;
}

fn distinct(mut ids: Vec<String>) -> usize {
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

fn has_duplicate(ids: Vec<String>) -> bool {
    ids.len() > distinct(ids)
}
