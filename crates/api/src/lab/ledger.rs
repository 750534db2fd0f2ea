//! What the tables and the provider's books say about a run, and the two things done to them:
//! a flush of Redis, and a day that passes.

use deadpool_redis::redis::{AsyncCommands as _, cmd};
use serde::{Deserialize, Serialize};
use sqlx::Row as _;
use time::OffsetDateTime;
use uuid::Uuid;

use super::shop::{self, PRICE};
use super::spec::Guard;
use super::world::World;

/// What a run starts with.
pub(super) const STOCK: i64 = 12;

/// A charge in the provider's books.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Charge {
    pub id: String,
    /// In cents.
    pub amount: i64,
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    pub customer: u32,
    pub cart: u32,
}

/// An order whose goods leave the house.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub customer: u32,
    pub cart: u32,
}

/// Everything that was written down.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Books {
    pub charges: Vec<Charge>,
    pub orders: Vec<Order>,
    pub stock_before: i64,
    pub stock_after: i64,
    pub mails: i64,
    /// Charges that the provider is still at.
    pub open: i64,
}

/// A product and an account of the run's own.
pub(super) async fn sandbox(world: &World, run: &str, stock: i64) -> anyhow::Result<Uuid> {
    let app = &world.a.app;
    let account = app.clock.new_id();
    let mut conn = app.db.connection().await?;
    crate::accounts::sql::insert_guest(&mut conn, account, app.clock.now()).await?;
    sqlx::query(
        "insert into product (sku, name, description, price, currency, initial_stock, stock)
         values ($1, 'Counter bell', 'Rings once per press.', $2, 'USD', $3, $3)",
    )
    .bind(shop::sku(run))
    .bind(PRICE)
    .bind(stock)
    .execute(&mut *conn)
    .await?;
    conn.done();
    Ok(account)
}

/// Reads the books of a run.
pub(super) async fn read(
    world: &World,
    guard: Guard,
    run: &str,
    account: Uuid,
) -> anyhow::Result<Books> {
    let mut conn = world.a.app.db.connection().await?;
    let (stock_before, stock_after): (i64, i64) =
        sqlx::query_as("select initial_stock, stock from product where sku = $1")
            .bind(shop::sku(run))
            .fetch_one(&mut *conn)
            .await?;
    let (charges, orders, mails) = match guard {
        Guard::Payonce => {
            let charges = sqlx::query(
                "select c.id, c.amount, c.created_at, o.key, o.total
                 from \"order\" o join provider.charge c on c.reference = 'ord_' || replace(o.id::text, '-', '')
                 where o.account_id = $1 and c.status = 'succeeded' order by c.created_at",
            )
            .bind(account)
            .fetch_all(&mut *conn)
            .await?;
            let charges = charges
                .iter()
                .map(|row| {
                    let Order { customer, cart } =
                        of_key(row.try_get("key")?, row.try_get("total")?);
                    let (id, amount) = (row.try_get("id")?, row.try_get("amount")?);
                    Ok(Charge { id, amount, at: row.try_get("created_at")?, customer, cart })
                })
                .collect::<sqlx::Result<Vec<_>>>()?;
            let orders: Vec<(String, i64)> = sqlx::query_as(
                "select key, total from \"order\" where account_id = $1 and status = 'paid'",
            )
            .bind(account)
            .fetch_all(&mut *conn)
            .await?;
            let orders = orders.iter().map(|(key, total)| of_key(key, *total)).collect();
            let mails = sqlx::query_scalar("select count(*) from mail where account_id = $1")
                .bind(account)
                .fetch_one(&mut *conn)
                .await?;
            (charges, orders, mails)
        }
        _ => {
            let charges: Vec<(String, i64, OffsetDateTime, String)> = sqlx::query_as(
                "select id, amount, created_at, reference from provider.charge
                 where reference ^@ $1 and status = 'succeeded' order by created_at",
            )
            .bind(format!("{run}."))
            .fetch_all(&mut *conn)
            .await?;
            let charges = charges
                .into_iter()
                .map(|(id, amount, at, reference)| {
                    let mut parts = reference.split('.').skip(1);
                    let mut number =
                        || parts.next().and_then(|part| part.parse().ok()).unwrap_or_default();
                    Charge { id, amount, at, customer: number(), cart: number() }
                })
                .collect();
            let orders: Vec<(i32, i32)> =
                sqlx::query_as("select customer, cart from lab_order where run = $1 order by id")
                    .bind(run)
                    .fetch_all(&mut *conn)
                    .await?;
            let orders = orders
                .into_iter()
                .map(|(customer, cart)| Order {
                    customer: customer.cast_unsigned(),
                    cart: cart.cast_unsigned(),
                })
                .collect();
            let mails = sqlx::query_scalar("select count(*) from lab_mail where run = $1")
                .bind(run)
                .fetch_one(&mut *conn)
                .await?;
            (charges, orders, mails)
        }
    };
    let open = sqlx::query_scalar(
        "select count(*) from provider.charge
         where status = 'pending' and (reference ^@ $1 or reference in
             (select 'ord_' || replace(id::text, '-', '') from \"order\" where account_id = $2))",
    )
    .bind(format!("{run}."))
    .bind(account)
    .fetch_one(&mut *conn)
    .await?;
    conn.done();
    Ok(Books { charges, orders, stock_before, stock_after, mails, open })
}

/// `RUN-CUSTOMER/order` and the total tell whose order it is and for which cart.
fn of_key(key: &str, total: i64) -> Order {
    let customer = key.strip_suffix("/order").and_then(|key| key.rsplit('-').next()?.parse().ok());
    Order {
        customer: customer.unwrap_or_default(),
        cart: u32::try_from(total / PRICE - 1).unwrap_or_default(),
    }
}

/// Redis forgets what this run put there; of Payonce's cache, which is a hint, everything.
pub(super) async fn flush(world: &World, run: &str) -> anyhow::Result<()> {
    let Some(pool) = &world.redis else { return Ok(()) };
    let mut redis = pool.get().await?;
    for pattern in [format!("lab:{run}:*"), "payonce:reply:*".to_owned()] {
        let names: Vec<String> = cmd("KEYS").arg(pattern).query_async(&mut redis).await?;
        for name in names {
            redis.del::<_, ()>(name).await?;
        }
    }
    Ok(())
}

/// What a day does to the records of this run: they expire, and nightly jobs delete them.
pub(super) async fn a_day_passes(world: &World, run: &str, account: Uuid) -> anyhow::Result<()> {
    flush(world, run).await?;
    let mut conn = world.a.app.db.connection().await?;
    for nightly in
        ["delete from lookup_key where run = $1", "delete from processing_key where run = $1"]
    {
        sqlx::query(nightly).bind(run).execute(&mut *conn).await?;
    }
    sqlx::query(
        "update idempotency_record set finished_at = finished_at - interval '25 hours',
                expires_at = expires_at - interval '25 hours'
         where scope = $1 and expires_at is not null",
    )
    .bind(idempotency::Scope::account(*account.as_bytes()).as_bytes())
    .execute(&mut *conn)
    .await?;
    conn.done();
    Ok(())
}
