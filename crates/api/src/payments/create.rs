//! Create a payment: one key, at most one charge, one reply for ever.
//!
//! | after a crash …                    | the record says | the next attempt …                             |
//! |------------------------------------|-----------------|------------------------------------------------|
//! | before the intent commits          | nothing         | starts over; nothing happened                  |
//! | before, during or after the charge | processing      | asks the provider by the provider key first    |
//! | after settle commits               | finished        | gets the stored reply, byte for byte           |
//!
//! Three phases, and they must stay three: the intent commits before anything is sent, so that
//! whoever comes after a crash knows under which provider key to ask; nothing is sent inside a
//! transaction, so that no lock waits for somebody else's server; the outcome and the reply commit
//! together, so that no money is known without an answer, and no answer without its money.

use actix_web::HttpResponse;
use domain::{Money, OrderId, PaymentId, PaymentMethod, PaymentStatus};
use idempotency::postgres::{self, Attempt};
use idempotency::{Claim, Finished};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Payment, PaymentBody, sql};
use crate::accounts::Account;
use crate::app::App;
use crate::budget;
use crate::db;
use crate::fault;
use crate::guard::Guarded;
use crate::money::MoneyBody;
use crate::operation::{Operation, Stop};
use crate::orders::{self, Order};
use crate::problem::{Code, Problem};
use crate::provider::provider_key;
use crate::telemetry::metrics::took;
use crate::two_phase::{self, TwoPhase as _};

/// A wish to pay.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePayment {
    /// The provider's token for the card.
    #[schema(example = "pm_card_ok", pattern = "^pm_[a-z0-9_]{1,60}$")]
    pub payment_method: String,
    /// The order's total; anything else is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<MoneyBody>,
}

/// Pays an order
#[utoipa::path(
    post, path = "/v1/orders/{id}/payments", tag = "Payments", request_body = CreatePayment,
    params(("id" = String, Path, example = "ord_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses((status = 201, description = "The payment", body = PaymentBody)),
)]
pub async fn create_payment(request: Guarded) -> Result<HttpResponse, Problem> {
    let operation =
        Create { account: request.account()?, order: request.id("id"), body: request.body() };
    request.perform(operation).await
}

/// The operation.
pub struct Create {
    /// Who pays.
    pub account: Account,
    /// Which order, or that the id is none.
    pub order: Result<OrderId, Problem>,
    /// What was sent, or why it cannot be used.
    pub body: Result<CreatePayment, Problem>,
}

impl Operation for Create {
    const NAME: &'static str = "POST /v1/orders/{id}/payments";

    async fn execute(&self, app: &App, claim: &Claim) -> Result<Finished, Stop> {
        fault::point("before_claim").await?;
        let order = self.order(app).await?;
        let method = self.method(&order)?;
        let payment = Payment {
            id: PaymentId::from_uuid(app.clock.new_id()),
            order_id: order.id,
            account_id: self.account.id,
            provider_key: provider_key(
                claim.identity.scope.as_bytes(),
                claim.identity.key.as_str(),
                Self::NAME,
            ),
            status: PaymentStatus::Processing,
            amount: order.total,
            refunded: Money::zero(order.total.currency),
            payment_method: method.as_str().to_owned(),
            charge_id: None,
            decline_code: None,
            misdirected: false,
            created_at: app.clock.now(),
        };
        let started = Instant::now();
        let attempt = db::retrying(|| intend(app, claim, &payment)).await?;
        took("payonce_claim_duration_seconds", started.elapsed());
        fault::point("intent_committed").await?;
        tracing::info!(target: "payonce::flow", step = "intent", payment = %payment.id,
            fence = attempt.fence, "claimed the key and the order");
        two_phase::go_on(app, &attempt, &payment, None).await
    }

    async fn resume(&self, app: &App, attempt: Attempt) -> Result<Finished, Stop> {
        two_phase::resume::<Payment>(app, attempt, 2).await
    }

