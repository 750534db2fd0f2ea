//! Expire orders: unpaid ones give their goods back when their time is over.
//!
//! Orders are taken one by one under their own lock, skipping those that somebody else holds: a
//! payment that begins at this very moment and this job cannot both win. An order whose payment
//! is under way, or whose outcome is not known, does not expire.

use domain::OrderId;
use sqlx::Row;
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
    let due = sqlx::query(
        r#"select id, clock_timestamp() as now from "order"
           where status = 'pending' and live_payment_id is null
             and reserved_until <= clock_timestamp()
           order by reserved_until limit 1 for update skip locked"#,
    )
    .fetch_optional(&mut *tx)
    .await?;
    let Some(due) = due else {
        tx.rollback().await;
        return Ok(false);
    };
    let id = OrderId::from_uuid(due.try_get::<Uuid, _>("id")?);
    let now = due.try_get("now")?;
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
