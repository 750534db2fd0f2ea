//! Statements about repeats.

use std::collections::HashMap;

use domain::OrderId;
use idempotency::Identity;
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};
use time::OffsetDateTime;
use uuid::Uuid;

use super::Press;
use crate::orders::sql::word;

/// Writes a batch. Returns how many rows it came to.
pub(super) async fn insert(
    conn: &mut PgConnection,
    batch: &HashMap<Identity, Vec<Press>>,
) -> sqlx::Result<usize> {
    let rows = || {
        let of_key = |(identity, presses)| std::iter::repeat(identity).zip(presses);
        batch.iter().flat_map(of_key)
    };
    let scopes: Vec<&[u8]> = rows().map(|(identity, _)| identity.scope.as_bytes()).collect();
    let keys: Vec<&str> = rows().map(|(identity, _)| identity.key.as_str()).collect();
    let told: Vec<&str> = rows().map(|(_, press): (_, &Press)| press.told).collect();
    let times: Vec<i32> = rows().map(|(_, press)| press.times).collect();
    let firsts: Vec<OffsetDateTime> = rows().map(|(_, press)| press.first_at).collect();
    let lasts: Vec<OffsetDateTime> = rows().map(|(_, press)| press.last_at).collect();
    sqlx::query(
        "insert into press (scope, key, told, times, first_at, last_at)
         select * from unnest($1::bytea[], $2::text[], $3::text[], $4::int[],
                              $5::timestamptz[], $6::timestamptz[])",
    )
    .bind(scopes)
    .bind(keys)
    .bind(told)
    .bind(times)
    .bind(firsts)
    .bind(lasts)
    .execute(conn)
    .await?;
    Ok(rows().count())
}

/// Requests under one key of an order, and what they did.
#[derive(Debug, Clone)]
pub struct Requests {
    /// The order, payment or refund that the key made.
    pub subject: Uuid,
    /// What the key was for.
    pub want: Want,
    /// `executed`, or what a repeat was told.
    pub told: String,
    /// The number of the first of them among the requests with this key.
    pub number: i64,
    /// How many.
    pub times: i64,
    /// When the first of them was.
    pub first_at: OffsetDateTime,
    /// When the last of them was.
    pub last_at: OffsetDateTime,
    /// Executions so far, as the record has it, where it is still there.
    pub attempts: Option<i32>,
}

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// To order.
    Order,
    /// To pay.
    Payment,
    /// To send money back.
    Refund,
}

/// The requests that are known under the keys that made an order, its payments and their refunds,
/// oldest first. Nobody asked for refunds that began by themselves.
pub async fn of_order(conn: &mut PgConnection, order: OrderId) -> sqlx::Result<Vec<Requests>> {
    let rows = sqlx::query(
        r#"with made as (
               select id, 'order' as want, made_by, key, created_at from "order" where id = $1
               union all
               select id, 'payment', made_by, key, created_at from payment
               where order_id = $1 and octet_length(made_by) = 16
               union all
               select r.id, 'refund', r.made_by, r.key, r.created_at
               from refund r join payment p on p.id = r.payment_id
               where p.order_id = $1 and octet_length(r.made_by) = 16
           ),
           asked as (
               select id, want, 'executed' as told, 1 as times, created_at as first_at,
                      created_at as last_at, 0::bigint as nth,
                      (select attempts from idempotency_record i
                       where i.scope = made.made_by and i.key = made.key) as attempts
               from made
               union all
               select made.id, made.want, p.told, p.times, p.first_at, p.last_at, p.id, null
               from made join press p on p.scope = made.made_by and p.key = made.key
           )
           select *, 1 + coalesce(sum(times) over (
                     partition by id order by nth > 0, first_at, nth
                     rows between unbounded preceding and 1 preceding), 0)::bigint as number
           from asked order by first_at, nth"#,
    )
    .bind(order.uuid())
    .fetch_all(conn)
    .await?;
    rows.iter().map(requests).collect()
}

fn requests(row: &PgRow) -> sqlx::Result<Requests> {
    Ok(Requests {
        subject: row.try_get("id")?,
        want: word(row.try_get("want")?)?,
        told: row.try_get("told")?,
        number: row.try_get("number")?,
        times: row.try_get::<i32, _>("times")?.into(),
        first_at: row.try_get("first_at")?,
        last_at: row.try_get("last_at")?,
        attempts: row.try_get("attempts")?,
    })
}

impl std::str::FromStr for Want {
    type Err = domain::UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "order" => Ok(Self::Order),
            "payment" => Ok(Self::Payment),
            "refund" => Ok(Self::Refund),
            _ => Err(domain::UnknownWord { list: "Want" }),
        }
    }
}
