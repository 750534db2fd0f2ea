//! Refunds: like charges, and never more than was charged.
//!
//! The first answer is lost in the way of the card that was charged: withheld, reset, or
//! "key in use". A refund that fails is recorded and fails again under the same key for ever.

mod sql;

use actix_web::web::{Data, Json, Query};
use actix_web::{HttpRequest, HttpResponse};
use sqlx::PgConnection;

use super::card::Card;
use super::events;
use super::refusal::Refusal;
use super::wire::{CancelRequest, Charge, Filter, Page, Refund, RefundRequest};
use super::{Mock, Turn};

pub(super) async fn create(
    mock: Data<Mock>,
    request: HttpRequest,
    body: Json<RefundRequest>,
) -> Result<HttpResponse, Refusal> {
    let body = body.into_inner();
    mock.control.admit("POST", "/refunds", Some(&body.provider_key))?;
    body.check()?;
    let turn = mock.run(refund(mock.clone(), body)).await?;
    mock.answer(&request, turn).await
}

pub(super) async fn cancel(
    mock: Data<Mock>,
    body: Json<CancelRequest>,
) -> Result<HttpResponse, Refusal> {
    let CancelRequest { provider_key } = body.into_inner();
    mock.control.admit("POST", "/refunds/cancel", Some(&provider_key))?;
    CancelRequest { provider_key: provider_key.clone() }.check()?;
    let refund = mock.run(refuse_for_ever(mock.clone(), provider_key)).await?;
    mock.control.latency().await;
    match refund.status.as_str() {
        "pending" => Err(Refusal::KeyInUse),
        _ => Ok(HttpResponse::Ok().json(refund)),
    }
}

pub(super) async fn list(mock: Data<Mock>, filter: Query<Filter>) -> Result<HttpResponse, Refusal> {
    mock.control.admit("GET", "/refunds", filter.provider_key.as_deref())?;
    let data = sql::list(&mut *mock.pool.acquire().await?, &filter).await?;
    mock.control.latency().await;
    let full = data.len() == filter.limit() as usize;
    let next = data.last().filter(|_| full).map(|refund| refund.id.clone());
    Ok(HttpResponse::Ok().json(Page { data, next }))
}

pub(super) async fn complete_pending(mock: &Mock, older_than_seconds: f64) -> Result<(), Refusal> {
    let keys = sql::pending(&mut *mock.pool.acquire().await?, older_than_seconds).await?;
    for key in keys {
        complete(mock, &key).await?;
    }
    Ok(())
}

async fn refund(mock: Data<Mock>, body: RefundRequest) -> Result<Turn<Refund>, Refusal> {
    let (begun, card) = match begin(&mock, &body).await? {
        Begun::Earlier(earlier) => return repeat(earlier, &body).map(Turn::again),
        Begun::Now(refund, card) => (refund, card),
    };
    if begun.status == "failed" {
        return Err(failed(&begun)?);
    }
    mock.control.latency().await;
    tokio::time::sleep(card.delay()).await;
    let refund = complete(&mock, &body.provider_key).await?;
    Ok(Turn::first(refund, card.manner()))
}

enum Begun {
    Now(Refund, Card),
    Earlier(Refund),
}

/// Commits the key, and with it the money on its way back, before anything slow happens.
async fn begin(mock: &Mock, body: &RefundRequest) -> Result<Begun, Refusal> {
    let mut tx = mock.pool.begin().await?;
    let charge = sql::lock_charge(&mut tx, &body.charge).await?;
    if charge.as_ref().is_some_and(|charge| charge.status == "pending") {
        return Err(Refusal::KeyInUse);
    }
    let failure = failure(&mut tx, charge.as_ref(), body).await?;
    let charge_id = charge.as_ref().map(|charge| charge.id.as_str());
    let is_new = sql::insert(&mut tx, body, charge_id, failure).await?;
    let refund = sql::get(&mut tx, &body.provider_key).await?;
    if is_new && refund.status == "failed" {
        announce(mock, &mut tx, &refund).await?;
    }
    tx.commit().await?;
    mock.wake_deliveries();
    let token = charge.and_then(|charge| charge.payment_method);
    let card = token.as_deref().and_then(Card::parse).unwrap_or(Card::Ok);
    Ok(if is_new { Begun::Now(refund, card) } else { Begun::Earlier(refund) })
}

/// Why this refund can never be made, with the charge locked; pending refunds count as made.
async fn failure(
    tx: &mut PgConnection,
    charge: Option<&Charge>,
    body: &RefundRequest,
) -> Result<Option<&'static str>, Refusal> {
    let Some(charge) = charge else {
        return Ok(Some("no_such_charge"));
    };
    let Some(captured) = charge.amount.as_ref().filter(|_| charge.status == "succeeded") else {
        return Ok(Some("charge_not_refundable"));
    };
    if captured.currency != body.amount.currency {
        return Ok(Some("currency_mismatch"));
    }
    let taken = sql::taken(tx, &charge.id).await?;
    let fits = taken.checked_add(body.amount.amount).is_some_and(|sum| sum <= captured.amount);
    Ok((!fits).then_some("refund_too_large"))
}

fn repeat(earlier: Refund, body: &RefundRequest) -> Result<Refund, Refusal> {
    match earlier.status.as_str() {
        "failed" if earlier.reference.is_none() => Err(failed(&earlier)?),
        _ if !body.made(&earlier) => Err(Refusal::KeyReused),
        "failed" => Err(failed(&earlier)?),
        "pending" => Err(Refusal::KeyInUse),
        _ => Ok(earlier),
    }
}

fn failed(refund: &Refund) -> Result<Refusal, Refusal> {
    let code = refund.failure_code.clone().unwrap_or_default();
    Ok(Refusal::RefundFailed { code, refund: serde_json::to_value(refund)? })
}

async fn complete(mock: &Mock, provider_key: &str) -> Result<Refund, Refusal> {
    let mut tx = mock.pool.begin().await?;
    let is_first = sql::complete(&mut tx, provider_key).await?;
    let refund = sql::get(&mut tx, provider_key).await?;
    if is_first {
        announce(mock, &mut tx, &refund).await?;
    }
    tx.commit().await?;
    mock.wake_deliveries();
    Ok(refund)
}

async fn refuse_for_ever(mock: Data<Mock>, provider_key: String) -> Result<Refund, Refusal> {
    let mut tx = mock.pool.begin().await?;
    let is_new = sql::insert_cancelled(&mut tx, &provider_key).await?;
    let mut refund = sql::get(&mut tx, &provider_key).await?;
    if is_new {
        announce(&mock, &mut tx, &refund).await?;
    }
    tx.commit().await?;
    mock.wake_deliveries();
    for _ in 0..super::CANCEL_POLLS {
        if refund.status != "pending" {
            break;
        }
        tokio::time::sleep(super::CANCEL_POLL).await;
        refund = sql::get(&mut *mock.pool.acquire().await?, &provider_key).await?;
    }
    Ok(refund)
}

async fn announce(mock: &Mock, tx: &mut PgConnection, refund: &Refund) -> Result<(), Refusal> {
    events::record(mock, tx, &format!("refund.{}", refund.status), refund).await
}
