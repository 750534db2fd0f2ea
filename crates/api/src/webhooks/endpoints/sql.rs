//! Statements about endpoints.

use domain::{AccountId, WebhookEndpointId};
use idempotency::Identity;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};

use super::{Endpoint, EventKind};

impl<'r> FromRow<'r, PgRow> for Endpoint {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        let events: Vec<String> = row.try_get("events")?;
        Ok(Self {
            id: WebhookEndpointId::from_uuid(row.try_get("id")?),
            url: row.try_get("url")?,
            events: events.iter().filter_map(|kind| EventKind::from_stored(kind)).collect(),
            created_at: row.try_get("created_at")?,
        })
    }
}

/// Inserts an endpoint.
pub async fn insert(
    conn: &mut PgConnection,
    endpoint: &Endpoint,
    account: AccountId,
    made_by: &Identity,
    sealed_secret: &[u8],
) -> sqlx::Result<()> {
    let events: Vec<&str> = endpoint.events.iter().map(|kind| kind.as_str()).collect();
    sqlx::query(
        "insert into webhook_endpoint
             (id, account_id, made_by, key, url, events, sealed_secret, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(endpoint.id.uuid())
    .bind(account.uuid())
    .bind(made_by.scope.as_bytes())
    .bind(made_by.key.as_str())
    .bind(&endpoint.url)
    .bind(events)
    .bind(sealed_secret)
    .bind(endpoint.created_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// One endpoint of an account with its sealed secret, unless it is deleted.
pub async fn get(
    conn: &mut PgConnection,
    account: AccountId,
    id: WebhookEndpointId,
) -> sqlx::Result<Option<(Endpoint, Vec<u8>)>> {
    let row = sqlx::query(
        "select id, url, events, created_at, sealed_secret from webhook_endpoint
         where id = $1 and account_id = $2 and deleted_at is null",
    )
    .bind(id.uuid())
    .bind(account.uuid())
    .fetch_optional(conn)
    .await?;
    row.map(|row| Ok((Endpoint::from_row(&row)?, row.try_get("sealed_secret")?))).transpose()
}

/// Endpoints of an account before an id, newest first.
pub async fn page(
    conn: &mut PgConnection,
    account: AccountId,
    before: Option<WebhookEndpointId>,
    limit: i64,
) -> sqlx::Result<Vec<Endpoint>> {
    sqlx::query_as(
        "select id, url, events, created_at from webhook_endpoint
         where account_id = $1 and deleted_at is null and ($2::uuid is null or id < $2)
         order by id desc limit $3",
    )
    .bind(account.uuid())
    .bind(before.map(WebhookEndpointId::uuid))
    .bind(limit)
    .fetch_all(conn)
    .await
}

/// Marks an endpoint as deleted and forgets its secret. `false`: it is not there (any more).
pub async fn delete(
    conn: &mut PgConnection,
    account: AccountId,
    id: WebhookEndpointId,
) -> sqlx::Result<bool> {
    let deleted = sqlx::query(
        "update webhook_endpoint set deleted_at = clock_timestamp(), sealed_secret = ''
         where id = $1 and account_id = $2 and deleted_at is null",
    )
    .bind(id.uuid())
    .bind(account.uuid())
    .execute(conn)
    .await?;
    Ok(deleted.rows_affected() == 1)
}
