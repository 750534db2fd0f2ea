//! What a key made, after its record is gone: resources remember who made them, and under which key.

use domain::{AccountId, OrderId, PaymentId, RefundId, StockMovementId, WebhookEndpointId};
use idempotency::{Identity, Scope};
use sqlx::{PgConnection, Row};
use time::OffsetDateTime;
use uuid::Uuid;

/// Something that a key made.
pub struct Made {
    /// Where it can be seen.
    pub path: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

/// The resource that this identity made, if any.
///
/// # Errors
/// Those of the database.
pub async fn resource(
    connection: &mut PgConnection,
    identity: &Identity,
) -> sqlx::Result<Option<Made>> {
    let row = sqlx::query(
        r#"select 'order' as kind, id, null as sku, created_at from "order" where made_by = $1 and key = $2
           union all
           select 'payment', id, null, created_at from payment where made_by = $1 and key = $2
           union all
           select 'refund', id, null, created_at from refund where made_by = $1 and key = $2
           union all
           select 'account', id, null, created_at from account where made_by = $1 and key = $2
           union all
           select 'stock_movement', m.id, p.sku, m.created_at from stock_movement m
           join product p on p.id = m.product_id where m.made_by = $1 and m.key = $2
           union all
           select 'webhook_endpoint', id, null, created_at from webhook_endpoint
           where made_by = $1 and key = $2
           limit 1"#,
    )
    .bind(identity.scope.as_bytes())
    .bind(identity.key.as_str())
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let (kind, id): (&str, Uuid) = (row.try_get("kind")?, row.try_get("id")?);
    let path = match kind {
        "order" => format!("/v1/orders/{}", OrderId::from_uuid(id)),
        "payment" => format!("/v1/payments/{}", PaymentId::from_uuid(id)),
        "refund" => format!("/v1/refunds/{}", RefundId::from_uuid(id)),
        "account" => format!("/v1/accounts/{}", AccountId::from_uuid(id)),
        "webhook_endpoint" => format!("/v1/webhook-endpoints/{}", WebhookEndpointId::from_uuid(id)),
        _ => {
            let sku: &str = row.try_get("sku")?;
            format!("/v1/products/{sku}/stock-movements/{}", StockMovementId::from_uuid(id))
        }
    };
    Ok(Some(Made { path, created_at: row.try_get("created_at")? }))
}

/// Whether an order, or the order of a payment, belongs to this account or was made by it. Signing in
/// moves what a guest owns, and nobody can move what he made.
///
/// # Errors
/// Those of the database.
pub async fn is_own(
    connection: &mut PgConnection,
    object: Uuid,
    account: AccountId,
    scope: &Scope,
) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        r#"select exists (
               select from "order" where id = $1 and (account_id = $2 or made_by = $3)
               union all
               select from payment p join "order" o on o.id = p.order_id
               where p.id = $1 and (o.account_id = $2 or o.made_by = $3)
           )"#,
    )
    .bind(object)
    .bind(account.uuid())
    .bind(scope.as_bytes())
    .fetch_one(connection)
    .await
}
