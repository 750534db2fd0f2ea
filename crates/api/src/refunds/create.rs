//! Create a refund: one key, at most one refund, one reply for ever.
//!
//! | after a crash …                    | the record says | the next attempt …                             |
//! |------------------------------------|-----------------|------------------------------------------------|
//! | before the intent commits          | nothing         | starts over; nothing happened                  |
//! | before, during or after the refund | processing      | asks the provider by the provider key first    |
//! | after settle commits               | finished        | gets the stored reply, byte for byte           |
//!
//! The same three phases as a payment, for the same reasons. What is different is the room that
//! refunds of one payment share: the intent takes its part of it under the locks of order and
//! payment, before anything is sent, so that refunds that run side by side never add up to more
//! than was captured. A refund that fails gives its part back.

use actix_web::HttpResponse;
use domain::{Money, PaymentId, RefundId, RefundStatus};
use idempotency::postgres::{self, Attempt};
use idempotency::{Claim, Finished};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::plan::{Wish, plan};
use super::{Refund, RefundBody, sql};
use crate::accounts::Account;
use crate::app::App;
use crate::budget;
use crate::db;
use crate::fault;
use crate::guard::Guarded;
use crate::money::MoneyBody;
use crate::operation::{Operation, Stop};
use crate::payments::{self, Payment};
use crate::problem::{Code, Problem};
use crate::provider::provider_key;
use crate::two_phase::{self, TwoPhase as _};
use crate::{orders, payments::read::visible};

/// The longest reason, in characters.
pub const REASON_CHARS_MAX: usize = 200;

/// A wish to give money back.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRefund {
    /// How much; what remains, if it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<MoneyBody>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "One of the two came broken.", max_length = 200)]
    pub reason: Option<String>,
    /// Put the goods back into stock; only with the refund that takes the remainder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restock: Option<bool>,
}

/// Refunds a payment, in part or in full
#[utoipa::path(
    post, path = "/v1/payments/{id}/refunds", tag = "Refunds", request_body = Option<CreateRefund>,
    params(("id" = String, Path, example = "pay_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")),
    responses((status = 201, description = "The refund", body = RefundBody)),
)]
pub async fn create_refund(request: Guarded) -> Result<HttpResponse, Problem> {
    let operation =
        Create { account: request.account()?, payment: request.id("id"), body: request.body() };
    request.perform(operation).await
}

/// The operation.
pub struct Create {
    /// Who asks.
    pub account: Account,
    /// Which payment, or that the id is none.
    pub payment: Result<PaymentId, Problem>,
    /// What was sent, or why it cannot be used.
    pub body: Result<CreateRefund, Problem>,
}

impl Operation for Create {
    const NAME: &'static str = "POST /v1/payments/{id}/refunds";

    async fn execute(&self, app: &App, claim: &Claim) -> Result<Finished, Stop> {
        fault::point("refund_before_claim").await?;
        let id = self.payment.clone().map_err(Stop::Passing)?;
        let payment = visible(app, &self.account, id).await.map_err(Stop::Passing)?;
        let wish = self.wish().map_err(Stop::Passing)?;
        let draft = self.draft(app, claim, &payment, &wish);
        let (attempt, refund) = db::retrying(|| intend(app, claim, &draft, &wish)).await?;
        fault::point("refund_intent_committed").await?;
        tracing::info!(target: "payonce::flow", step = "intent", payment = %payment.id,
            refund = %refund.id, amount = %refund.amount, fence = attempt.fence,
            "claimed the key and its part of the payment");
        two_phase::go_on(app, &attempt, &refund, None).await
    }

    async fn resume(&self, app: &App, attempt: Attempt) -> Result<Finished, Stop> {
        two_phase::resume::<Refund>(app, attempt, 2).await
    }

    fn shared(&self) -> Option<Uuid> {
        self.payment.as_ref().ok().map(|id| id.uuid())
    }

