//! Statements about whose an order is. Who made it never changes.

use domain::{AccountId, OrderId};
use idempotency::Identity;
use sqlx::postgres::PgConnection;

use crate::payments;

/// Gives an order, with all that hangs on it, to the account that its cart belongs to.
pub(in crate::pages) async fn adopt(
    conn: &mut PgConnection,
    order: OrderId,
    account: AccountId,
) -> sqlx::Result<()> {
    sqlx::query(
        r#"with taken as (
               update "order" o set account_id = $2 from cart c
               where o.id = $1 and c.id = o.cart_id and c.account_id = $2 and o.account_id <> $2
               returning o.id
           ),
           paid as (
               update payment p set account_id = $2 from taken where p.order_id = taken.id
               returning p.id
           ),
           refunded as (
               update refund r set account_id = $2 from paid where r.payment_id = paid.id
           )
           update mail m set account_id = $2 from taken where m.order_id = taken.id"#,
    )
    .bind(order.uuid())
    .bind(account.uuid())
    .execute(conn)
    .await?;
    Ok(())
}

/// Under which key an order was made, and whose key that was.
pub(in crate::pages) async fn made_by(
    conn: &mut PgConnection,
    order: OrderId,
) -> sqlx::Result<Option<Identity>> {
    let row = sqlx::query(r#"select made_by, key from "order" where id = $1"#)
        .bind(order.uuid())
        .fetch_optional(conn)
        .await?;
    row.map(|row| payments::sql::made_by(&row)).transpose()
}
