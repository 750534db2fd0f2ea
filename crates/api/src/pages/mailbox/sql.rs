//! Statements about mails, for those who look.

use domain::AccountId;
use sqlx::Row;
use sqlx::postgres::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Delivery, Mail};

/// The newest mails to an account, or to all.
pub(super) async fn newest(
    conn: &mut PgConnection,
    account: Option<AccountId>,
) -> sqlx::Result<Vec<Mail>> {
    let rows = sqlx::query(
        "select id, recipient, subject, body, state, coalesce(sent_at, created_at) as at
         from mail where $1::uuid is null or account_id = $1
         order by id desc limit 100",
    )
    .bind(account.map(AccountId::uuid))
    .fetch_all(conn)
    .await?;
    rows.iter()
        .map(|row| {
            let (id, at): (Uuid, OffsetDateTime) = (row.try_get("id")?, row.try_get("at")?);
            Ok(Mail {
                id: format!("mail-{}", id.simple()),
                to: row.try_get("recipient")?,
                subject: row.try_get("subject")?,
                body: row.try_get("body")?,
                at: at.into(),
                delivery: match row.try_get("state")? {
                    "sent" => Delivery::Sent,
                    "dead" => Delivery::Dead,
                    _ => Delivery::Queued,
                },
            })
        })
        .collect()
}