    fn unknown(subject: Uuid) -> Problem {
        Refund::unknown(subject)
    }
}

impl Create {
    fn wish(&self) -> Result<Wish, Problem> {
        let CreateRefund { amount, reason, restock } = self.body.clone()?;
        if reason.as_ref().is_some_and(|reason| reason.chars().count() > REASON_CHARS_MAX) {
            return Err(Problem::invalid("/reason", "A reason has at most 200 characters."));
        }
        let restock = restock.unwrap_or_default();
        Ok(Wish { amount: amount.map(Money::from), reason, restock })
    }

    /// The refund before its amount is known.
    fn draft(&self, app: &App, claim: &Claim, payment: &Payment, wish: &Wish) -> Refund {
        let made_by = claim.identity.scope.as_bytes();
        Refund {
            id: RefundId::from_uuid(app.clock.new_id()),
            payment_id: payment.id,
            order_id: payment.order_id,
            account_id: self.account.id,
            provider_key: provider_key(made_by, claim.identity.key.as_str(), Self::NAME),
            charge_key: payment.provider_key.clone(),
            status: RefundStatus::Processing,
            amount: Money::zero(payment.amount.currency),
            reason: wish.reason.clone(),
            restock: wish.restock,
            automatic: false,
            created_at: app.clock.now(),
        }
    }
}

/// Phase one: the claim, and a part of what the payment still holds, in one transaction.
async fn intend(
    app: &App,
    claim: &Claim,
    draft: &Refund,
    wish: &Wish,
) -> Result<(Attempt, Refund), Stop> {
    let mut tx = app.db.begin_claim(&claim.identity).await?;
    let attempt = postgres::insert_processing(
        &mut tx,
        claim,
        Create::NAME,
        draft.id.uuid(),
        &draft.path(),
        app.limits.lease,
    )
    .await?;
    if let Err(stop) = budget::unresolved(app, &mut tx, &claim.identity.scope).await {
        tx.rollback().await;
        return Err(stop);
    }
    fault::point("refund_claimed").await?;
    let amount = match take_room(&mut tx, draft, wish).await {
        Ok(amount) => amount,
        Err(stop) => {
            tx.rollback().await;
            return Err(stop);
        }
    };
    let refund = Refund { amount, ..draft.clone() };
    if let Err(error) = sql::insert(&mut tx, &refund, &claim.identity).await {
        tx.rollback().await;
        return Err(made_after_all(app, &refund, error).await?);
    }
    fault::point("refund_before_intent_commit").await?;
    tx.commit().await?;
    Ok((attempt, refund))
}

/// This key was given back once, and its refund was made all the same: the provider has told of it
/// since, so the key has had its effect.
async fn made_after_all(app: &App, refund: &Refund, error: sqlx::Error) -> Result<Stop, Stop> {
    if db::violated(&error) != Some("refund_provider_key_key") {
        return Err(error.into());
    }
    let mut conn = app.db.connection().await?;
    let made = sql::by_provider_key(&mut conn, &refund.provider_key).await;
    let Some((made, _)) = conn.end(made)? else { return Ok(Stop::Taken) };
    Ok(Stop::Refused(
        Problem::new(
            Code::InvalidTransition,
            "The refund of this key was made after all. See it there.",
        )
        .member("state", RefundStatus::Succeeded.as_str())
        .member("refund_id", made.to_string())
        .resource(&format!("/v1/refunds/{made}")),
    ))
}

/// Order before payment, like everywhere; whoever comes next finds this refund in the sums.
async fn take_room(
    conn: &mut sqlx::PgConnection,
    draft: &Refund,
    wish: &Wish,
) -> Result<Money, Stop> {
    orders::sql::lock(conn, draft.order_id).await?;
    let payment = payments::sql::lock(conn, draft.payment_id).await?;
    let payment = payment.ok_or_else(|| Stop::Passing(Problem::not_found()))?;
    plan(conn, &payment, wish).await
}
