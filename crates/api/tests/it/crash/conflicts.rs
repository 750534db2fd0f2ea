//! Postgres undoes a transaction for another's sake: it runs again, the charge does not.

use crate::app::{TestApp, eventually};
use crate::process::Meeting;

async fn charge_calls(app: &TestApp) -> usize {
    let calls = app.provider_calls().await;
    calls.iter().filter(|call| call["method"] == "POST" && call["path"] == "/charges").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_runs_its_own_transaction_again_and_nothing_else() {
    for conflict in [
        "before_intent_commit:serialization:2",
        "before_intent_commit:deadlock:2",
        "before_settle_commit:serialization:2",
        "before_settle_commit:deadlock:2",
    ] {
        let app = TestApp::start().await;
        let shopper = app.shopper().await;
        let order = shopper.order("order").await;
        let path = format!("/v1/orders/{order}/payments");
        let body = serde_json::json!({ "payment_method": "pm_card_ok" });
        let request = shopper.request("POST", &path).key("pay").json(&body);
        let paid = request.header("x-payonce-fault", conflict.as_bytes()).send().await;
        assert_eq!(paid.status, 201, "{conflict}: {paid:?}");
        assert_eq!(charge_calls(&app).await, 1, "{conflict}");
        assert_eq!(app.captures(&order).await, 1, "{conflict}");
        app.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_deadlock_while_settling_costs_no_second_charge() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let order = shopper.order("order").await;
    let meeting = Meeting::new().await;
    let path = format!("/v1/orders/{order}/payments");
    let body = serde_json::json!({ "payment_method": "pm_card_ok" });
    let fault = format!("answered:{}", meeting.action());
    let request = shopper.request("POST", &path).key("pay").json(&body);
    let paying = tokio::spawn(request.header("x-payonce-fault", fault.as_bytes()).send());
    let here = meeting.arrived().await.unwrap();

    // The other way round: the order first, then the record.
    let mut stranger = app.database.connect().await;
    run(&mut stranger, "begin").await;
    run(&mut stranger, r#"select 1 from "order" for update"#).await;
    drop(here);
    let waiting = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
                   where not l.granted and a.datname = current_database()";
    eventually("the settling waits for the order", async || app.number(waiting).await > 0).await;
    run(&mut stranger, "select 1 from idempotency_record where key = 'pay' for update").await;
    run(&mut stranger, "rollback").await;

    let paid = paying.await.unwrap();
    assert_eq!(paid.status, 201, "{paid:?}");
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    eventually("Postgres saw a deadlock", async || app.number(deadlocks).await == 1).await;
    assert_eq!(charge_calls(&app).await, 1);
    app.finish().await;
}

async fn run(connection: &mut sqlx::PgConnection, statement: &'static str) {
    sqlx::query(statement).execute(connection).await.unwrap();
}
