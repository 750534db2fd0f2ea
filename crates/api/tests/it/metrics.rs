//! What is counted, who may read it, and that nothing asks for a metric that is not there.

use std::collections::BTreeSet;
use std::path::Path;

use api::telemetry::{metrics, observe};

use crate::app::TestApp;
use crate::log;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");

pub(crate) async fn page(app: &TestApp) -> String {
    let page = app.anonymous().get("/metrics").await.expect(200);
    String::from_utf8(page.body).unwrap()
}

/// The value of the series whose line begins like this.
pub(crate) fn value(page: &str, series: &str) -> f64 {
    let line = page
        .lines()
        .find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
    let line = line.unwrap_or_else(|| panic!("{series} is not in\n{page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// All names of ours in a text.
fn asked_for(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.split(|c| !is_name(c)).filter(|word| word.starts_with("payonce_")).collect()
}

#[tokio::test]
async fn every_metric_is_there_from_the_start() {
    let app = TestApp::start().await;
    let page = page(&app).await;
    for name in metrics::names() {
        assert!(page.contains(&format!("# TYPE {name} ")), "{name} is not in\n{page}");
    }
    for outcome in metrics::OUTCOMES {
        value(&page, &format!("payonce_records_total{{outcome=\"{outcome}\"}}"));
    }
    app.finish().await;
}

#[tokio::test]
async fn dashboard_and_alerts_ask_for_metrics_that_exist() {
    let app = TestApp::start().await;
    let page = page(&app).await;
    let there = asked_for(&page);
    for file in ["dashboard.json", "alerts.yml", "test/alerts.test.yml"] {
        let text = std::fs::read_to_string(Path::new(DEPLOY).join(file)).unwrap();
        let missing: Vec<_> = asked_for(&text).difference(&there).copied().collect();
        assert!(missing.is_empty(), "{file} asks for {missing:?}");
    }
    app.finish().await;
}

#[tokio::test]
async fn metrics_are_for_this_machine_alone() {
    let app = TestApp::start().await;
    for header in ["X-Forwarded-For", "Forwarded", "X-Real-IP"] {
        let caller = app.anonymous();
        let answer =
            caller.request("GET", "/metrics").header(header, b"for=192.0.2.1").send().await;
        answer.problem(404, "not_found");
    }
    app.finish().await;
}

#[tokio::test]
async fn no_key_no_account_and_no_id_is_ever_a_label() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("a-key-that-shows").await;
    shopper.pay(&order, "another-key-that-shows", "pm_card_ok").await.expect(201);
    shopper.get("/nowhere/in-particular").await.expect(404);
    observe::run_once(app.app()).await.unwrap();
    let page = page(&app).await;
    for word in ["key-that-shows", order.as_str(), "in-particular", "pm_card_ok"] {
        assert!(!page.contains(word), "{word} is in\n{page}");
    }
    assert!(value(&page, "payonce_records_total{outcome=\"executed\"}") >= 2.0);
    assert!(value(&page, "payonce_settle_duration_seconds_count") >= 1.0);
    let route = "payonce_requests_total{route=\"/v1/orders/{id}/payments\",status=\"201\"}";
    assert!(value(&page, route) >= 1.0);
    app.finish().await;
}

#[tokio::test]
async fn a_request_has_one_line_with_trace_key_attempt_and_outcome() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let trace = format!("{:032x}", rand::random::<u128>());
    let order = || async {
        let request = shopper.request("POST", "/v1/orders").key("one-line");
        let parent = format!("00-{trace}-00f067aa0ba902b7-01");
        let body = crate::app::basket(&[("enamel-mug", 1)]);
        request.header("traceparent", parent.as_bytes()).json(&body).send().await
    };
    order().await.expect(201);
    order().await.expect(201);
    let lines: Vec<String> = log::with(&trace).into_iter().map(|line| line.text).collect();
    let answers: Vec<_> = lines.iter().filter(|line| line.contains("status=201")).collect();
    assert_eq!(answers.len(), 2, "{lines:#?}");
    assert!(answers[0].contains("outcome=\"executed\"") && answers[0].contains("attempt=1"));
    assert!(answers[1].contains("outcome=\"replayed_memory\""), "{}", answers[1]);
    for line in lines {
        assert!(!line.contains("one-line"), "the key itself is in {line}");
    }
    app.finish().await;
}

/// Money that breaks a rule is seen, and so it would be shown.
#[tokio::test]
async fn a_capture_without_its_ledger_entry_is_seen() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("k1").await;
    shopper.pay(&order, "k2", "pm_card_declined").await.expect(402);
    let broken = "select count(*) from payment where status = 'succeeded'";
    assert_eq!(app.number(broken).await, 0);
    app.execute("update payment set status = 'succeeded'").await;
    let mut conn = app.database.connect().await;
    let found = observe::violations(&mut conn, "capture_without_ledger").await.unwrap();
    assert_eq!(found, 1);
    app.execute("update payment set status = 'declined'").await;
    app.finish().await;
}

#[tokio::test]
async fn what_waits_to_leave_is_counted_with_its_age() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    shopper.pay(&order, "pay", "pm_card_ok").await.expect(201);
    app.execute("update mail set created_at = created_at - interval '1 hour'").await;
    // Other tests of this process count into the same numbers.
    crate::app::eventually("the mail and its age are seen", async || {
        observe::run_once(app.app()).await.unwrap();
        let page = page(&app).await;
        value(&page, "payonce_outbox_pending{outbox=\"mail\"}") >= 1.0
            && value(&page, "payonce_outbox_oldest_seconds{outbox=\"mail\"}") >= 3600.0
    })
    .await;
    app.finish().await;
}
