//! Create an order: one key, at most one order, the goods set aside with it.
//!
//! The basket is priced in process and written in one statement (`place.rs`). Whatever that
//! statement refuses is looked at again (`look_again`): another price, or too little stock. If it
//! could be had after all, it is taken in turn, with the goods locked before they are looked at:
//! nobody is sent away because goods come and go.

use std::collections::HashMap;
use std::time::Duration;

use actix_web::HttpResponse;
use domain::{Basket, CartId, Money, OrderId, OrderStatus, PricedLine, PricedOrder, Sku};
use idempotency::postgres::{self, Ending};
use idempotency::reply::ReplyHeader;
use idempotency::{Claim, Finished, Outcome, Reply};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::place::{Placing, place};
use super::{Order, OrderBody, OrderLine, sql};
use crate::accounts::{Account, create as accounts};
use crate::app::App;
use crate::catalog::{self, Listed};
use crate::db;
use crate::fault;
use crate::guard::Guarded;
use crate::made_by;
use crate::money::MoneyBody;
use crate::operation::{Operation, Stop};
use crate::problem::{Code, Problem};

/// A wish to buy.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateOrder {
    /// 1 to 100; lines of one product are added up.
    #[schema(min_items = 1, max_items = 100)]
    pub lines: Vec<CreateOrderLine>,
    /// If the total is another, nothing is ordered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_total: Option<MoneyBody>,
    /// Where the receipt goes; the account's e-mail if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 254, format = "email", example = "ada@example.com")]
    pub email: Option<String>,
    /// At most 500 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 500, example = "Leave it at the door.")]
    pub note: Option<String>,
}

/// One product of it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateOrderLine {
    /// Which product.
    #[schema(example = "counter-bell", pattern = "^[A-Za-z0-9._-]{1,64}$")]
    pub sku: String,
    /// How many.
    #[schema(example = 1, minimum = 1, maximum = 99)]
    pub quantity: i64,
}

/// Places an order
#[utoipa::path(
    post, path = "/v1/orders", tag = "Orders", request_body = CreateOrder,
    responses((status = 201, description = "The order; its goods are set aside", body = OrderBody)),
)]
pub async fn create_order(request: Guarded) -> Result<HttpResponse, Problem> {
    let operation = Create { account: request.account()?, cart: None, body: request.body() };
    request.perform(operation).await
}

/// The operation.
pub struct Create {
    /// Who orders.
    pub account: Account,
    /// The cart that the order consumes, on the pages.
    pub cart: Option<CartId>,
    /// What was sent, or why it cannot be used.
    pub body: Result<CreateOrder, Problem>,
}

impl Operation for Create {
    const NAME: &'static str = "POST /v1/orders";
    const LOOKS_FIRST: bool = false;

    async fn execute(&self, app: &App, claim: &Claim) -> Result<Finished, Stop> {
        let wish = match self.wish() {
            Ok(wish) => wish,
            Err(problem) => return known_or(app, claim, problem).await,
        };
        let priced = match self.price(app, &wish).await? {
            Ok(priced) => priced,
            Err(Refusal::Invalid(problem)) => return known_or(app, claim, problem).await,
            Err(Refusal::Price(problem)) => return Err(Stop::Refused(problem)),
        };
        self.write(app, claim, &wish, &priced).await
    }
}

/// A request that passed validation.
struct Wish {
    basket: Basket,
    expected: Option<Money>,
    email: Option<String>,
    note: Option<String>,
}

/// A priced basket and the number of each product's row.
struct Priced {
    lines: Vec<(i32, PricedLine)>,
    total: Money,
}

impl Priced {
    /// The numbers of the products' rows.
    fn ids(&self) -> Vec<i32> {
        self.lines.iter().map(|(id, _)| *id).collect()
    }
}

/// An order that is ready to be written, with the answer that tells of it.
struct Draft<'a> {
    order: Order,
    lines: &'a [(i32, PricedLine)],
    cart: Option<Uuid>,
    reply: Reply,
    retention: Duration,
}

impl Draft<'_> {
    fn placing(&self) -> Placing<'_> {
        let retention_ms = self.retention.as_secs_f64() * 1000.0;
        Placing { order: &self.order, lines: self.lines, cart: self.cart, retention_ms }
    }

    /// It was placed, and its transaction is over.
    async fn placed(&self, claim: &Claim, expires_at: OffsetDateTime) -> Result<Finished, Stop> {
        fault::point("order_committed").await?;
        tracing::info!(target: "payonce::flow", step = "order", order = %self.order.id,
            "order and reply committed");
        let path = self.order.path();
        let ending = Ending {
            outcome: Outcome::Completed,
            reply: &self.reply,
            resource: Some(&path),
            retention: self.retention,
        };
        Ok(postgres::finished(claim, &ending, expires_at))
    }
}

