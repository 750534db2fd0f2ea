//! What leaves a business transaction: events and mails, written inside it, delivered later.
//!
//! Plain inserts. Nothing here notifies, queues or sends: a transaction that is rolled back leaves
//! nothing outside, and one that commits loses nothing.

use domain::{EventId, PaymentId, RefundId};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::app::App;
use crate::mail;
use crate::money::MoneyBody;
use crate::orders::Order;
use crate::payments::Payment;

/// The order was paid: an event for merchants, a receipt for the buyer.
pub async fn order_paid(
    conn: &mut PgConnection,
    app: &App,
    order: &Order,
    payment: &Payment,
) -> sqlx::Result<()> {
    let data = json!({
        "order_id": order.id, "payment_id": payment.id, "amount": MoneyBody::from(payment.amount),
    });
    event(conn, app, "order.paid", order.id.uuid(), order, data).await?;
    mail::queue_receipt(conn, app, order).await.map(|_| ())
}

/// The order was cancelled.
pub async fn order_cancelled(
    conn: &mut PgConnection,
    app: &App,
    order: &Order,
) -> sqlx::Result<()> {
    let data = json!({ "order_id": order.id });
    event(conn, app, "order.cancelled", order.id.uuid(), order, data).await
}

/// A payment was declined.
pub async fn payment_declined(
    conn: &mut PgConnection,
    app: &App,
    order: &Order,
    payment: PaymentId,
    code: &str,
) -> sqlx::Result<()> {
    let data = json!({ "order_id": order.id, "payment_id": payment, "code": code });
    event(conn, app, "payment.declined", payment.uuid(), order, data).await
}

/// Money went back: an event for merchants, a notice for the buyer.
pub async fn refund_succeeded(
    conn: &mut PgConnection,
    app: &App,
    order: &Order,
    refund: RefundId,
    amount: domain::Money,
) -> sqlx::Result<()> {
    let data = json!({
        "order_id": order.id, "refund_id": refund, "amount": MoneyBody::from(amount),
    });
    event(conn, app, "refund.succeeded", refund.uuid(), order, data).await?;
    mail::queue_refund_notice(conn, app, order, refund, amount).await
}

/// One event, and a delivery to each endpoint that listens to its kind.
async fn event(
    conn: &mut PgConnection,
    app: &App,
    kind: &str,
    subject: Uuid,
    order: &Order,
    data: Value,
) -> sqlx::Result<()> {
    let id = EventId::from_uuid(app.clock.new_id());
    let created_at = app.clock.now();
    let body = json!({
        "id": id,
        "type": kind,
        "created_at": created_at
            .format(&time::format_description::well_known::Rfc3339)
            .map_err(|error| sqlx::Error::Encode(Box::new(error)))?,
        "data": data,
    });
    sqlx::query(
        "with made as (
             insert into event (id, kind, subject_id, order_id, body) values ($1, $2, $3, $4, $5)
             returning id
         )
         insert into delivery (event_id, endpoint_id)
         select made.id, e.id from made, webhook_endpoint e
         join account owner on owner.id = e.account_id
         where e.deleted_at is null and owner.role = 'merchant' and $2 = any (e.events)",
    )
    .bind(id.uuid())
    .bind(kind)
    .bind(subject)
    .bind(order.id.uuid())
    .bind(body.to_string().into_bytes())
    .execute(conn)
    .await?;
    Ok(())
}
