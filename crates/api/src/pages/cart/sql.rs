//! Statements about carts. An order consumes its cart: from then on the account has no cart until
//! something is put into a new one.

use domain::{AccountId, CartId, Sku};
use sqlx::Row;
use sqlx::postgres::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::catalog::sql::money;
use crate::pages::basket::Line;

/// The cart of an account that no order has consumed.
pub(in crate::pages) async fn current(
    conn: &mut PgConnection,
    account: AccountId,
) -> sqlx::Result<Option<CartId>> {
    let id: Option<Uuid> = sqlx::query_scalar(
        r#"select id from cart c
           where account_id = $1 and not exists (select from "order" where cart_id = c.id)
           order by updated_at desc, id desc limit 1"#,
    )
    .bind(account.uuid())
    .fetch_optional(conn)
    .await?;
    Ok(id.map(CartId::from_uuid))
}

/// Whose cart it is.
pub(in crate::pages) async fn owner(
    conn: &mut PgConnection,
    cart: CartId,
) -> sqlx::Result<Option<AccountId>> {
    let id: Option<Uuid> = sqlx::query_scalar("select account_id from cart where id = $1")
        .bind(cart.uuid())
        .fetch_optional(conn)
        .await?;
    Ok(id.map(AccountId::from_uuid))
}

/// How many pieces lie in the account's cart.
pub(in crate::pages) async fn count(
    conn: &mut PgConnection,
    account: AccountId,
) -> sqlx::Result<u32> {
    let Some(cart) = current(conn, account).await? else { return Ok(0) };
    let count: i64 = sqlx::query_scalar(
        "select coalesce(sum(quantity), 0)::bigint from cart_line where cart_id = $1",
    )
    .bind(cart.uuid())
    .fetch_one(conn)
    .await?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// What lies in a cart, in the order it was put in, at today's prices.
pub(in crate::pages) async fn lines(
    conn: &mut PgConnection,
    cart: CartId,
) -> sqlx::Result<Vec<Line>> {
    let rows = sqlx::query(
        "select l.sku, p.name, l.quantity, p.price, p.currency, p.stock,
                p.price * l.quantity as amount
         from cart_line l join product p on p.sku = l.sku
         where l.cart_id = $1 order by l.added_at, l.sku",
    )
    .bind(cart.uuid())
    .fetch_all(conn)
    .await?;
    rows.iter()
        .map(|row| {
            let sku: String = row.try_get("sku")?;
            let quantity: i32 = row.try_get("quantity")?;
            Ok(Line {
                sku: Sku::try_from(sku).map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
                name: row.try_get("name")?,
                unit_price: money(row, "price")?,
                quantity: quantity.unsigned_abs(),
                amount: money(row, "amount")?,
                stock: row.try_get("stock")?,
            })
        })
        .collect()
}

/// Makes the account's edits wait for each other, so that two first ones do not make two carts.
pub(in crate::pages) async fn take_turn(
    conn: &mut PgConnection,
    account: AccountId,
) -> sqlx::Result<()> {
    sqlx::query("select 1 from account where id = $1 for no key update")
        .bind(account.uuid())
        .execute(conn)
        .await?;
    Ok(())
}

/// A new cart.
pub(in crate::pages) async fn open(
    conn: &mut PgConnection,
    cart: CartId,
    account: AccountId,
    now: OffsetDateTime,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into cart (id, account_id, created_at, updated_at) values ($1, $2, $3, $3)",
    )
    .bind(cart.uuid())
    .bind(account.uuid())
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// Sets how many of a product lie in a cart; none takes it out.
pub(in crate::pages) async fn set(
    conn: &mut PgConnection,
    cart: CartId,
    sku: &Sku,
    quantity: i32,
    now: OffsetDateTime,
) -> sqlx::Result<()> {
    let statement = if quantity == 0 {
        sqlx::query("delete from cart_line where cart_id = $1 and sku = $2")
            .bind(cart.uuid())
            .bind(sku.as_str())
    } else {
        sqlx::query(
            "insert into cart_line (cart_id, sku, quantity, added_at) values ($1, $2, $3, $4)
             on conflict (cart_id, sku) do update set quantity = excluded.quantity",
        )
        .bind(cart.uuid())
        .bind(sku.as_str())
        .bind(quantity)
        .bind(now)
    };
    statement.execute(conn).await?;
    Ok(())
}

/// Takes everything out that is not priced in one currency.
pub(in crate::pages) async fn keep_currency(
    conn: &mut PgConnection,
    cart: CartId,
    currency: &str,
) -> sqlx::Result<()> {
    sqlx::query(
        "delete from cart_line l using product p
         where l.cart_id = $1 and p.sku = l.sku and p.currency <> $2",
    )
    .bind(cart.uuid())
    .bind(currency)
    .execute(conn)
    .await?;
    Ok(())
}

/// The cart was looked after: it is the account's current one.
pub(in crate::pages) async fn touch(
    conn: &mut PgConnection,
    cart: CartId,
    now: OffsetDateTime,
) -> sqlx::Result<()> {
    sqlx::query("update cart set updated_at = $2 where id = $1")
        .bind(cart.uuid())
        .bind(now)
        .execute(conn)
        .await?;
    Ok(())
}
