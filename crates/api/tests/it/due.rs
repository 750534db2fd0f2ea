//! Whoever looks for what is due reads that, however much there is that is not.

use std::time::Duration;

use sqlx::{Connection as _, Executor as _, PgConnection};

use crate::app::TestApp;

/// Rows of each kind whose time has not come.
const WAITING: i64 = 2000;
/// What a look may read of them.
const READ_MAX: i64 = 20;

/// Accounts, orders, records, mails and deliveries in numbers; nothing of it is due.
const FILL: &str = r#"
    insert into account (id, role, created_at) select gen_random_uuid(), 'guest', now()
        from generate_series(1, 2000);
    insert into "order" (id, account_id, made_by, key, status, total, currency, created_at,
                         reserved_until)
        select id, id, uuid_send(id), 'order', 'pending', 1, 'USD', now(), now() + interval '1 hour'
        from account where role = 'guest';
    insert into idempotency_record (scope, key, fingerprint, marks, operation, state, finished_at,
                                    expires_at, status, headers, body)
        select uuid_send(id), 'order', sha256(''), '', 'test', 'completed', now(),
               now() + interval '1 hour', 201, '', '' from "order";
    insert into idempotency_record (scope, key, fingerprint, marks, operation, state, subject,
                                    lease_until, recover_at)
        select uuid_send(id), 'payment', sha256(''), '', 'test', 'processing', id,
               now() + interval '1 hour', now() + interval '1 hour' from "order";
    insert into mail (id, account_id, order_id, kind, subject_id, message_id, recipient, subject,
                      body, next_attempt_at)
        select id, account_id, id, 'receipt', id, id::text, 'a@b.test', '', 'text',
               now() + interval '1 hour' from "order";
    insert into webhook_endpoint (id, account_id, made_by, key, url, events, sealed_secret,
                                  created_at)
        select id, id, '', 'endpoint', '', '{}', '', now()
        from account where role = 'merchant' limit 1;
    insert into event (id, kind, subject_id, order_id, body)
        select id, 'order.paid', id, id, '' from "order";
    insert into delivery (event_id, endpoint_id, next_attempt_at, lease_until)
        select e.id, w.id, now() + interval '1 hour', now() - interval '1 hour'
        from event e, webhook_endpoint w;
    insert into press (scope, key, told, times, first_at, last_at)
        select uuid_send(id), 'order', 'joined', 1, now(), now() from "order";
    insert into provider_event (id, kind, outcome, body)
        select id::text, 'charge.succeeded', 'applied', '' from "order";
    insert into session (token_hash, account_id, kind, created_at, expires_at)
        select uuid_send(id), id, 'cookie', now(), now() + interval '1 hour'
        from account where role = 'guest';
"#;

/// Rows that this connection has read since its transaction began.
async fn read(conn: &mut PgConnection) -> i64 {
    let read = "select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint
                from pg_stat_xact_user_tables";
    sqlx::query_scalar(read).fetch_one(conn).await.unwrap()
}

#[tokio::test]
async fn who_looks_for_what_is_due_reads_nothing_else() {
    let app = TestApp::start().await;
    let mut conn = app.database.connect().await;
    conn.execute(FILL).await.unwrap();
    conn.execute("analyze").await.unwrap();
    let waiting = "select count(*) from delivery where state = 'queued'";
    assert_eq!(app.number(waiting).await, WAITING);
    let looks = ["order", "record", "mail", "delivery", "records", "everything"];
    for look in looks {
        let mut tx = conn.begin().await.unwrap();
        let before = read(&mut tx).await;
        let found = match look {
            "order" => api::orders::expire::due(&mut tx).await.unwrap().is_some(),
            "record" => {
                let lease = Duration::from_secs(1);
                idempotency::postgres::take_due(&mut tx, lease).await.unwrap().is_some()
            }
            "mail" => api::mail::sql::claim(&mut tx).await.unwrap().is_some(),
            "delivery" => api::webhooks::deliver::sql::claim(&mut tx).await.unwrap().is_some(),
            "records" => idempotency::postgres::sweep(&mut tx, 1000).await.unwrap() > 0,
            _ => api::sweep::run_on(&mut tx).await.unwrap().rows() > 0,
        };
        assert!(!found, "{look}: nothing was due");
        let rows = read(&mut tx).await - before;
        assert!(rows <= READ_MAX, "{look}: read {rows} rows to find nothing");
        tx.rollback().await.unwrap();
    }
}
