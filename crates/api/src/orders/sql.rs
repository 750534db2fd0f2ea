//! Statements about orders. The one that places an order stands in `place.rs`.

use domain::{AccountId, OrderId, PaymentId, Sku};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};
use uuid::Uuid;

use super::{Order, OrderLine};
use crate::catalog::sql::money;

impl<'r> FromRow<'r, PgRow> for Order {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        let payment: Option<Uuid> = row.try_get("live_payment_id")?;
        let payment_status: Option<String> = row.try_get("payment_status")?;
        let live_payment = match payment.zip(payment_status) {
            Some((id, status)) => Some((PaymentId::from_uuid(id), word(&status)?)),
            None => None,
        };
        Ok(Self {
            id: OrderId::from_uuid(row.try_get("id")?),
            account_id: AccountId::from_uuid(row.try_get("account_id")?),
            status: word(row.try_get("status")?)?,
            total: money(row, "total")?,
            email: row.try_get("email")?,
            note: row.try_get("note")?,
            created_at: row.try_get("created_at")?,
            reserved_until: row.try_get("reserved_until")?,
            live_payment,
        })
    }
}

impl<'r> FromRow<'r, PgRow> for OrderLine {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        let sku: String = row.try_get("sku")?;
        Ok(Self {
            sku: Sku::try_from(sku).map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            name: row.try_get("name")?,
            quantity: row.try_get("quantity")?,
            unit_price: money(row, "unit_price")?,
            line_total: money(row, "line_total")?,
        })
    }
}

/// One of the domain's words out of a column.
pub fn word<W: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    text: &str,
) -> sqlx::Result<W> {
    text.parse().map_err(|error: W::Err| sqlx::Error::Decode(Box::new(error)))
}

/// One order.
pub async fn get(conn: &mut PgConnection, id: OrderId) -> sqlx::Result<Option<Order>> {
    sqlx::query_as(
        r#"select o.*, p.status as payment_status
           from "order" o left join payment p on p.id = o.live_payment_id where o.id = $1"#,
    )
    .bind(id.uuid())
    .fetch_optional(conn)
    .await
}

/// One order, locked until the transaction ends. The lock comes first: what is read with it is
/// what a transaction that we waited for has left behind.
pub async fn lock(conn: &mut PgConnection, id: OrderId) -> sqlx::Result<Option<Order>> {
    sqlx::query(r#"select 1 from "order" where id = $1 for update"#)
        .bind(id.uuid())
        .fetch_optional(&mut *conn)
        .await?;
    get(conn, id).await
}

/// The order that consumed a cart.
pub async fn by_cart(conn: &mut PgConnection, cart: Uuid) -> sqlx::Result<Option<Order>> {
    sqlx::query_as(
        r#"select o.*, p.status as payment_status
           from "order" o left join payment p on p.id = o.live_payment_id where o.cart_id = $1"#,
    )
    .bind(cart)
    .fetch_optional(conn)
    .await
}

/// The lines of an order, as they were ordered.
pub async fn lines(conn: &mut PgConnection, id: OrderId) -> sqlx::Result<Vec<OrderLine>> {
    sqlx::query_as(
        r#"select l.*, o.currency from order_line l join "order" o on o.id = l.order_id
           where l.order_id = $1 order by l.position"#,
    )
    .bind(id.uuid())
    .fetch_all(conn)
    .await
}

/// Orders before an id, newest first; of one account, or of all.
pub async fn page(
    conn: &mut PgConnection,
    account: Option<AccountId>,
    before: Option<OrderId>,
    limit: i64,
) -> sqlx::Result<Vec<Order>> {
    sqlx::query_as(
        r#"select o.*, p.status as payment_status
           from "order" o left join payment p on p.id = o.live_payment_id
           where ($1::uuid is null or o.account_id = $1) and ($2::uuid is null or o.id < $2)
           order by o.id desc limit $3"#,
    )
    .bind(account.map(AccountId::uuid))
    .bind(before.map(OrderId::uuid))
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// Moves a locked order on. `false`: it was not in the state that was read.
pub async fn set_status(
    conn: &mut PgConnection,
    order: &Order,
    status: domain::OrderStatus,
) -> sqlx::Result<bool> {
    let moved = sqlx::query(r#"update "order" set status = $3 where id = $1 and status = $2"#)
        .bind(order.id.uuid())
        .bind(order.status.as_str())
        .bind(status.as_str())
        .execute(conn)
        .await?;
    Ok(moved.rows_affected() == 1)
}

/// Links a payment, if the order is free and still reserved. An update, not a lock: after waiting
/// for another update it looks at the row again.
pub async fn link_payment(
    conn: &mut PgConnection,
    order: OrderId,
    payment: PaymentId,
) -> sqlx::Result<bool> {
    let linked = sqlx::query(
        r#"update "order" set live_payment_id = $2
           where id = $1 and status = 'pending' and live_payment_id is null
             and reserved_until > clock_timestamp()"#,
    )
    .bind(order.uuid())
    .bind(payment.uuid())
    .execute(conn)
    .await?;
    Ok(linked.rows_affected() == 1)
}

/// Unlinks a payment that came to nothing.
pub async fn unlink_payment(
    conn: &mut PgConnection,
    order: OrderId,
    payment: PaymentId,
) -> sqlx::Result<bool> {
    let unlinked = sqlx::query(
        r#"update "order" set live_payment_id = null
           where id = $1 and status = 'pending' and live_payment_id = $2"#,
    )
    .bind(order.uuid())
    .bind(payment.uuid())
    .execute(conn)
    .await?;
    Ok(unlinked.rows_affected() == 1)
}

/// The database's time, for rules that compare with it.
pub async fn now(conn: &mut PgConnection) -> sqlx::Result<time::OffsetDateTime> {
    sqlx::query_scalar("select clock_timestamp()").fetch_one(conn).await
}
