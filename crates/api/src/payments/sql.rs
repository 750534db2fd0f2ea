//! Statements about payments and the ledger.

use domain::{
    AccountId, ChargeOutcome, DeclineCode, Entry, OrderId, PaymentId, PaymentStatus, RefundId,
};
use idempotency::Identity;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};
use uuid::Uuid;

use super::Payment;
use crate::catalog::sql::money;
use crate::orders::sql::word;

impl<'r> FromRow<'r, PgRow> for Payment {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        let decline_code: Option<String> = row.try_get("decline_code")?;
        Ok(Self {
            id: PaymentId::from_uuid(row.try_get("id")?),
            order_id: OrderId::from_uuid(row.try_get("order_id")?),
            account_id: AccountId::from_uuid(row.try_get("account_id")?),
            provider_key: row.try_get("provider_key")?,
            status: word(row.try_get("status")?)?,
            amount: money(row, "amount")?,
            refunded: money(row, "refunded")?,
            payment_method: row.try_get("payment_method")?,
            charge_id: row.try_get("charge_id")?,
            decline_code: decline_code.as_deref().map(word::<DeclineCode>).transpose()?,
            misdirected: row.try_get("misdirected")?,
            created_at: row.try_get("created_at")?,
        })
    }
}

/// Inserts a payment that is about to be sent.
pub async fn insert(
    conn: &mut PgConnection,
    payment: &Payment,
    made_by: &Identity,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into payment (id, order_id, account_id, made_by, key, provider_key, status, amount,
                              currency, payment_method, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(payment.id.uuid())
    .bind(payment.order_id.uuid())
    .bind(payment.account_id.uuid())
    .bind(made_by.scope.as_bytes())
    .bind(made_by.key.as_str())
    .bind(&payment.provider_key)
    .bind(payment.status.as_str())
    .bind(payment.amount.amount)
    .bind(payment.amount.currency.code())
    .bind(&payment.payment_method)
    .bind(payment.created_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// One payment.
pub async fn get(conn: &mut PgConnection, id: PaymentId) -> sqlx::Result<Option<Payment>> {
    sqlx::query_as(
        "select p.*, (select coalesce(sum(r.amount), 0)::bigint from refund r
                      where r.payment_id = p.id and r.status = 'succeeded') as refunded
         from payment p where p.id = $1",
    )
    .bind(id.uuid())
    .fetch_optional(conn)
    .await
}

/// One payment, locked until the transaction ends. Lock its record and its order first.
pub async fn lock(conn: &mut PgConnection, id: PaymentId) -> sqlx::Result<Option<Payment>> {
    sqlx::query("select 1 from payment where id = $1 for update")
        .bind(id.uuid())
        .fetch_optional(&mut *conn)
        .await?;
    get(conn, id).await
}

/// The payment that the provider knows under a key, and whose key made it.
pub async fn by_provider_key(
    conn: &mut PgConnection,
    provider_key: &str,
) -> sqlx::Result<Option<(PaymentId, Identity)>> {
    let row = sqlx::query("select id, made_by, key from payment where provider_key = $1")
        .bind(provider_key)
        .fetch_optional(conn)
        .await?;
    row.map(|row| Ok((PaymentId::from_uuid(row.try_get("id")?), made_by(&row)?))).transpose()
}

/// The payments of an order, oldest first.
pub async fn of_order(conn: &mut PgConnection, order: OrderId) -> sqlx::Result<Vec<Payment>> {
    sqlx::query_as(
        "select p.*, (select coalesce(sum(r.amount), 0)::bigint from refund r
                      where r.payment_id = p.id and r.status = 'succeeded') as refunded
         from payment p where p.order_id = $1 order by p.id",
    )
    .bind(order.uuid())
    .fetch_all(conn)
    .await
}

/// The scope and key columns of a row.
pub fn made_by(row: &PgRow) -> sqlx::Result<Identity> {
    let key: &str = row.try_get("key")?;
    Ok(Identity {
        scope: idempotency::Scope::from_stored(row.try_get("made_by")?),
        key: idempotency::Key::from_bare(key.as_bytes())
            .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
    })
}

/// Moves a payment from one status to another. `false`: it was not in the first.
pub async fn set_status(
    conn: &mut PgConnection,
    id: PaymentId,
    from: PaymentStatus,
    to: PaymentStatus,
) -> sqlx::Result<bool> {
    let moved = sqlx::query("update payment set status = $3 where id = $1 and status = $2")
        .bind(id.uuid())
        .bind(from.as_str())
        .bind(to.as_str())
        .execute(conn)
        .await?;
    Ok(moved.rows_affected() == 1)
}

/// Writes down what became of a charge. `false`: the payment was not in the status it was read in.
pub async fn settle(
    conn: &mut PgConnection,
    payment: &Payment,
    outcome: &ChargeOutcome,
    misdirected: bool,
) -> sqlx::Result<bool> {
    let code = match outcome {
        ChargeOutcome::Declined { code, .. } => Some(code.as_str()),
        ChargeOutcome::Succeeded { .. } | ChargeOutcome::Cancelled => None,
    };
    let settled = sqlx::query(
        "update payment set status = $3, charge_id = $4, decline_code = $5, misdirected = $6,
                settled_at = clock_timestamp()
         where id = $1 and status = $2",
    )
    .bind(payment.id.uuid())
    .bind(payment.status.as_str())
    .bind(outcome.status().as_str())
    .bind(outcome.charge_id())
    .bind(code)
    .bind(misdirected)
    .execute(conn)
    .await?;
    Ok(settled.rows_affected() == 1)
}

/// Deletes a payment that was never sent.
pub async fn delete_unsent(conn: &mut PgConnection, id: PaymentId) -> sqlx::Result<bool> {
    let deleted = sqlx::query("delete from payment where id = $1 and status = 'processing'")
        .bind(id.uuid())
        .execute(conn)
        .await?;
    Ok(deleted.rows_affected() == 1)
}

/// Writes a balanced entry.
pub async fn post(
    conn: &mut PgConnection,
    transaction: Uuid,
    entry: &Entry,
    payment: PaymentId,
    refund: Option<RefundId>,
) -> sqlx::Result<()> {
    for posting in entry.postings() {
        sqlx::query(
            "insert into ledger_posting (transaction_id, account, amount, currency, payment_id, refund_id)
             values ($1, $2, $3, $4, $5, $6)",
        )
        .bind(transaction)
        .bind(posting.account.as_str())
        .bind(posting.amount)
        .bind(posting.currency.code())
        .bind(payment.uuid())
        .bind(refund.map(RefundId::uuid))
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}