enum Refusal {
    /// Said before the operation began.
    Invalid(Problem),
    /// A final answer.
    Price(Problem),
}

impl Create {
    fn wish(&self) -> Result<Wish, Problem> {
        let body = self.body.clone()?;
        let mut lines = Vec::with_capacity(body.lines.len());
        for (index, line) in body.lines.into_iter().enumerate() {
            let sku = Sku::try_from(line.sku).map_err(|error| {
                Problem::invalid(format!("/lines/{index}/sku"), error.to_string())
            })?;
            lines.push((sku, line.quantity));
        }
        let basket = Basket::from_lines(lines)
            .map_err(|error| Problem::invalid(error.pointer(), error.to_string()))?;
        let email = match &body.email {
            Some(email) => Some(
                accounts::email(email).map_err(|message| Problem::invalid("/email", message))?,
            ),
            None => self.account.email.clone(),
        };
        if body.note.as_ref().is_some_and(|note| note.chars().count() > 500) {
            return Err(Problem::invalid("/note", "A note has at most 500 characters."));
        }
        Ok(Wish { basket, expected: body.expected_total.map(Money::from), email, note: body.note })
    }

    /// Prices with the copy in process; refuses only by what the database says now.
    async fn price(&self, app: &App, wish: &Wish) -> Result<Result<Priced, Refusal>, Stop> {
        if let Ok(priced) = priced(wish, &app.catalogue.listed()) {
            return Ok(Ok(priced));
        }
        let mut conn = app.db.connection().await?;
        let listed = app.catalogue.reload(&mut conn).await;
        Ok(priced(wish, &*conn.end(listed)?))
    }

    async fn write(
        &self,
        app: &App,
        claim: &Claim,
        wish: &Wish,
        priced: &Priced,
    ) -> Result<Finished, Stop> {
        let draft = self.draft(app, wish, priced)?;
        fault::point("before_order").await?;
        let placed = db::retrying(|| async {
            let mut conn = app.db.connection_to_claim().await?;
            let placed = place(&mut conn, claim, &draft.placing(), &draft.reply).await;
            conn.end(placed)
        })
        .await;
        match placed {
            Ok(expires_at) => draft.placed(claim, expires_at).await,
            Err(error) if db::violated(&error) == Some(postgres::INCOMPLETE) => {
                let mut conn = app.db.connection().await?;
                let looked = look_again(&mut conn, app, wish, priced).await;
                conn.end(looked)??;
                db::retrying(|| self.write_in_turn(app, claim, wish, priced)).await
            }
            Err(error) => Err(self.not_placed(app, error).await?),
        }
    }

    /// The same where others want the goods too: each waits until it has them locked. What is
    /// refused then was not there, and what was there is ordered.
    async fn write_in_turn(
        &self,
        app: &App,
        claim: &Claim,
        wish: &Wish,
        tried: &Priced,
    ) -> Result<Finished, Stop> {
        let mut tx = app.db.begin_claim(&claim.identity).await?;
        catalog::sql::lock(&mut tx, &tried.ids()).await?;
        let priced = match look_again(&mut tx, app, wish, tried).await? {
            Ok(priced) => priced,
            Err(stop) => {
                tx.rollback().await;
                return Err(stop);
            }
        };
        let draft = self.draft(app, wish, &priced)?;
        match place(&mut tx, claim, &draft.placing(), &draft.reply).await {
            Ok(expires_at) => {
                tx.commit().await?;
                draft.placed(claim, expires_at).await
            }
            Err(error) => {
                tx.rollback().await;
                Err(self.not_placed(app, error).await?)
            }
        }
    }

    async fn not_placed(&self, app: &App, error: sqlx::Error) -> Result<Stop, Stop> {
        match db::violated(&error) {
            Some("order_cart_id_key") => self.cart_was_ordered(app).await,
            _ => Ok(error.into()),
        }
    }

    /// The same order without its record, to measure what the guard costs.
    ///
    /// # Errors
    /// Those of an order.
    #[cfg(feature = "bench")]
    pub async fn without_guard(&self, app: &App) -> Result<(OrderId, Reply), Stop> {
        let wish = self.wish().map_err(Stop::Passing)?;
        let priced = match self.price(app, &wish).await? {
            Ok(priced) => priced,
            Err(Refusal::Invalid(problem) | Refusal::Price(problem)) => {
                return Err(Stop::Passing(problem));
            }
        };
        let draft = self.draft(app, &wish, &priced)?;
        let scope = self.account.scope();
        let mut conn = app.db.connection().await?;
        let placed = super::place::place_unguarded(&mut conn, &scope, &draft.placing()).await;
        conn.end(placed)?;
        Ok((draft.order.id, draft.reply))
    }

