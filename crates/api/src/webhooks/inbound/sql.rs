//! Statements about events that were taken in.

use domain::PaymentId;
use idempotency::Identity;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::payments::Payment;

/// Marks an event as taken in. Waits for a copy that is being worked on; `false`: it was before.
pub async fn insert(
    conn: &mut PgConnection,
    id: &str,
    kind: &str,
    provider_key: Option<&str>,
    body: &[u8],
) -> sqlx::Result<bool> {
    let inserted = sqlx::query(
        "insert into provider_event (id, kind, provider_key, outcome, body)
         values ($1, $2, $3, 'received', $4)
         on conflict on constraint provider_event_pkey do nothing",
    )
    .bind(id)
    .bind(kind)
    .bind(provider_key)
    .bind(body)
    .execute(conn)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Writes down what was made of it.
pub async fn set_outcome(conn: &mut PgConnection, id: &str, outcome: &str) -> sqlx::Result<()> {
    sqlx::query("update provider_event set outcome = $2 where id = $1")
        .bind(id)
        .bind(outcome)
        .execute(conn)
        .await?;
    Ok(())
}

/// The payment that a charge of the provider settled.
pub async fn payment_of_charge(
    conn: &mut PgConnection,
    charge_id: Option<&str>,
) -> sqlx::Result<Option<PaymentId>> {
    let id: Option<Uuid> = sqlx::query_scalar("select id from payment where charge_id = $1")
        .bind(charge_id)
        .fetch_optional(conn)
        .await?;
    Ok(id.map(PaymentId::from_uuid))
}

/// Whether a refund of the provider was written down before, by its own id.
pub async fn is_refund_known(
    conn: &mut PgConnection,
    provider_refund_id: &str,
) -> sqlx::Result<bool> {
    sqlx::query_scalar("select exists (select from refund where provider_refund_id = $1)")
        .bind(provider_refund_id)
        .fetch_one(conn)
        .await
}

/// Inserts a payment that nobody is waiting for, settled as it comes.
pub async fn insert_stray(
    conn: &mut PgConnection,
    payment: &Payment,
    made_by: &Identity,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into payment (id, order_id, account_id, made_by, key, provider_key, status, amount,
                              currency, payment_method, charge_id, misdirected, created_at,
                              settled_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, true, $12, clock_timestamp())",
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
    .bind(payment.charge_id.as_deref())
    .bind(payment.created_at)
    .execute(conn)
    .await?;
    Ok(())
}
