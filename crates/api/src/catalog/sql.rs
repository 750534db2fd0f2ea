//! Statements about products and their stock.

use std::collections::HashMap;

use domain::{Currency, Money, Offer, Sku, StockMovementId};
use idempotency::Identity;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};
use uuid::Uuid;

use super::movement::StockMovementBody;
use super::{Listed, Product};

impl<'r> FromRow<'r, PgRow> for Product {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        Ok(Self {
            sku: sku(row)?,
            name: row.try_get("name")?,
            description: row.try_get("description")?,
            price: price(row)?,
            stock: row.try_get("stock")?,
        })
    }
}

/// Every product's number, name and price.
pub async fn listed(conn: &mut PgConnection) -> sqlx::Result<HashMap<Sku, Listed>> {
    let rows =
        sqlx::query("select id, sku, name, price, currency from product").fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            let sku = sku(row)?;
            let offer =
                Offer { sku: sku.clone(), name: row.try_get("name")?, unit_price: price(row)? };
            Ok((sku, Listed { id: row.try_get("id")?, offer }))
        })
        .collect()
}

/// Products after a SKU, in the order of the catalogue.
pub async fn page(
    conn: &mut PgConnection,
    after: Option<i32>,
    limit: i64,
) -> sqlx::Result<Vec<(i32, Product)>> {
    let rows = sqlx::query(
        "select id, sku, name, description, price, currency, stock from product
         where id > coalesce($1, 0) order by id limit $2",
    )
    .bind(after)
    .bind(limit)
    .fetch_all(conn)
    .await?;
    rows.iter().map(|row| Ok((row.try_get("id")?, Product::from_row(row)?))).collect()
}

/// One product.
pub async fn get(conn: &mut PgConnection, sku: &str) -> sqlx::Result<Option<Product>> {
    sqlx::query_as(
        "select sku, name, description, price, currency, stock from product where sku = $1",
    )
    .bind(sku)
    .fetch_optional(conn)
    .await
}

/// What is in stock of these products, by number.
pub async fn stock(conn: &mut PgConnection, ids: &[i32]) -> sqlx::Result<HashMap<i32, i64>> {
    let rows: Vec<(i32, i64)> = sqlx::query_as("select id, stock from product where id = any($1)")
        .bind(ids)
        .fetch_all(conn)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Locks products until the transaction ends, in id order, like everywhere. What is read after it is
/// what a transaction that we waited for has left behind.
pub async fn lock(conn: &mut PgConnection, ids: &[i32]) -> sqlx::Result<()> {
    sqlx::query("select 1 from product where id = any($1) order by id for update")
        .bind(ids)
        .execute(conn)
        .await?;
    Ok(())
}

/// Changes what is in stock of a product. `None`: there is no such product, or not so much of it.
pub async fn change_stock(
    conn: &mut PgConnection,
    sku: &Sku,
    delta: i64,
) -> sqlx::Result<Option<(i32, i64)>> {
    sqlx::query_as(
        "update product set stock = stock + $2 where sku = $1 and stock + $2 >= 0
         returning id, stock",
    )
    .bind(sku.as_str())
    .bind(delta)
    .fetch_optional(conn)
    .await
}

/// Writes down what a merchant has changed.
pub async fn insert_correction(
    conn: &mut PgConnection,
    product: i32,
    movement: &StockMovementBody,
    made_by: &Identity,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into stock_movement (id, product_id, delta, reason, stock_after, created_at,
                                     made_by, key)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(movement.id.uuid())
    .bind(product)
    .bind(movement.delta)
    .bind(&movement.reason)
    .bind(movement.stock_after)
    .bind(movement.created_at)
    .bind(made_by.scope.as_bytes())
    .bind(made_by.key.as_str())
    .execute(conn)
    .await?;
    Ok(())
}

/// What a merchant has changed.
pub async fn correction(
    conn: &mut PgConnection,
    sku: &Sku,
    id: StockMovementId,
) -> sqlx::Result<Option<StockMovementBody>> {
    let row = sqlx::query(
        "select m.delta, m.reason, m.stock_after, m.created_at from stock_movement m
         join product p on p.id = m.product_id
         where m.id = $1 and p.sku = $2",
    )
    .bind(id.uuid())
    .bind(sku.as_str())
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(StockMovementBody {
        id,
        sku: sku.clone(),
        delta: row.try_get("delta")?,
        reason: row.try_get("reason")?,
        stock_after: row.try_get("stock_after")?,
        created_at: row.try_get("created_at")?,
    }))
}

/// Puts the goods of an order back, each line once, and marks the lines. The order is locked; the
/// products are locked in id order, like everywhere. Returns how many lines came back.
pub async fn return_goods(conn: &mut PgConnection, order: Uuid) -> sqlx::Result<u64> {
    let returned = sqlx::query(
        "with locked as materialized (
             select p.id from product p
             where p.id in (select product_id from order_line
                            where order_id = $1 and returned_at is null)
             order by p.id for update
         ),
         returned as (
             update order_line l set returned_at = clock_timestamp() from locked
             where l.order_id = $1 and l.product_id = locked.id and l.returned_at is null
             returning l.product_id, l.quantity
         )
         update product p set stock = p.stock + returned.quantity
         from returned where p.id = returned.product_id",
    )
    .bind(order)
    .execute(conn)
    .await?;
    Ok(returned.rows_affected())
}

fn sku(row: &PgRow) -> sqlx::Result<Sku> {
    let sku: String = row.try_get("sku")?;
    sku.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

fn price(row: &PgRow) -> sqlx::Result<Money> {
    money(row, "price")
}

/// An amount column together with the row's currency.
pub fn money(row: &PgRow, amount: &str) -> sqlx::Result<Money> {
    let currency: &str = row.try_get("currency")?;
    let currency: Currency =
        currency.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    Ok(Money::new(row.try_get(amount)?, currency))
}
