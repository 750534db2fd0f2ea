//! Mails: one receipt for an order, one notice for a refund.

pub mod deliver;
pub mod smtp;
pub mod sql;

use domain::{Money, ReceiptId, RefundId};
use sqlx::{PgConnection, Row};
use time::OffsetDateTime;

use crate::app::App;
use crate::orders::{self, Order};

/// A receipt that is queued or was sent.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// Its id.
    pub id: ReceiptId,
    /// Where it goes.
    pub to: String,
    /// When it was queued.
    pub created_at: OffsetDateTime,
}

/// Queues the order's one receipt, or finds the one that was queued before. `None`: nobody to
/// write to.
pub async fn queue_receipt(
    conn: &mut PgConnection,
    app: &App,
    order: &Order,
) -> sqlx::Result<Option<Receipt>> {
    let Some(to) = &order.email else { return Ok(None) };
    let id = ReceiptId::from_uuid(app.clock.new_id());
    let lines = orders::sql::lines(conn, order.id).await?;
    let goods: Vec<String> = lines
        .iter()
        .map(|line| format!("{} x {}  {}", line.quantity, line.name, line.line_total))
        .collect();
    let goods = goods.join("\n");
    let text = format!(
        "Thank you. You paid {} once.\n\n{goods}\n\nTotal  {}\nOrder  {}\n",
        order.total, order.total, order.id
    );
    let row = sqlx::query(
        "with queued as (
             insert into mail (id, account_id, order_id, kind, subject_id, message_id, recipient,
                               subject, body)
             values ($1, $2, $3, 'receipt', $3, $4, $5, $6, $7)
             on conflict on constraint mail_once do nothing
             returning id, recipient, created_at
         )
         select id, recipient, created_at from queued
         union all
         select id, recipient, created_at from mail where kind = 'receipt' and subject_id = $3
         limit 1",
    )
    .bind(id.uuid())
    .bind(order.account_id.uuid())
    .bind(order.id.uuid())
    .bind(format!("<{id}@payonce.test>"))
    .bind(to)
    .bind(format!("Your receipt for {}", order.total))
    .bind(text)
    .fetch_one(conn)
    .await?;
    Ok(Some(Receipt {
        id: ReceiptId::from_uuid(row.try_get("id")?),
        to: row.try_get("recipient")?,
        created_at: row.try_get("created_at")?,
    }))
}

/// Queues the one notice of a refund, where there is somebody to write to.
pub async fn queue_refund_notice(
    conn: &mut PgConnection,
    app: &App,
    order: &Order,
    refund: RefundId,
    amount: Money,
) -> sqlx::Result<()> {
    let Some(to) = &order.email else { return Ok(()) };
    let text =
        format!("{amount} went back to you, once.\n\nOrder   {}\nRefund  {refund}\n", order.id);
    sqlx::query(
        "insert into mail (id, account_id, order_id, kind, subject_id, message_id, recipient,
                           subject, body)
         values ($1, $2, $3, 'refund_notice', $4, $5, $6, $7, $8)
         on conflict on constraint mail_once do nothing",
    )
    .bind(app.clock.new_id())
    .bind(order.account_id.uuid())
    .bind(order.id.uuid())
    .bind(refund.uuid())
    .bind(format!("<{refund}@payonce.test>"))
    .bind(to)
    .bind(format!("Your refund of {amount}"))
    .bind(text)
    .execute(conn)
    .await?;
    Ok(())
}
