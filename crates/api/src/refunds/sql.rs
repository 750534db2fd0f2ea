//! Statements about refunds.

use domain::{AccountId, Money, OrderId, PaymentId, RefundId, RefundOutcome, RefundStatus};
use idempotency::Identity;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};
use uuid::Uuid;

use super::{Refund, automatic};
use crate::catalog::sql::money;
use crate::orders::sql::word;
use crate::payments::{self, Payment};

impl<'r> FromRow<'r, PgRow> for Refund {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        let payment_id = PaymentId::from_uuid(row.try_get("payment_id")?);
        Ok(Self {
            id: RefundId::from_uuid(row.try_get("id")?),
            payment_id,
            order_id: OrderId::from_uuid(row.try_get("order_id")?),
            account_id: AccountId::from_uuid(row.try_get("account_id")?),
            provider_key: row.try_get("provider_key")?,
            charge_key: row.try_get("charge_key")?,
            status: word(row.try_get("status")?)?,
            amount: money(row, "amount")?,
            reason: row.try_get("reason")?,
            restock: row.try_get("restock")?,
            automatic: payments::sql::made_by(row)? == automatic::identity(payment_id),
            created_at: row.try_get("created_at")?,
        })
    }
}

/// Inserts a refund that is about to be sent.
pub async fn insert(
    conn: &mut PgConnection,
    refund: &Refund,
    made_by: &Identity,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into refund (id, payment_id, account_id, made_by, key, provider_key, status, amount,
                             currency, reason, restock, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(refund.id.uuid())
    .bind(refund.payment_id.uuid())
    .bind(refund.account_id.uuid())
    .bind(made_by.scope.as_bytes())
    .bind(made_by.key.as_str())
    .bind(&refund.provider_key)
    .bind(refund.status.as_str())
    .bind(refund.amount.amount)
    .bind(refund.amount.currency.code())
    .bind(refund.reason.as_deref())
    .bind(refund.restock)
    .bind(refund.created_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// One refund.
pub async fn get(conn: &mut PgConnection, id: RefundId) -> sqlx::Result<Option<Refund>> {
    sqlx::query_as(
        "select r.*, p.order_id, p.provider_key as charge_key
         from refund r join payment p on p.id = r.payment_id where r.id = $1",
    )
    .bind(id.uuid())
    .fetch_optional(conn)
    .await
}

/// One refund, locked until the transaction ends. Lock its record, order and payment first.
pub async fn lock(conn: &mut PgConnection, id: RefundId) -> sqlx::Result<Option<Refund>> {
    sqlx::query("select 1 from refund where id = $1 for update")
        .bind(id.uuid())
        .fetch_optional(&mut *conn)
        .await?;
    get(conn, id).await
}

/// The refund that the provider knows under a key, and whose key made it.
pub async fn by_provider_key(
    conn: &mut PgConnection,
    provider_key: &str,
) -> sqlx::Result<Option<(RefundId, Identity)>> {
    let row = sqlx::query("select id, made_by, key from refund where provider_key = $1")
        .bind(provider_key)
        .fetch_optional(conn)
        .await?;
    let refund = |row| Ok((RefundId::from_uuid(row_id(&row)?), payments::sql::made_by(&row)?));
    row.map(refund).transpose()
}

/// The refunds of an order's payments, oldest first.
pub async fn of_order(conn: &mut PgConnection, order: OrderId) -> sqlx::Result<Vec<Refund>> {
    sqlx::query_as(
        "select r.*, p.order_id, p.provider_key as charge_key
         from refund r join payment p on p.id = r.payment_id
         where p.order_id = $1 order by r.id",
    )
    .bind(order.uuid())
    .fetch_all(conn)
    .await
}

/// Whether a record's subject is a refund.
pub async fn is_refund(conn: &mut PgConnection, subject: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar("select exists (select from refund where id = $1)")
        .bind(subject)
        .fetch_one(conn)
        .await
}

/// Whether this key made a refund, however long ago.
pub async fn is_made(conn: &mut PgConnection, made_by: &Identity) -> sqlx::Result<bool> {
    sqlx::query_scalar("select exists (select from refund where made_by = $1 and key = $2)")
        .bind(made_by.scope.as_bytes())
        .bind(made_by.key.as_str())
        .fetch_one(conn)
        .await
}

/// What refunds of a payment come to whose end is not known.
pub async fn open(conn: &mut PgConnection, payment: &Payment) -> sqlx::Result<Money> {
    let open = sqlx::query_scalar(
        "select coalesce(sum(amount), 0)::bigint from refund
         where payment_id = $1 and status in ('processing', 'unknown')",
    )
    .bind(payment.id.uuid())
    .fetch_one(conn)
    .await?;
    Ok(Money::new(open, payment.amount.currency))
}

/// Whether goods of an order went back into stock.
pub async fn is_restocked(conn: &mut PgConnection, order: OrderId) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        "select exists (select from order_line where order_id = $1 and returned_at is not null)",
    )
    .bind(order.uuid())
    .fetch_one(conn)
    .await
}

/// Moves a refund from one status to another. `false`: it was not in the first.
pub async fn set_status(
    conn: &mut PgConnection,
    id: RefundId,
    from: RefundStatus,
    to: RefundStatus,
) -> sqlx::Result<bool> {
    let moved = sqlx::query("update refund set status = $3 where id = $1 and status = $2")
        .bind(id.uuid())
        .bind(from.as_str())
        .bind(to.as_str())
        .execute(conn)
        .await?;
    Ok(moved.rows_affected() == 1)
}

/// Writes down what became of a refund. `false`: it was not in the status it was read in.
pub async fn settle(
    conn: &mut PgConnection,
    refund: &Refund,
    outcome: &RefundOutcome,
) -> sqlx::Result<bool> {
    let provider_refund_id = match outcome {
        RefundOutcome::Succeeded { provider_refund_id } => Some(provider_refund_id),
        RefundOutcome::Failed { provider_refund_id } => provider_refund_id.as_ref(),
    };
    let settled = sqlx::query(
        "update refund set status = $3, provider_refund_id = $4, settled_at = clock_timestamp()
         where id = $1 and status = $2",
    )
    .bind(refund.id.uuid())
    .bind(refund.status.as_str())
    .bind(outcome.status().as_str())
    .bind(provider_refund_id)
    .execute(conn)
    .await?;
    Ok(settled.rows_affected() == 1)
}

/// Deletes a refund that was never sent.
pub async fn delete_unsent(conn: &mut PgConnection, id: RefundId) -> sqlx::Result<bool> {
    let deleted = sqlx::query("delete from refund where id = $1 and status = 'processing'")
        .bind(id.uuid())
        .execute(conn)
        .await?;
    Ok(deleted.rows_affected() == 1)
}

fn row_id(row: &PgRow) -> sqlx::Result<Uuid> {
    row.try_get("id")
}
