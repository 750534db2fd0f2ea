//! The one statement that places an order: goods, order, lines and the finished record, or nothing.
//!
//! One round trip instead of seven: begin, lock, update, three inserts, commit. It reads from top
//! to bottom:
//!
//! | part | what it does |
//! |---|---|
//! | `wanted` | the basket, one row a line |
//! | `locked` | locks the products in id order, so that two baskets cannot deadlock |
//! | `taken` | takes the goods where price and stock still are what was counted on |
//! | `placed`, `lined` | the order, its lines |
//! | main query | the finished record, with status 0 if a line could not be taken |
//!
//! The main query is where it begins: before it counts what was taken, it shows that somebody is at
//! this key. Status 0 violates the check `idempotency_record_effects_complete`, which undoes everything. A
//! concurrent duplicate waits for the first on the products' locks, then violates the record's
//! primary key, which undoes everything too. The rules stay in `domain`: it merged and priced the
//! basket that is written down here. Do not split the statement, and do not add `on conflict`:
//! either would let half of it stand.

use domain::PricedLine;
use idempotency::postgres::presence;
use idempotency::{Claim, Reply};
use sqlx::PgConnection;
use sqlx::postgres::PgArguments;
use time::OffsetDateTime;
use uuid::Uuid;

use super::Order;
use super::create::Create;
use crate::operation::Operation as _;

/// An order that is ready to be written.
pub struct Placing<'a> {
    /// The order as it will be.
    pub order: &'a Order,
    /// Its lines, with the number of each product's row.
    pub lines: &'a [(i32, PricedLine)],
    /// The cart it consumes.
    pub cart: Option<Uuid>,
    /// How long the reply is kept, in milliseconds.
    pub retention_ms: f64,
}

/// The statement, around its basket, how it locks, and its main query.
macro_rules! placing {
    (wanted $wanted:literal, locked $locked:literal, $main:literal) => {
        concat!(
            "with wanted as ",
            $wanted,
            ", locked as ",
            $locked,
            r#",
            taken as (
                update product p set stock = p.stock - w.quantity
                from wanted w join locked on locked.id = w.product_id
                where p.id = w.product_id and p.price = w.unit_price and p.stock >= w.quantity
                returning p.id
            ),
            placed as (
                insert into "order" (id, account_id, made_by, key, cart_id, status, total, currency,
                                     email, note, created_at, reserved_until)
                values ($3, $4, $1, $2, $5, 'pending', $6, $7, $8, $9, $10, $11)
            ),
            lined as (
                insert into order_line (order_id, position, product_id, sku, name, quantity,
                                        unit_price, line_total)
                select $3, w.position, w.product_id, w.sku, w.name, w.quantity, w.unit_price,
                       w.quantity * w.unit_price
                from wanted w
            )
            "#,
            $main
        )
    };
}

/// The two forms of a statement. A single product needs no order to be locked in, and its line is
/// put where it is used instead of being a table of one row: a twentieth of the order's cost.
///
/// `limit` says what cannot be guessed: a basket is small. Without it the whole catalogue would be
/// read for each order.
macro_rules! placing_lines {
    ($lines:expr, $main:literal) => {
        match $lines {
            [_] => placing!(
                wanted
                "not materialized (
                    select ($12::int[])[1] as product_id, ($13::text[])[1] as sku,
                           ($14::text[])[1] as name, ($15::int[])[1] as quantity,
                           ($16::bigint[])[1] as unit_price, 1 as position
                )",
                locked
                "not materialized (select w.product_id as id from wanted w)",
                $main
            ),
            _ => placing!(
                wanted
                "materialized (
                    select * from unnest($12::int[], $13::text[], $14::text[], $15::int[], $16::bigint[])
                        with ordinality as w (product_id, sku, name, quantity, unit_price, position)
                    limit cardinality($12)
                )",
                locked
                "materialized (
                    select p.id from wanted w join product p on p.id = w.product_id
                    order by p.id for update of p
                )",
                $main
            ),
        }
    };
}

