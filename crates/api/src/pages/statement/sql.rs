//! Statements about the ledger, for those who look.

use domain::{Currency, LedgerAccount, Money, OrderId, PaymentId, RefundId};
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};
use time::OffsetDateTime;
use uuid::Uuid;

use super::ON_A_SHEET;
use crate::catalog::sql::money;
use crate::orders::sql::word;

/// What one sheet is drawn from.
pub(super) struct Sheet {
    pub(super) account: LedgerAccount,
    pub(super) currency: Currency,
    /// What the account came to before the first entry.
    pub(super) opening: Money,
    /// Oldest first.
    pub(super) postings: Vec<Posting>,
    /// There are older ones.
    pub(super) more: bool,
    /// There is no newer one.
    pub(super) newest: bool,
    /// Every account in every currency.
    pub(super) balances: Vec<(LedgerAccount, Money)>,
}

/// One posting, and what it is about.
pub(super) struct Posting {
    pub(super) id: i64,
    pub(super) at: OffsetDateTime,
    pub(super) order: OrderId,
    pub(super) payment: PaymentId,
    pub(super) refund: Option<RefundId>,
    pub(super) amount: Money,
}

/// All figures of one moment: `tx` is a transaction in which nothing was asked yet.
pub(super) async fn sheet(
    tx: &mut PgConnection,
    account: LedgerAccount,
    currency: Option<Currency>,
    before: Option<i64>,
) -> sqlx::Result<Sheet> {
    sqlx::query("set transaction isolation level repeatable read, read only")
        .execute(&mut *tx)
        .await?;
    let balances = balances(tx).await?;
    let first = balances.first().map_or(Currency::Usd, |(_, balance)| balance.currency);
    let currency = currency.unwrap_or(first);
    let mut postings = newest_first(tx, account, currency, before).await?;
    let more = postings.len() > ON_A_SHEET;
    postings.truncate(ON_A_SHEET);
    postings.reverse();
    let opening = match postings.first().map(|posting| posting.id).or(before) {
        Some(id) => sum_before(tx, account, currency, id).await?,
        None => Money::zero(currency),
    };
    Ok(Sheet { account, currency, opening, postings, more, newest: before.is_none(), balances })
}

async fn newest_first(
    conn: &mut PgConnection,
    account: LedgerAccount,
    currency: Currency,
    before: Option<i64>,
) -> sqlx::Result<Vec<Posting>> {
    let rows = sqlx::query(
        "select l.id, l.created_at, l.amount, l.currency, l.payment_id, l.refund_id, p.order_id
         from ledger_posting l join payment p on p.id = l.payment_id
         where l.account = $1 and l.currency = $2 and ($3::bigint is null or l.id < $3)
         order by l.id desc limit $4",
    )
    .bind(account.as_str())
    .bind(currency.code())
    .bind(before)
    .bind(i64::try_from(ON_A_SHEET + 1).unwrap_or(i64::MAX))
    .fetch_all(conn)
    .await?;
    rows.iter().map(posting).collect()
}

fn posting(row: &PgRow) -> sqlx::Result<Posting> {
    let refund: Option<Uuid> = row.try_get("refund_id")?;
    Ok(Posting {
        id: row.try_get("id")?,
        at: row.try_get("created_at")?,
        order: OrderId::from_uuid(row.try_get("order_id")?),
        payment: PaymentId::from_uuid(row.try_get("payment_id")?),
        refund: refund.map(RefundId::from_uuid),
        amount: money(row, "amount")?,
    })
}

async fn sum_before(
    conn: &mut PgConnection,
    account: LedgerAccount,
    currency: Currency,
    id: i64,
) -> sqlx::Result<Money> {
    let sum = sqlx::query_scalar(
        "select coalesce(sum(amount), 0)::bigint from ledger_posting
         where account = $1 and currency = $2 and id < $3",
    )
    .bind(account.as_str())
    .bind(currency.code())
    .bind(id)
    .fetch_one(conn)
    .await?;
    Ok(Money::new(sum, currency))
}

async fn balances(conn: &mut PgConnection) -> sqlx::Result<Vec<(LedgerAccount, Money)>> {
    let rows = sqlx::query(
        "select account, currency, sum(amount)::bigint as balance, min(min(id)) over by_currency as nth
         from ledger_posting group by account, currency
         window by_currency as (partition by currency)
         order by nth, account",
    )
    .fetch_all(conn)
    .await?;
    rows.iter().map(|row| Ok((word(row.try_get("account")?)?, money(row, "balance")?))).collect()
}
