//! What the tables hold about an order: one statement for the timeline, in the order it happened.

use domain::{AccountId, Money, OrderId, PaymentId, RefundId};
use sqlx::Row as _;
use sqlx::postgres::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::catalog::sql::money;
use crate::presses::{self, sql::Requests};

/// An order with its history.
pub(super) struct Found {
    pub(super) id: OrderId,
    pub(super) key: String,
    pub(super) status: String,
    pub(super) total: Money,
    pub(super) created_at: OffsetDateTime,
    pub(super) paid_at: Option<OffsetDateTime>,
    /// When the last of its keys expires.
    pub(super) expires_at: Option<OffsetDateTime>,
    /// Captures in the ledger.
    pub(super) captures: i64,
    /// What succeeded refunds come to, in minor units.
    pub(super) refunded: i64,
    /// Whether a payment is processing or unknown.
    pub(super) open: bool,
    pub(super) payment_keys: Vec<String>,
    pub(super) provider_keys: Vec<String>,
    pub(super) rows: Vec<Row>,
    /// Requests under its keys.
    pub(super) requests: Vec<Requests>,
}

/// One thing that happened.
pub(super) struct Row {
    pub(super) at: OffsetDateTime,
    pub(super) kind: String,
    pub(super) place: String,
    pub(super) what: String,
    pub(super) state: Option<String>,
}

/// The order that a payment is of.
pub(super) async fn order_of_payment(
    conn: &mut PgConnection,
    payment: PaymentId,
) -> sqlx::Result<Option<OrderId>> {
    let id: Option<Uuid> = sqlx::query_scalar("select order_id from payment where id = $1")
        .bind(payment.uuid())
        .fetch_optional(conn)
        .await?;
    Ok(id.map(OrderId::from_uuid))
}

/// The order that a refund is of.
pub(super) async fn order_of_refund(
    conn: &mut PgConnection,
    refund: RefundId,
) -> sqlx::Result<Option<OrderId>> {
    let id: Option<Uuid> = sqlx::query_scalar(
        "select p.order_id from refund r join payment p on p.id = r.payment_id where r.id = $1",
    )
    .bind(refund.uuid())
    .fetch_optional(conn)
    .await?;
    Ok(id.map(OrderId::from_uuid))
}

/// The order that a key is about: its own, that of one of its steps, of its payment or refund.
pub(super) async fn order_of_key(
    conn: &mut PgConnection,
    account: Option<AccountId>,
    key: &str,
) -> sqlx::Result<Option<OrderId>> {
    let keys = [key.to_owned(), format!("{key}/order"), format!("{key}/pay")];
    let scope = account.map(|account| account.uuid().as_bytes().to_vec());
    let id: Option<Uuid> = sqlx::query_scalar(
        r#"select id from "order"
           where key = any($1) and ($2::bytea is null or made_by = $2 or account_id = $3)
           union all
           select order_id from payment
           where key = any($1) and ($2::bytea is null or made_by = $2 or account_id = $3)
           union all
           select p.order_id from refund r join payment p on p.id = r.payment_id
           where r.key = any($1) and ($2::bytea is null or r.made_by = $2 or r.account_id = $3)
           limit 1"#,
    )
    .bind(&keys[..])
    .bind(scope)
    .bind(account.map(AccountId::uuid))
    .fetch_optional(conn)
    .await?;
    Ok(id.map(OrderId::from_uuid))
}

/// The order that a record of one's own is about: keys that made nothing, as a cancellation's, are
/// known by their record alone.
pub(super) async fn order_of_record(
    conn: &mut PgConnection,
    account: AccountId,
    key: &str,
) -> sqlx::Result<Option<OrderId>> {
    let resource: Option<Option<String>> =
        sqlx::query_scalar("select resource from idempotency_record where scope = $1 and key = $2")
            .bind(account.uuid().as_bytes().to_vec())
            .bind(key)
            .fetch_optional(conn)
            .await?;
    let id = resource.flatten();
    Ok(id.and_then(|path| path.strip_prefix("/v1/orders/")?.parse().ok()))
}