/// Places an order under its key. Returns when the reply expires.
///
/// # Errors
/// `idempotency_record_pkey` when the key has a record, `order_made_by_key` when its record was
/// swept, `idempotency_record_effects_complete` when price or stock do not allow it,
/// `order_cart_id_key` when the cart was ordered under another key.
pub async fn place(
    conn: &mut PgConnection,
    claim: &Claim,
    placing: &Placing<'_>,
    reply: &Reply,
) -> sqlx::Result<OffsetDateTime> {
    let statement = sqlx::query_scalar(placing_lines!(
        placing.lines,
        "insert into idempotency_record
            (scope, key, fingerprint, marks, operation, state, resource, created_at, finished_at,
             expires_at, status, headers, body)
        select $1, $2, $18, $19, $20, 'completed', $21, t, t, t + $22 * interval '1 millisecond',
               case when (select count(*) from taken) = cardinality($12) then 201 else 0 end, $23, $24
        from pg_advisory_xact_lock_shared($17), clock_timestamp() t
        returning expires_at"
    ));
    placing
        .bind(statement, claim.identity.scope.as_bytes(), claim.identity.key.as_str())
        .bind(presence::number(&claim.identity))
        .bind(&claim.fingerprint.0[..])
        .bind(claim.marks.as_bytes())
        .bind(Create::NAME)
        .bind(placing.order.path())
        .bind(placing.retention_ms)
        .bind(reply.encode_headers())
        .bind(&reply.body()[..])
        .fetch_one(conn)
        .await
}

/// The same without a record, to measure what the record costs.
///
/// # Errors
/// `division_by_zero` when price or stock do not allow it.
#[cfg(feature = "bench")]
pub async fn place_unguarded(
    conn: &mut PgConnection,
    scope: &idempotency::Scope,
    placing: &Placing<'_>,
) -> sqlx::Result<()> {
    let statement = sqlx::query_scalar(placing_lines!(
        placing.lines,
        "select 1 / (case when (select count(*) from taken) = cardinality($12) then 1 else 0 end)"
    ));
    let key = placing.order.id.to_string();
    let _: i32 = placing.bind(statement, scope.as_bytes(), &key).fetch_one(conn).await?;
    Ok(())
}

type Statement<'q, T> = sqlx::query::QueryScalar<'q, sqlx::Postgres, T, PgArguments>;

impl Placing<'_> {
    /// The parameters that both forms share: $1 to $16.
    fn bind<'q, T>(
        &'q self,
        statement: Statement<'q, T>,
        made_by: &'q [u8],
        key: &'q str,
    ) -> Statement<'q, T> {
        let (order, lines) = (self.order, Columns::of(self.lines));
        statement
            .bind(made_by)
            .bind(key)
            .bind(order.id.uuid())
            .bind(order.account_id.uuid())
            .bind(self.cart)
            .bind(order.total.amount)
            .bind(order.total.currency.code())
            .bind(order.email.as_deref())
            .bind(order.note.as_deref())
            .bind(order.created_at)
            .bind(order.reserved_until)
            .bind(lines.ids)
            .bind(lines.skus)
            .bind(lines.names)
            .bind(lines.quantities)
            .bind(lines.unit_prices)
    }
}

/// Lines as Postgres takes them: an array for each column.
#[derive(Default)]
struct Columns {
    ids: Vec<i32>,
    skus: Vec<String>,
    names: Vec<String>,
    quantities: Vec<i32>,
    unit_prices: Vec<i64>,
}

impl Columns {
    fn of(lines: &[(i32, PricedLine)]) -> Self {
        let mut columns = Self::default();
        for (id, line) in lines {
            columns.ids.push(*id);
            columns.skus.push(line.sku.as_str().to_owned());
            columns.names.push(line.name.clone());
            columns.quantities.push(line.quantity.get().cast_signed());
            columns.unit_prices.push(line.unit_price.amount);
        }
        columns
    }
}
