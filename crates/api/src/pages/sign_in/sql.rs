//! What comes along when a guest signs in. Who made a thing, and under which key, stays as it was.

use domain::AccountId;
use sqlx::postgres::PgConnection;
use time::OffsetDateTime;

/// Moves carts and orders, with all that hangs on them, from a guest to an account. Orders go
/// before payments and refunds, in the order of their ids, as everywhere.
pub(super) async fn move_belongings(
    conn: &mut PgConnection,
    guest: AccountId,
    account: AccountId,
    now: OffsetDateTime,
) -> sqlx::Result<()> {
    move_carts(conn, guest, account, now).await?;
    let (guest, account) = (guest.uuid(), account.uuid());
    sqlx::query(r#"select 1 from "order" where account_id = $1 order by id for update"#)
        .bind(guest)
        .execute(&mut *conn)
        .await?;
    sqlx::query(r#"update "order" set account_id = $2 where account_id = $1"#)
        .bind(guest)
        .bind(account)
        .execute(&mut *conn)
        .await?;
    for statement in [
        r#"update payment p set account_id = $2 from "order" o
           where o.account_id = $2 and p.order_id = o.id and p.account_id = $1"#,
        r#"update refund r set account_id = $2 from payment p join "order" o on o.id = p.order_id
           where o.account_id = $2 and r.payment_id = p.id and r.account_id = $1"#,
        "update mail set account_id = $2 where account_id = $1",
    ] {
        sqlx::query(statement).bind(guest).bind(account).execute(&mut *conn).await?;
    }
    Ok(())
}

/// A cart with something in it becomes the account's current one; an empty one hides nothing.
async fn move_carts(
    conn: &mut PgConnection,
    guest: AccountId,
    account: AccountId,
    now: OffsetDateTime,
) -> sqlx::Result<()> {
    sqlx::query(
        "update cart c set account_id = $2,
                updated_at = case when exists (select from cart_line where cart_id = c.id)
                                  then $3 else created_at end
         where account_id = $1",
    )
    .bind(guest.uuid())
    .bind(account.uuid())
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}
