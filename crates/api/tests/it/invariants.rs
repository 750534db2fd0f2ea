//! What holds after every test, whatever it did.

use std::time::Duration;

use api::app::App;
use sqlx::{AssertSqlSafe, PgConnection};

use crate::app::{TestApp, eventually};
use crate::log;

/// Queries that find nothing in a healthy database, and what it would mean if they did.
const NOTHING: &[(&str, &str)] = &[
    (
        "orders that were captured more than once",
        "select order_id::text from payment where status = 'succeeded' and not misdirected
         group by order_id having count(*) > 1",
    ),
    (
        "charges that the provider made and we do not know, or know otherwise",
        "select c.provider_key from provider.charge c
         left join payment p on p.provider_key = c.provider_key and p.status = c.status
             and p.amount = c.amount and p.currency = c.currency
         where c.status in ('succeeded', 'declined') and p.id is null",
    ),
    (
        "payments that succeeded here only",
        "select p.provider_key from payment p
         left join provider.charge c on c.provider_key = p.provider_key and c.status = p.status
         where p.status in ('succeeded', 'declined') and c.id is null",
    ),
    (
        "captures that are not in the ledger as they were made",
        "select p.id::text from payment p
         left join ledger_posting l on l.payment_id = p.id and l.refund_id is null
             and l.account = 'provider_clearing'
         where (p.status = 'succeeded') is distinct from (l.id is not null)
            or l.amount <> p.amount or l.currency <> p.currency",
    ),
    (
        "refunds that are not in the ledger as they were made",
        "select r.id::text from refund r
         left join ledger_posting l on l.refund_id = r.id and l.account = 'provider_clearing'
         where (r.status = 'succeeded') is distinct from (l.id is not null)
            or l.amount <> -r.amount or l.currency <> r.currency",
    ),
    (
        "refunds that the provider made and we do not know",
        "select f.provider_key from provider.refund f
         left join refund r on r.provider_refund_id = f.id and r.status = 'succeeded'
             and r.amount = f.amount
         where f.status = 'succeeded' and r.id is null",
    ),
    (
        "refunds that come to more than was captured",
        "select p.id::text from payment p join refund r on r.payment_id = p.id
         where r.status <> 'failed' group by p.id having sum(r.amount) > p.amount",
    ),
    (
        "a ledger that does not sum to zero",
        "select currency from ledger_posting group by currency having sum(amount) <> 0",
    ),
    (
        "stock that is not what was there and what moved",
        "select p.sku from product p
         left join (select product_id, sum(delta) as moved from stock_change group by 1) m
             on m.product_id = p.id
         where p.stock <> p.initial_stock + coalesce(m.moved, 0) or p.stock < 0",
    ),
    (
        "goods of ended orders that did not come back, or came back from others",
        r#"select o.id::text from "order" o join order_line l on l.order_id = o.id
         where (o.status in ('cancelled', 'expired') and l.returned_at is null)
            or (o.status in ('pending', 'paid', 'partially_refunded') and l.returned_at is not null)"#,
    ),
    (
        "orders whose state is not that of their money",
        r#"select o.id::text from "order" o
         left join payment p on p.order_id = o.id and p.status = 'succeeded' and not p.misdirected
         where (o.status in ('paid', 'partially_refunded', 'refunded'))
               is distinct from (p.id is not null)
            or (p.id is not null and o.live_payment_id is distinct from p.id)"#,
    ),
    (
        "mails that were written twice",
        "select kind from mail group by kind, subject_id having count(*) > 1",
    ),
    (
        "paid orders without a receipt, and receipts without a paid order",
        r#"select coalesce(o.id, m.subject_id)::text
         from (select id from "order"
               where status in ('paid', 'partially_refunded', 'refunded') and email is not null) o
         full join (select subject_id from mail where kind = 'receipt') m on m.subject_id = o.id
         where o.id is null or m.subject_id is null"#,
    ),
    (
        "keys and money that are still under way",
        "select operation from idempotency_record where state in ('processing', 'unknown')
         union all select provider_key from payment where status in ('processing', 'unknown')
         union all select provider_key from refund where status in ('processing', 'unknown')
         union all select provider_key from provider.charge where status = 'pending'",
    ),
    (
        "records that were finished before they were created",
        "select operation from idempotency_record
         where finished_at < created_at",
    ),
    (
        "deliveries whose worker is gone",
        "select 'mail' from mail where state = 'queued' and lease_until < clock_timestamp()
         union all
         select 'event' from delivery where state = 'queued' and lease_until < clock_timestamp()",
    ),
];

/// Waits until nothing runs any more, then checks everything.
pub(crate) async fn hold(app: &TestApp) {
    at_rest(app).await;
    let mut conn = app.database.connect().await;
    let broken = broken(&mut conn).await;
    assert!(broken.is_empty(), "{broken:#?}");
    nothing_leaks(app, &mut conn).await;
    let failures = app.traffic.unexpected_failures();
    assert!(failures.is_empty(), "failures that the test did not order: {failures:#?}");
}

/// What does not hold in a database: the name of each, and what was found.
pub(crate) async fn broken(conn: &mut PgConnection) -> Vec<String> {
    let mut broken = Vec::new();
    for (what, query) in NOTHING {
        let found: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(*query)).fetch_all(&mut *conn).await.unwrap();
        if !found.is_empty() {
            broken.push(format!("{what}: {found:?}"));
        }
    }
    broken
}

/// Requests have ended, recovery has nothing left to do, connections are back.
async fn at_rest(app: &TestApp) {
    let drained = app.app().flights.drained();
    tokio::time::timeout(Duration::from_secs(40), drained).await.expect("requests end");
    let unfinished =
        "select count(*) from idempotency_record where state in ('processing', 'unknown')";
    eventually("every key is settled", async || {
        if app.number(unfinished).await > 0 {
            app.recover().await;
        }
        app.number(unfinished).await == 0
    })
    .await;
    eventually("all connections are back", async || is_idle(app.app())).await;
    let open = "select count(*) from pg_stat_activity
                where datname = current_database() and state like 'idle in transaction%'";
    eventually("no transaction is left open", async || app.number(open).await == 0).await;
}

fn is_idle(app: &App) -> bool {
    app.db.usage().0 == 0
}

/// No token, password or server secret in what is kept for replays, in Redis or in the log.
async fn nothing_leaks(app: &TestApp, conn: &mut PgConnection) {
    let mut kept: Vec<Vec<u8>> = sqlx::query_scalar(
        "select coalesce(body, '') || coalesce(headers, '') || marks from idempotency_record",
    )
    .fetch_all(conn)
    .await
    .unwrap();
    if let Some(redis) = &app.redis {
        kept.extend(redis.dump().await.into_iter().map(|(_, value, _)| value));
    }
    for secret in app.traffic.secrets() {
        let leak = kept.iter().find(|bytes| contains(bytes, &secret));
        assert!(leak.is_none(), "a secret is kept: {:?}", leak.map(|l| String::from_utf8_lossy(l)));
        if let Ok(text) = std::str::from_utf8(&secret) {
            assert!(log::with(text).is_empty(), "a secret is in the log: {text}");
        }
    }
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}
