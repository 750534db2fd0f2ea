//! Move stock: a difference with a reason, never "set to". What is in stock is what there was at
//! first plus the sum of all movements.

use actix_web::{HttpResponse, web};
use domain::{Sku, StockMovementId};
use idempotency::reply::ReplyHeader;
use idempotency::{Claim, Finished, Outcome, Reply};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{Product, sql};
use crate::accounts::{Account, bearer};
use crate::app::App;
use crate::db;
use crate::guard::Guarded;
use crate::operation::{self, Ended, Operation, Stop};
use crate::problem::{Code, Problem};

/// More than this is a slip of the finger.
const DELTA_MAX: i64 = 1_000_000;
/// The longest reason, in characters.
const REASON_CHARS_MAX: usize = 200;

/// A wish to move stock.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateStockMovement {
    /// How many more, or fewer; not zero.
    #[schema(example = 24, minimum = -1_000_000, maximum = 1_000_000)]
    pub delta: i64,
    /// Why.
    #[schema(example = "Delivery of two boxes.", min_length = 1, max_length = 200)]
    pub reason: String,
}

/// A movement of stock on the wire.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = StockMovement)]
pub struct StockMovementBody {
    /// `stm_…`
    #[schema(value_type = String, example = "stm_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub id: StockMovementId,
    /// Which product.
    #[schema(value_type = String, example = "counter-bell")]
    pub sku: Sku,
    /// How many more, or fewer.
    #[schema(example = 24)]
    pub delta: i64,
    /// Why.
    #[schema(example = "Delivery of two boxes.")]
    pub reason: String,
    /// What was in stock right after.
    #[schema(example = 144, minimum = 0)]
    pub stock_after: i64,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}

/// Moves stock
#[utoipa::path(
    post, path = "/v1/products/{sku}/stock-movements", tag = "Catalogue", request_body = CreateStockMovement,
    params(("sku" = String, Path, example = "counter-bell")),
    responses((status = 201, description = "The movement", body = StockMovementBody)),
)]
pub async fn create_stock_movement(request: Guarded) -> Result<HttpResponse, Problem> {
    // A malformed SKU is the same as none.
    let operation = Create { sku: request.id("sku"), body: request.body() };
    request.perform(operation).await
}

/// Shows a movement of stock
#[utoipa::path(
    get, path = "/v1/products/{sku}/stock-movements/{id}", tag = "Catalogue",
    params(("sku" = String, Path, example = "counter-bell"),
           ("id" = String, Path, example = "stm_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses(
        (status = 200, description = "The movement", body = StockMovementBody),
        (status = 403, description = "The account has not the role for this"),
    ),
)]
pub async fn get_stock_movement(
    app: App,
    account: Account,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    bearer::merchants_only(&account)?;
    let (Ok(sku), Ok(id)) = (path.0.parse::<Sku>(), path.1.parse()) else {
        return Err(Problem::not_found());
    };
    let mut conn = app.db.connection().await?;
    let movement = sql::correction(&mut conn, &sku, id).await;
    let movement = conn.end(movement)?.ok_or_else(Problem::not_found)?;
    Ok(HttpResponse::Ok().json(movement))
}

/// The operation. The route has made sure that a merchant asks.
pub struct Create {
    /// Which product, or that the SKU is none.
    pub sku: Result<Sku, Problem>,
    /// What was sent, or why it cannot be used.
    pub body: Result<CreateStockMovement, Problem>,
}

impl Operation for Create {
    const NAME: &'static str = "POST /v1/products/{sku}/stock-movements";

    async fn execute(&self, app: &App, claim: &Claim) -> Result<Finished, Stop> {
        let sku = self.sku.clone().map_err(Stop::Passing)?;
        let wish = self.wish().map_err(Stop::Passing)?;
        db::retrying(|| write(app, claim, &sku, &wish)).await
    }
}

async fn write(
    app: &App,
    claim: &Claim,
    sku: &Sku,
    wish: &CreateStockMovement,
) -> Result<Finished, Stop> {
    let id = StockMovementId::from_uuid(app.clock.new_id());
    let created_at = app.clock.now();
    let mut tx = app.db.begin_claim(&claim.identity).await?;
    let Some((product, stock_after)) = sql::change_stock(&mut tx, sku, wish.delta).await? else {
        let product = sql::get(&mut tx, sku.as_str()).await?;
        tx.rollback().await;
        return Err(Stop::Refused(why_not(product, wish.delta)));
    };
    let CreateStockMovement { delta, reason } = wish.clone();
    let movement =
        StockMovementBody { id, sku: sku.clone(), delta, reason, stock_after, created_at };
    sql::insert_correction(&mut tx, product, &movement, &claim.identity).await?;
    let body =
        serde_json::to_vec(&movement).map_err(|error| Stop::Passing(Problem::internal(&error)))?;
    let path = format!("/v1/products/{sku}/stock-movements/{id}");
    let reply = Reply::new(201, "application/json", body).with(ReplyHeader::Location, &*path);
    let ended = Ended {
        operation: Create::NAME,
        outcome: Outcome::Completed,
        reply: &reply,
        resource: Some(&path),
    };
    operation::commit(app, tx, claim, ended).await
}

fn why_not(product: Option<Product>, delta: i64) -> Problem {
    let Some(product) = product else {
        return Problem::new(Code::NotFound, "No product has this SKU.");
    };
    Problem::new(
        Code::OutOfStock,
        format!("{} in stock; {} cannot leave.", product.stock, delta.unsigned_abs()),
    )
    .member("sku", product.sku.as_str())
    .member("available", product.stock)
}

impl Create {
    fn wish(&self) -> Result<CreateStockMovement, Problem> {
        let body = self.body.clone()?;
        if body.delta == 0 || !(-DELTA_MAX..=DELTA_MAX).contains(&body.delta) {
            let message = "A movement is -1000000 to 1000000, and not 0.";
            return Err(Problem::invalid("/delta", message));
        }
        if !(1..=REASON_CHARS_MAX).contains(&body.reason.chars().count()) {
            return Err(Problem::invalid("/reason", "A reason has 1 to 200 characters."));
        }
        Ok(body)
    }
}
