//! What the sweep removes, what it leaves, and that several may run at once.

use api::sweep::{self, Swept};

use crate::app::{TestApp, basket, together};

/// One run on a connection of its own.
async fn swept(app: &TestApp) -> Swept {
    sweep::run_on(&mut app.database.connect().await).await.unwrap()
}

fn rows(swept: &Swept, kind: &str) -> u64 {
    swept.0.iter().find(|(name, _)| *name == kind).unwrap().1
}

/// Finished records whose day was over an hour ago.
async fn expired_records(app: &TestApp, count: u32) {
    app.execute(format!(
        "insert into idempotency_record (scope, key, fingerprint, marks, operation, state,
             finished_at, expires_at, status, headers, body)
         select uuid_send(gen_random_uuid()), 'old-' || n, sha256(n::text::bytea), '', 'old',
             'completed', now() - interval '2 hours', now() - interval '1 hour', 200, '', ''
         from generate_series(1, {count}) n"
    ))
    .await;
}

#[tokio::test]
async fn expired_records_go_and_living_ones_stay() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let first = shopper.post("/v1/orders", "k1", &basket(&[("enamel-mug", 1)])).await.expect(201);
    expired_records(&app, 2500).await;
    assert_eq!(rows(&swept(&app).await, "records"), 2500);
    assert_eq!(app.number("select count(*) from idempotency_record").await, 1);
    shopper.post("/v1/orders", "k1", &basket(&[("enamel-mug", 1)])).await.replays(&first);
    app.finish().await;
}

/// However old it is: what became of it is not known yet.
#[tokio::test]
async fn an_unfinished_record_is_never_swept() {
    let app = TestApp::start().await;
    app.execute(
        "insert into idempotency_record (scope, key, fingerprint, marks, operation, state, subject,
             lease_until, recover_at, created_at)
         values ('\\x01', 'old', sha256(''), '', 'old', 'unknown', gen_random_uuid(),
             now() - interval '1 year', now() + interval '1 year', now() - interval '1 year')",
    )
    .await;
    assert_eq!(rows(&swept(&app).await, "records"), 0);
    assert_eq!(app.execute("delete from idempotency_record").await, 1);
    app.finish().await;
}

#[tokio::test]
async fn what_a_swept_key_made_is_not_made_again() {
    let app = TestApp::with(|options| options.retention_ms(1)).await;
    let shopper = app.shopper().await;
    shopper.post("/v1/orders", "k1", &basket(&[("enamel-mug", 1)])).await.expect(201);
    crate::app::eventually("the record is swept", async || {
        rows(&swept(&app).await, "records") == 1
    })
    .await;
    let again = shopper.post("/v1/orders", "k1", &basket(&[("enamel-mug", 1)])).await;
    again.problem(409, "idempotency_key_expired");
    assert_eq!(app.stock("enamel-mug").await, 399);
    app.finish().await;
}

#[tokio::test]
async fn sweeps_at_once_skip_each_other_while_orders_run() {
    let app = TestApp::start().await;
    expired_records(&app, 20_000).await;
    let shopper = app.shopper().await;
    let sweeps = (0..3).map(|_| {
        let url = app.database.url.clone();
        async move {
            let mut conn = api::db::connect(&url).await.unwrap();
            rows(&sweep::run_on(&mut conn).await.unwrap(), "records")
        }
    });
    let orders = (0..40).map(|n| {
        let shopper = shopper.clone();
        async move {
            shopper.order(&format!("k{n}")).await;
        }
    });
    let (removed, _) = tokio::join!(together(sweeps), together(orders));
    assert_eq!(removed.iter().sum::<u64>(), 20_000);
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(app.number(deadlocks).await, 0);
    app.finish().await;
}

#[tokio::test]
async fn guests_who_left_nothing_go_with_their_carts() {
    let app = TestApp::start().await;
    let guest = "insert into account (id, role, created_at)
                 values (gen_random_uuid(), 'guest', now() - interval '40 days')";
    for _ in 0..3 {
        app.execute(guest).await;
    }
    app.execute(
        "insert into cart (id, account_id, created_at, updated_at)
         select gen_random_uuid(), id, now(), now() from account where role = 'guest'",
    )
    .await;
    // One whose cookie still opens the shop, and one whose key may be repeated.
    app.execute(
        "with guests as (select id, row_number() over (order by id) n from account
                         where role = 'guest'), session as (
             insert into session (token_hash, account_id, kind, created_at, expires_at)
             select sha256(''), id, 'cookie', now(), now() + interval '1 day' from guests
             where n = 1)
         insert into idempotency_record (scope, key, fingerprint, marks, operation, state,
             created_at, finished_at, expires_at, status, headers, body)
         select uuid_send(id), 'k', sha256(''), '', 'x', 'failed', now(), now(),
             now() + interval '1 day', 404, '', '' from guests where n = 2",
    )
    .await;
    assert_eq!(rows(&swept(&app).await, "guests"), 1);
    assert_eq!(app.number("select count(*) from account where role = 'guest'").await, 2);
    assert_eq!(app.number("select count(*) from cart").await, 2);
    app.finish().await;
}

#[tokio::test]
async fn old_events_and_sessions_go_and_new_ones_stay() {
    let app = TestApp::start().await;
    app.execute(
        "insert into provider_event (id, kind, outcome, body, received_at)
         select 'evt_' || days, 'x', 'ignored', '', now() - days * interval '1 day'
         from unnest(array[1, 29, 31, 90]) days",
    )
    .await;
    app.execute(
        "insert into session (token_hash, account_id, kind, created_at, expires_at)
         select sha256(hours::text::bytea), (select id from account limit 1), 'bearer', now(),
             now() - hours * interval '1 hour' from unnest(array[-1, 2, 3]) hours",
    )
    .await;
    let swept = swept(&app).await;
    assert_eq!((rows(&swept, "provider_events"), rows(&swept, "sessions")), (2, 2));
    app.finish().await;
}
