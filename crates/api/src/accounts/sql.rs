//! Statements about accounts and sessions.

use domain::AccountId;
use idempotency::Identity;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{FromRow, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Account, Role};

impl<'r> FromRow<'r, PgRow> for Account {
    fn from_row(row: &'r PgRow) -> sqlx::Result<Self> {
        let role: &str = row.try_get("role")?;
        Ok(Self {
            id: AccountId::from_uuid(row.try_get("id")?),
            role: Role::from_stored(role)
                .ok_or_else(|| sqlx::Error::Decode("account.role is unknown".into()))?,
            email: row.try_get("email")?,
            name: row.try_get("name")?,
            created_at: row.try_get("created_at")?,
        })
    }
}

/// Inserts an account with e-mail and password, made under a key or by set-up.
pub async fn insert(
    conn: &mut PgConnection,
    account: &Account,
    password_hash: &str,
    made_by: Option<&Identity>,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into account (id, role, email, password_hash, name, created_at, made_by, key)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(account.id.uuid())
    .bind(account.role.as_str())
    .bind(account.email.as_deref())
    .bind(password_hash)
    .bind(account.name.as_deref())
    .bind(account.created_at)
    .bind(made_by.map(|identity| identity.scope.as_bytes()))
    .bind(made_by.map(|identity| identity.key.as_str()))
    .execute(conn)
    .await?;
    Ok(())
}

/// Inserts an account that is known by its cookie only.
pub async fn insert_guest(
    conn: &mut PgConnection,
    id: Uuid,
    created_at: OffsetDateTime,
) -> sqlx::Result<()> {
    sqlx::query("insert into account (id, role, created_at) values ($1, 'guest', $2)")
        .bind(id)
        .bind(created_at)
        .execute(conn)
        .await?;
    Ok(())
}

/// The account with an e-mail in lower case, and its password hash.
pub async fn by_email(
    conn: &mut PgConnection,
    email: &str,
) -> sqlx::Result<Option<(Account, String)>> {
    let row = sqlx::query(
        "select id, role, email, name, created_at, password_hash from account where email = $1",
    )
    .bind(email)
    .fetch_optional(conn)
    .await?;
    row.map(|row| Ok((Account::from_row(&row)?, row.try_get("password_hash")?))).transpose()
}

/// The account behind the hash of a token that has not expired.
pub async fn by_session(
    conn: &mut PgConnection,
    token_hash: &[u8],
    kind: &str,
) -> sqlx::Result<Option<Account>> {
    sqlx::query_as(
        "select a.id, a.role, a.email, a.name, a.created_at
         from session s join account a on a.id = s.account_id
         where s.token_hash = $1 and s.kind = $2 and s.expires_at > clock_timestamp()",
    )
    .bind(token_hash)
    .bind(kind)
    .fetch_optional(conn)
    .await
}

/// Opens a session.
pub async fn insert_session(
    conn: &mut PgConnection,
    token_hash: &[u8],
    account: AccountId,
    kind: &str,
    (created_at, expires_at): (OffsetDateTime, OffsetDateTime),
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into session (token_hash, account_id, kind, created_at, expires_at)
         values ($1, $2, $3, $4, $5)",
    )
    .bind(token_hash)
    .bind(account.uuid())
    .bind(kind)
    .bind(created_at)
    .bind(expires_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Closes a session.
pub async fn delete_session(conn: &mut PgConnection, token_hash: &[u8]) -> sqlx::Result<()> {
    sqlx::query("delete from session where token_hash = $1").bind(token_hash).execute(conn).await?;
    Ok(())
}
