//! What only the database can tell, looked up once in a while: backlogs, sizes, invariants.
//!
//! Every query reads an index or a bounded tail, so that looking stays cheap however much there is.
//! Every process reports the same, so rules over these take the maximum.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::metrics::{INVARIANTS, OUTBOXES, float};
use crate::app::App;

/// Looks once and sets the gauges.
///
/// # Errors
/// Those of the database.
pub async fn run_once(app: &App) -> sqlx::Result<usize> {
    let mut conn = app.db.connection().await?;
    let looked = look(&mut conn).await;
    conn.end(looked)?;
    Ok(0)
}

async fn look(conn: &mut PgConnection) -> sqlx::Result<()> {
    unfinished(conn).await?;
    swept_table(conn).await?;
    for outbox in OUTBOXES {
        waiting(conn, outbox).await?;
    }
    for invariant in INVARIANTS {
        let broken = violations(conn, invariant).await?;
        metrics::gauge!("payonce_invariant_violations", "invariant" => *invariant)
            .set(float(broken));
        if broken > 0 {
            tracing::error!(invariant, broken, "an invariant of money is broken");
        }
    }
    Ok(())
}

/// How often recent money breaks a rule.
///
/// # Errors
/// Those of the database.
pub async fn violations(conn: &mut PgConnection, invariant: &str) -> sqlx::Result<i64> {
    sqlx::query_scalar(query_of(invariant)).fetch_one(conn).await
}

async fn unfinished(conn: &mut PgConnection) -> sqlx::Result<()> {
    let row = sqlx::query(
        "select count(*) as unfinished,
                count(*) filter (where state = 'unknown') as unknown,
                coalesce(extract(epoch from clock_timestamp() - min(created_at)
                    filter (where state = 'unknown')), 0)::float8 as oldest
         from idempotency_record where state in ('processing', 'unknown')",
    )
    .fetch_one(conn)
    .await?;
    set("payonce_unfinished_records", &row, "unfinished")?;
    set("payonce_unknown_outcomes", &row, "unknown")?;
    metrics::gauge!("payonce_unknown_outcome_oldest_seconds").set(row.try_get::<f64, _>("oldest")?);
    Ok(())
}

async fn swept_table(conn: &mut PgConnection) -> sqlx::Result<()> {
    let row = sqlx::query(
        "select pg_total_relation_size('idempotency_record') as bytes,
                coalesce((select n_live_tup from pg_stat_user_tables
                          where relid = 'idempotency_record'::regclass), 0)::bigint as rows,
                coalesce((select extract(epoch from clock_timestamp() - expires_at)
                          from idempotency_record
                          where state in ('completed', 'failed')
                            and expires_at <= statement_timestamp()
                          order by expires_at limit 1), 0)::float8 as lag",
    )
    .fetch_one(conn)
    .await?;
    let table = "idempotency_record";
    let (bytes, rows): (i64, i64) = (row.try_get("bytes")?, row.try_get("rows")?);
    metrics::gauge!("payonce_table_bytes", "table" => table).set(float(bytes));
    metrics::gauge!("payonce_table_rows", "table" => table).set(float(rows));
    metrics::gauge!("payonce_sweep_lag_seconds").set(row.try_get::<f64, _>("lag")?);
    Ok(())
}

async fn waiting(conn: &mut PgConnection, outbox: &'static str) -> sqlx::Result<()> {
    let statement = match outbox {
        "mail" => {
            "select count(*) filter (where state = 'queued') as pending,
                    count(*) filter (where state = 'dead') as dead,
                    coalesce(extract(epoch from clock_timestamp() - min(created_at)
                        filter (where state = 'queued')), 0)::float8 as oldest
             from mail where state in ('queued', 'dead')"
        }
        _ => {
            "select count(*) filter (where state = 'queued') as pending,
                    count(*) filter (where state = 'dead') as dead,
                    coalesce(extract(epoch from clock_timestamp() - min(created_at)
                        filter (where state = 'queued')), 0)::float8 as oldest
             from delivery where state in ('queued', 'dead')"
        }
    };
    let row = sqlx::query(statement).fetch_one(conn).await?;
    let (pending, dead): (i64, i64) = (row.try_get("pending")?, row.try_get("dead")?);
    metrics::gauge!("payonce_outbox_pending", "outbox" => outbox).set(float(pending));
    metrics::gauge!("payonce_outbox_dead", "outbox" => outbox).set(float(dead));
    metrics::gauge!("payonce_outbox_oldest_seconds", "outbox" => outbox)
        .set(row.try_get::<f64, _>("oldest")?);
    Ok(())
}

fn set(gauge: &'static str, row: &PgRow, column: &str) -> sqlx::Result<()> {
    metrics::gauge!(gauge).set(float(row.try_get(column)?));
    Ok(())
}

/// Recent means the last two thousand postings, a tail that costs the same in every size.
fn query_of(invariant: &str) -> &'static str {
    match invariant {
        "double_capture" => {
            "select count(*) from (
                 select p.order_id from payment p
                 where p.status = 'succeeded' and not p.misdirected and p.order_id in (
                     select o.order_id from payment o where o.id in (
                         select payment_id from ledger_posting order by id desc limit 2000))
                 group by p.order_id having count(*) > 1) as twice"
        }
        "ledger_sum" => {
            "select count(*) from (
                 select transaction_id from ledger_posting
                 where transaction_id in (
                     select transaction_id from ledger_posting order by id desc limit 2000)
                 group by transaction_id, currency having sum(amount) <> 0) as unbalanced"
        }
        // Both commit together, so not one may be missing. Ids begin with the time.
        _ => {
            "select count(*) from (
                 select id, status from payment order by id desc limit 2000) as recent
             where status = 'succeeded' and not exists (
                 select from ledger_posting l where l.payment_id = recent.id)"
        }
    }
}