    fn unknown(subject: Uuid) -> Problem {
        Payment::unknown(subject)
    }
}

impl Create {
    /// The order, if it is the payer's own.
    async fn order(&self, app: &App) -> Result<Order, Stop> {
        let id = self.order.clone().map_err(Stop::Passing)?;
        let mut conn = app.db.connection().await?;
        let order = orders::sql::get(&mut conn, id).await;
        conn.end(order)?
            .filter(|order| order.account_id == self.account.id)
            .ok_or_else(|| Stop::Passing(Problem::not_found()))
    }

    fn method(&self, order: &Order) -> Result<PaymentMethod, Stop> {
        let body = self.body.clone().map_err(Stop::Passing)?;
        let invalid =
            |pointer: &str, message: String| Stop::Passing(Problem::invalid(pointer, message));
        if let Some(amount) = body.amount
            && Money::from(amount) != order.total
        {
            return Err(invalid("/amount", format!("The order comes to {}.", order.total)));
        }
        PaymentMethod::try_from(body.payment_method)
            .map_err(|error| invalid("/payment_method", error.to_string()))
    }
}

/// Phase one: the claim, the order's link and the payment, in one transaction.
async fn intend(app: &App, claim: &Claim, payment: &Payment) -> Result<Attempt, Stop> {
    let mut tx = app.db.begin_claim(&claim.identity).await?;
    let attempt = postgres::insert_processing(
        &mut tx,
        claim,
        Create::NAME,
        payment.id.uuid(),
        &payment.path(),
        app.limits.lease,
    )
    .await?;
    if let Err(stop) = budget::unresolved(app, &mut tx, &claim.identity.scope).await {
        tx.rollback().await;
        return Err(stop);
    }
    fault::point("claimed").await?;
    if !orders::sql::link_payment(&mut tx, payment.order_id, payment.id).await?
        && let Err(stop) = link_in_turn(&mut tx, payment).await
    {
        tx.rollback().await;
        return Err(stop);
    }
    if let Err(error) = sql::insert(&mut tx, payment, &claim.identity).await {
        tx.rollback().await;
        return Err(gone_astray(app, payment, error).await?);
    }
    fault::point("before_intent_commit").await?;
    tx.commit().await?;
    Ok(attempt)
}

/// This key was given back once, and its charge turned up all the same: that money is on its way
/// back already, so the key can pay nothing any more.
async fn gone_astray(app: &App, payment: &Payment, error: sqlx::Error) -> Result<Stop, Stop> {
    if db::violated(&error) != Some("payment_provider_key_key") {
        return Err(error.into());
    }
    let mut conn = app.db.connection().await?;
    let stray = sql::by_provider_key(&mut conn, &payment.provider_key).await;
    let Some((stray, _)) = conn.end(stray)? else { return Ok(Stop::Taken) };
    Ok(Stop::Refused(
        Problem::new(
            Code::InvalidTransition,
            "An earlier charge under this key arrived late and goes back. To pay, send a new key.",
        )
        .member("state", PaymentStatus::Succeeded.as_str())
        .member("payment_id", stray.to_string())
        .resource(&format!("/v1/payments/{stray}")),
    ))
}

/// The order did not take the payment. Looked at again with its row locked, it says why, or takes it
/// after all: another payment came and went, and for that nobody is sent away.
async fn link_in_turn(conn: &mut sqlx::PgConnection, payment: &Payment) -> Result<(), Stop> {
    let Some(order) = orders::sql::lock(conn, payment.order_id).await? else {
        return Err(Stop::Passing(Problem::not_found()));
    };
    let now = orders::sql::now(conn).await?;
    if let Err(refusal) = order.state().begin_payment(payment.id, now) {
        return Err(orders::refused(&order, refusal));
    }
    match orders::sql::link_payment(conn, payment.order_id, payment.id).await? {
        true => Ok(()),
        // Its reservation ended at this very moment.
        false => Err(Stop::Taken),
    }
}
