//! Statements that remove what has had its day.

use sqlx::{PgConnection, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use super::BATCH;

/// How far a kind was looked through whose rows mostly stay.
#[derive(Debug, Default)]
pub(super) struct Cursor(Option<(OffsetDateTime, Uuid)>);

/// What one statement did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    /// Rows that are gone.
    pub(super) removed: u64,
    /// There was less than a whole batch to look at.
    pub(super) last: bool,
}

impl Batch {
    fn of(removed: u64) -> Self {
        Self { removed, last: i64::try_from(removed).is_ok_and(|removed| removed < BATCH) }
    }
}

/// One batch of a kind.
pub(super) async fn sweep(
    conn: &mut PgConnection,
    kind: &str,
    cursor: &mut Cursor,
) -> sqlx::Result<Batch> {
    match kind {
        "records" => idempotency::postgres::sweep(conn, BATCH).await.map(Batch::of),
        "provider_events" => rows(conn, PROVIDER_EVENTS).await,
        "deliveries" => rows(conn, DELIVERIES).await,
        "mails" => rows(conn, MAILS).await,
        "sessions" => rows(conn, SESSIONS).await,
        "presses" => rows(conn, PRESSES).await,
        _ => guests(conn, cursor).await,
    }
}

async fn rows(conn: &mut PgConnection, statement: &'static str) -> sqlx::Result<Batch> {
    let swept = sqlx::query(statement).bind(BATCH).execute(conn).await?;
    Ok(Batch::of(swept.rows_affected()))
}

/// A repeated event is recognised for thirty days, six times as long as any provider repeats.
const PROVIDER_EVENTS: &str = "
    delete from provider_event e using (
        select id from provider_event
        where received_at <= statement_timestamp() - interval '30 days'
        order by received_at limit $1 for update skip locked
    ) as gone
    where e.id = gone.id";

/// The event stays, and with it the knowledge that it was made.
const DELIVERIES: &str = "
    delete from delivery d using (
        select event_id, endpoint_id from delivery
        where state in ('delivered', 'dead')
          and created_at <= statement_timestamp() - interval '30 days'
        order by created_at limit $1 for update skip locked
    ) as gone
    where d.event_id = gone.event_id and d.endpoint_id = gone.endpoint_id";

/// The row stays, so that no order ever gets a second receipt; its text goes.
const MAILS: &str = "
    update mail m set body = '' from (
        select id from mail
        where state in ('sent', 'dead') and body <> ''
          and created_at <= statement_timestamp() - interval '90 days'
        order by created_at limit $1 for update skip locked
    ) as old
    where m.id = old.id";

/// An hour late, so that no process still honours one out of its memory.
const SESSIONS: &str = "
    delete from session s using (
        select token_hash from session
        where expires_at <= statement_timestamp() - interval '1 hour'
        order by expires_at limit $1 for update skip locked
    ) as gone
    where s.token_hash = gone.token_hash";

/// Nothing depends on them; two days are enough to look.
const PRESSES: &str = "
    delete from press p using (
        select id from press
        where last_at <= statement_timestamp() - interval '2 days'
        order by last_at limit $1 for update skip locked
    ) as gone
    where p.id = gone.id";

/// Guests whom no cookie leads back to and who left nothing but a cart. Most guests who bought
/// stay, so the look goes on behind the last one seen.
async fn guests(conn: &mut PgConnection, cursor: &mut Cursor) -> sqlx::Result<Batch> {
    let (seen_at, seen) = cursor.0.unwrap_or((OffsetDateTime::UNIX_EPOCH, Uuid::nil()));
    let row = sqlx::query(
        r#"with seen as materialized (
               select id, created_at from account
               where role = 'guest' and (created_at, id) > ($2, $3)
                 and created_at <= statement_timestamp() - interval '1 day'
               order by created_at, id limit $1 for update skip locked
           ), gone as materialized (
               select s.id from seen s
               where not exists (select from session where account_id = s.id)
                 and not exists (select from "order" where account_id = s.id)
                 and not exists (select from "order" where made_by = uuid_send(s.id))
                 and not exists (select from payment where made_by = uuid_send(s.id))
                 and not exists (select from refund where made_by = uuid_send(s.id))
                 and not exists (select from mail where account_id = s.id)
                 and not exists (select from idempotency_record where scope = uuid_send(s.id))
           ), lines as (
               delete from cart_line using cart
               where cart.id = cart_line.cart_id and cart.account_id in (select id from gone)
           ), carts as (
               delete from cart where account_id in (select id from gone)
           ), removed as (
               delete from account where id in (select id from gone) returning 1
           )
           select (select count(*) from removed) as removed, count(*) as looked_at,
                  max(created_at) as last_at,
                  (select id from seen order by created_at desc, id desc limit 1) as last_id
           from seen"#,
    )
    .bind(BATCH)
    .bind(seen_at)
    .bind(seen)
    .fetch_one(conn)
    .await?;
    let last_at: Option<OffsetDateTime> = row.try_get("last_at")?;
    cursor.0 = last_at.zip(row.try_get("last_id")?);
    let removed: i64 = row.try_get("removed")?;
    Ok(Batch {
        removed: u64::try_from(removed).unwrap_or_default(),
        last: row.try_get::<i64, _>("looked_at")? < BATCH,
    })
}
