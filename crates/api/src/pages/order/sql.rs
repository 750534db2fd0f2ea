//! What the order's page reads beyond the order and its payments.

use domain::{Money, OrderId, PaymentId, RefundStatus};
use sqlx::Row;
use sqlx::postgres::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::catalog::sql::money;
use crate::orders::sql::word;

/// A refund of any payment of an order.
pub(super) struct Refund {
    pub(super) payment: PaymentId,
    pub(super) amount: Money,
    pub(super) status: RefundStatus,
    pub(super) at: OffsetDateTime,
}

/// How often somebody worked on a payment, and when somebody will again.
pub(super) struct Asking {
    pub(super) attempts: i32,
    pub(super) next: Option<OffsetDateTime>,
}

/// All refunds of an order, oldest first.
pub(super) async fn refunds(conn: &mut PgConnection, order: OrderId) -> sqlx::Result<Vec<Refund>> {
    let rows = sqlx::query(
        "select r.payment_id, r.amount, r.currency, r.status,
                coalesce(r.settled_at, r.created_at) as at
         from refund r join payment p on p.id = r.payment_id
         where p.order_id = $1 order by r.id",
    )
    .bind(order.uuid())
    .fetch_all(conn)
    .await?;
    rows.iter()
        .map(|row| {
            let payment: Uuid = row.try_get("payment_id")?;
            Ok(Refund {
                payment: PaymentId::from_uuid(payment),
                amount: money(row, "amount")?,
                status: word(row.try_get("status")?)?,
                at: row.try_get("at")?,
            })
        })
        .collect()
}

/// What the record of an unfinished payment says.
pub(super) async fn asking(
    conn: &mut PgConnection,
    payment: PaymentId,
) -> sqlx::Result<Option<Asking>> {
    let row = sqlx::query(
        "select r.attempts, r.recover_at from payment p
         join idempotency_record r on r.scope = p.made_by and r.key = p.key
         where p.id = $1",
    )
    .bind(payment.uuid())
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(Asking { attempts: row.try_get("attempts")?, next: row.try_get("recover_at")? })
    })
    .transpose()
}

/// When the payment of an order was confirmed.
pub(super) async fn paid_at(
    conn: &mut PgConnection,
    payment: PaymentId,
) -> sqlx::Result<Option<OffsetDateTime>> {
    let at = sqlx::query_scalar("select settled_at from payment where id = $1")
        .bind(payment.uuid())
        .fetch_optional(conn)
        .await?;
    Ok(at.flatten())
}