    fn draft<'a>(&self, app: &App, wish: &Wish, priced: &'a Priced) -> Result<Draft<'a>, Stop> {
        let order = self.order(app, wish, priced.total);
        let reply = reply(&order, &priced.lines)?;
        let (lines, cart) = (&priced.lines[..], self.cart.map(CartId::uuid));
        Ok(Draft { order, lines, cart, reply, retention: app.limits.retention })
    }

    fn order(&self, app: &App, wish: &Wish, total: Money) -> Order {
        let now = app.clock.now();
        Order {
            id: OrderId::from_uuid(app.clock.new_id()),
            account_id: self.account.id,
            status: OrderStatus::Pending,
            total,
            email: wish.email.clone(),
            note: wish.note.clone(),
            created_at: now,
            reserved_until: now + app.limits.reservation,
            live_payment: None,
        }
    }

    /// A cart is consumed once: whoever comes second is shown the first order.
    async fn cart_was_ordered(&self, app: &App) -> Result<Stop, Stop> {
        let Some(cart) = self.cart else { return Ok(Stop::Taken) };
        let mut conn = app.db.connection().await?;
        let order = sql::by_cart(&mut conn, cart.uuid()).await;
        let Some(order) = conn.end(order)? else { return Ok(Stop::Taken) };
        Ok(Stop::Passing(
            Problem::new(Code::InvalidTransition, "This cart was ordered before.")
                .member("state", "ordered")
                .resource(&order.path()),
        ))
    }
}

/// Invalid requests are told so only where the key is not known: a reused key comes first.
async fn known_or(app: &App, claim: &Claim, problem: Problem) -> Result<Finished, Stop> {
    let mut conn = app.db.connection().await?;
    let known = is_known(&mut conn, claim).await;
    match conn.end(known)? {
        true => Err(Stop::Taken),
        false => Err(Stop::Passing(problem)),
    }
}

async fn is_known(conn: &mut PgConnection, claim: &Claim) -> sqlx::Result<bool> {
    Ok(postgres::find(conn, &claim.identity).await?.is_some()
        || made_by::resource(conn, &claim.identity).await?.is_some())
}

fn priced(wish: &Wish, listed: &HashMap<Sku, Listed>) -> Result<Priced, Refusal> {
    let offer = |sku: &Sku| listed.get(sku).map(|product| product.offer.clone());
    let PricedOrder { lines, total } = wish
        .basket
        .price(offer)
        .map_err(|error| Refusal::Invalid(Problem::invalid(error.pointer(), error.to_string())))?;
    domain::check_expected(total, wish.expected)
        .map_err(|changed| Refusal::Price(price_changed(changed.total)))?;
    let lines = lines.into_iter().filter_map(|line| Some((listed.get(&line.sku)?.id, line)));
    Ok(Priced { lines: lines.collect(), total })
}

fn price_changed(total: Money) -> Problem {
    Problem::new(Code::PriceChanged, format!("The total is {total} now. Nothing was ordered."))
        .member("total", serde_json::json!(MoneyBody::from(total)))
}

fn reply(order: &Order, lines: &[(i32, PricedLine)]) -> Result<Reply, Stop> {
    let lines = lines.iter().map(|(_, line)| OrderLine {
        sku: line.sku.clone(),
        name: line.name.clone(),
        quantity: line.quantity.get().cast_signed(),
        unit_price: line.unit_price,
        line_total: line.line_total,
    });
    let body = serde_json::to_vec(&OrderBody::new(order.clone(), lines.collect()))
        .map_err(|error| Stop::Passing(Problem::internal(&error)))?;
    Ok(Reply::new(201, "application/json", body).with(ReplyHeader::Location, order.path()))
}

/// What the wish comes to by what the database says now, or why the goods cannot be had.
async fn look_again(
    conn: &mut PgConnection,
    app: &App,
    wish: &Wish,
    tried: &Priced,
) -> sqlx::Result<Result<Priced, Stop>> {
    let listed = app.catalogue.reload(conn).await?;
    let stock = catalog::sql::stock(conn, &tried.ids()).await?;
    let priced = match priced(wish, &listed) {
        Ok(priced) => priced,
        Err(Refusal::Price(problem)) => return Ok(Err(Stop::Refused(problem))),
        // The next round says so, if the key is not known.
        Err(Refusal::Invalid(_)) => return Ok(Err(Stop::Taken)),
    };
    let short = priced.lines.iter().find_map(|(id, line)| {
        let available = stock.get(id).copied().unwrap_or_default();
        (available < i64::from(line.quantity.get())).then(|| out_of_stock(line, available))
    });
    Ok(short.map_or(Ok(priced), |problem| Err(Stop::Refused(problem))))
}

fn out_of_stock(line: &PricedLine, available: i64) -> Problem {
    let detail = match available {
        0 => format!("{} is sold out. Nothing was ordered.", line.name),
        left => format!("Only {left} of {} left. Nothing was ordered.", line.name),
    };
    Problem::new(Code::OutOfStock, detail)
        .member("sku", line.sku.as_str())
        .member("available", available)
}
