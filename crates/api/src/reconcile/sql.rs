//! Statements that read our side of the books.

use domain::{OrderId, PaymentId, RefundId};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};
use uuid::Uuid;

use super::{Kind, Ours, Stage};
use crate::catalog::sql::money;

/// All movements of a kind.
pub(super) async fn all(conn: &mut PgConnection, kind: Kind) -> sqlx::Result<Vec<Ours>> {
    read(conn, kind, None).await
}

/// The movement that the provider knows under a key.
pub(super) async fn one(
    conn: &mut PgConnection,
    kind: Kind,
    provider_key: &str,
) -> sqlx::Result<Option<Ours>> {
    Ok(read(conn, kind, Some(provider_key)).await?.pop())
}

async fn read(
    conn: &mut PgConnection,
    kind: Kind,
    provider_key: Option<&str>,
) -> sqlx::Result<Vec<Ours>> {
    let query = match kind {
        Kind::Charge => sqlx::query_as(
            "select p.id, p.order_id, false as is_refund, p.provider_key, p.status, p.amount,
                    p.currency,
                    (select coalesce(sum(l.amount), 0)::bigint from ledger_posting l
                     where l.payment_id = p.id and l.refund_id is null and l.amount > 0) as booked
             from payment p where $1::text is null or p.provider_key = $1 order by p.id",
        ),
        Kind::Refund => sqlx::query_as(
            "select r.id, p.order_id, true as is_refund, r.provider_key, r.status, r.amount,
                    p.currency,
                    (select coalesce(sum(l.amount), 0)::bigint from ledger_posting l
                     where l.refund_id = r.id and l.amount > 0) as booked
             from refund r join payment p on p.id = r.payment_id
             where $1::text is null or r.provider_key = $1 order by r.id",
        ),
    };
    query.bind(provider_key).fetch_all(conn).await
}

impl<'r> FromRow<'r, PgRow> for Ours {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        let (id, order): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("order_id")?);
        let order = OrderId::from_uuid(order);
        let name = match row.try_get("is_refund")? {
            true => format!("refund {} (order {order})", RefundId::from_uuid(id)),
            false => format!("payment {} (order {order})", PaymentId::from_uuid(id)),
        };
        let stage = match row.try_get("status")? {
            "succeeded" => Stage::Moved,
            "processing" | "unknown" => Stage::Open,
            _ => Stage::Refused,
        };
        Ok(Self {
            name,
            provider_key: row.try_get("provider_key")?,
            stage,
            amount: money(row, "amount")?,
            booked: row.try_get("booked")?,
        })
    }
}
