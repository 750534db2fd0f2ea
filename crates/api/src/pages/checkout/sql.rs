//! What the checkout asks about keys.

use idempotency::{Key, Scope};
use sqlx::postgres::PgConnection;

/// Whether a key ended in a refusal. Trying again then takes another one.
pub(super) async fn was_refused(
    conn: &mut PgConnection,
    scope: &Scope,
    key: &Key,
) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        "select exists (select from idempotency_record
                        where scope = $1 and key = $2 and state = 'failed')",
    )
    .bind(scope.as_bytes())
    .bind(key.as_str())
    .fetch_one(conn)
    .await
}