/// Everything about an order, if it is this account's.
pub(super) async fn everything(
    conn: &mut PgConnection,
    account: Option<AccountId>,
    order: OrderId,
) -> sqlx::Result<Option<Found>> {
    let row = sqlx::query(
        r#"select o.key, o.status, o.total, o.currency, o.created_at,
                  (select min(settled_at) from payment
                   where order_id = o.id and status = 'succeeded') as paid_at,
                  (select max(r.expires_at) from idempotency_record r
                   where (r.scope, r.key) in (
                       select o.made_by, o.key
                       union all select made_by, key from payment where order_id = o.id
                   )) as expires_at,
                  (select count(distinct l.transaction_id) from ledger_posting l
                   join payment p on p.id = l.payment_id
                   where p.order_id = o.id and l.refund_id is null) as captures,
                  (select coalesce(sum(r.amount), 0)::bigint from refund r
                   join payment p on p.id = r.payment_id
                   where p.order_id = o.id and r.status = 'succeeded') as refunded,
                  exists (select from payment
                          where order_id = o.id and status in ('processing', 'unknown')) as open,
                  array(select key from payment where order_id = o.id order by id) as payment_keys,
                  array(select provider_key from payment
                        where order_id = o.id order by id) as provider_keys
           from "order" o where o.id = $1 and ($2::uuid is null or o.account_id = $2)"#,
    )
    .bind(order.uuid())
    .bind(account.map(AccountId::uuid))
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Found {
        id: order,
        key: row.try_get("key")?,
        status: row.try_get("status")?,
        total: money(&row, "total")?,
        created_at: row.try_get("created_at")?,
        paid_at: row.try_get("paid_at")?,
        expires_at: row.try_get("expires_at")?,
        captures: row.try_get("captures")?,
        refunded: row.try_get("refunded")?,
        open: row.try_get("open")?,
        payment_keys: row.try_get("payment_keys")?,
        provider_keys: row.try_get("provider_keys")?,
        rows: timeline(conn, order).await?,
        requests: presses::sql::of_order(conn, order).await?,
    }))
}

async fn timeline(conn: &mut PgConnection, order: OrderId) -> sqlx::Result<Vec<Row>> {
    let rows = sqlx::query(
        r#"with paid as (select * from payment where order_id = $1),
           back as (select r.* from refund r join paid on paid.id = r.payment_id),
           made as (
               select made_by, key, 'order' as what from "order" where id = $1
               union all select made_by, key, 'payment' from paid
               union all select made_by, key, 'refund' from back
           ),
           told as (
               select created_at as at, 1 as nth, 'ordered' as kind, 'Postgres' as place,
                      'Order, stock and answer committed together' as what, 'pending' as state
               from "order" where id = $1
               union all
               select created_at, 2, 'intent', 'Postgres',
                      'Payment claimed under its key, before anything is sent', 'processing'
               from paid
               union all
               select settled_at, 3, case status when 'succeeded' then 'captured' else status end,
                      'Provider',
                      case status when 'succeeded' then 'Charge ' || charge_id || ' confirmed'
                                  when 'declined' then 'The bank said no: ' || coalesce(decline_code, '')
                                  else 'The charge was called off' end, status
               from paid where settled_at is not null
               union all
               select min(l.created_at), 4, 'ledger', 'Ledger',
                      count(*) || ' postings that sum to zero', null
               from ledger_posting l join paid on paid.id = l.payment_id
               group by l.transaction_id
               union all
               select created_at, 2, 'refund', 'Postgres',
                      'Refund claimed under its key, before anything is sent', 'processing'
               from back
               union all
               select settled_at, 3, case status when 'succeeded' then 'returned' else 'declined' end,
                      'Provider',
                      case status when 'succeeded' then 'Refund ' || provider_refund_id || ' confirmed'
                                  else 'The provider did not make the refund' end, status
               from back where settled_at is not null
               union all
               select r.finished_at, 5, 'record', 'Record',
                      'Answer ' || r.status || ' to the ' || made.what || ' stored under its key', r.state
               from made join idempotency_record r on r.scope = made.made_by and r.key = made.key
               where r.finished_at is not null
               union all
               select created_at, 6, 'event', 'Outbox', 'Event ' || kind || ' written', null
               from event where order_id = $1
               union all
               select d.delivered_at, 8, 'delivery', 'Webhook', 'Event ' || e.kind || ' delivered', null
               from delivery d join event e on e.id = d.event_id
               where e.order_id = $1 and d.delivered_at is not null
               union all
               select created_at, 6, 'mail', 'Outbox', 'Mail to ' || recipient || ' queued', null
               from mail where order_id = $1
               union all
               select sent_at, 7, 'mail', 'Mailbox', 'Mail ' || message_id || ' sent', null
               from mail where order_id = $1 and sent_at is not null
           )
           select at, kind, place, what, state from told order by at, nth"#,
    )
    .bind(order.uuid())
    .fetch_all(conn)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(Row {
                at: row.try_get("at")?,
                kind: row.try_get("kind")?,
                place: row.try_get("place")?,
                what: row.try_get("what")?,
                state: row.try_get("state")?,
            })
        })
        .collect()
}
