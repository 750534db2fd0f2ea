//! Expire orders: unpaid ones give their goods back when their time is over.
//!
//! Orders are taken one by one under their own lock, skipping those that somebody else holds: a
//! payment that begins at this very moment and this job cannot both win. An order whose payment
//! is under way, or whose outcome is not known, does not expire.

use domain::OrderId;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::sql;
use crate::app::App;
use crate::catalog;
use crate::db;

/// One run ends after so many.
const BATCH: usize = 200;

/// Expires what is due. Returns how many orders expired.
///
/// # Errors
/// Those of the database.
pub async fn run_once(app: &App) -> sqlx::Result<usize> {
    let mut expired = 0;
    while expired < BATCH && db::retrying(|| expire_one(app)).await? {
        expired += 1;
    }
    Ok(expired)
}

async fn expire_one(app: &App) -> sqlx::Result<bool> {
    let mut tx = app.db.begin().await?;
    let Some((id, now)) = due(&mut tx).await? else {
        tx.rollback().await;
        return Ok(false);
    };
    let order = sql::get(&mut tx, id).await?.ok_or(sqlx::Error::RowNotFound)?;
    let Ok(expired) = order.state().expire(now) else {
        tx.rollback().await;
        return Ok(false);
    };
    if !sql::set_status(&mut tx, &order, expired.status()).await? {
        tx.rollback().await;
        return Ok(false);
    }
    catalog::sql::return_goods(&mut tx, id.uuid()).await?;
    tx.commit().await?;
    Ok(true)
}

/// Locks an order whose time is over, unless somebody else holds it; and what time it is.
///
/// # Errors
/// Those of the database.
pub async fn due(conn: &mut PgConnection) -> sqlx::Result<Option<(OrderId, OffsetDateTime)>> {
    let row: Option<(Uuid, OffsetDateTime)> = sqlx::query_as(
        r#"select id, clock_timestamp() from "order"
           where status = 'pending' and live_payment_id is null
             and reserved_until <= statement_timestamp()
           order by reserved_until limit 1 for update skip locked"#,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|(id, now)| (OrderId::from_uuid(id), now)))
}
