//! Charges: recorded as pending under the caller's key first, completed later, never twice.

mod sql;

use actix_web::web::{Data, Json, Query};
use actix_web::{HttpRequest, HttpResponse};
use sqlx::PgConnection;

use super::card::Card;
use super::events;
use super::refusal::Refusal;
use super::wire::{CancelRequest, Charge, ChargeRequest, Filter, Page};
use super::{Mock, Turn};

pub(super) async fn create(
    mock: Data<Mock>,
    request: HttpRequest,
    body: Json<ChargeRequest>,
) -> Result<HttpResponse, Refusal> {
    let body = body.into_inner();
    mock.control.admit("POST", "/charges", Some(&body.provider_key))?;
    let card = body.check()?;
    if card == Card::Down {
        return Err(Refusal::Unavailable);
    }
    let turn = mock.run(charge(mock.clone(), body, card)).await?;
    mock.answer(&request, turn).await
}

pub(super) async fn cancel(
    mock: Data<Mock>,
    body: Json<CancelRequest>,
) -> Result<HttpResponse, Refusal> {
    let CancelRequest { provider_key } = body.into_inner();
    mock.control.admit("POST", "/charges/cancel", Some(&provider_key))?;
    CancelRequest { provider_key: provider_key.clone() }.check()?;
    let charge = mock.run(refuse_for_ever(mock.clone(), provider_key)).await?;
    mock.control.latency().await;
    match charge.status.as_str() {
        "pending" => Err(Refusal::KeyInUse),
        _ => Ok(HttpResponse::Ok().json(charge)),
    }
}

pub(super) async fn list(mock: Data<Mock>, filter: Query<Filter>) -> Result<HttpResponse, Refusal> {
    mock.control.admit("GET", "/charges", filter.provider_key.as_deref())?;
    let data = sql::list(&mut *mock.pool.acquire().await?, &filter).await?;
    mock.control.latency().await;
    let full = data.len() == filter.limit() as usize;
    let next = data.last().filter(|_| full).map(|charge| charge.id.clone());
    Ok(HttpResponse::Ok().json(Page { data, next }))
}

/// Finishes what a dead process left pending; the card decided the outcome long ago.
pub(super) async fn complete_pending(mock: &Mock, older_than_seconds: f64) -> Result<(), Refusal> {
    let keys = sql::pending(&mut *mock.pool.acquire().await?, older_than_seconds).await?;
    for key in keys {
        complete(mock, &key).await?;
    }
    Ok(())
}

async fn charge(
    mock: Data<Mock>,
    body: ChargeRequest,
    card: Card,
) -> Result<Turn<Charge>, Refusal> {
    if let Some(earlier) = begin(&mock, &body).await? {
        return repeat(earlier, &body).map(Turn::again);
    }
    mock.control.latency().await;
    tokio::time::sleep(card.delay()).await;
    let charge = complete(&mock, &body.provider_key).await?;
    Ok(Turn::first(charge, card.manner()))
}

/// Commits the key before anything slow happens; what stands there already is returned.
async fn begin(mock: &Mock, body: &ChargeRequest) -> Result<Option<Charge>, Refusal> {
    let mut tx = mock.pool.begin().await?;
    let is_new = sql::insert(&mut tx, body).await?;
    let charge = sql::get(&mut tx, &body.provider_key).await?;
    if is_new {
        announce(mock, &mut tx, &charge).await?;
    }
    tx.commit().await?;
    Ok((!is_new).then_some(charge))
}

/// A second request under a key gets the result of the first, or the reason why not.
fn repeat(earlier: Charge, body: &ChargeRequest) -> Result<Charge, Refusal> {
    match earlier.status.as_str() {
        "cancelled" => Err(Refusal::Cancelled(serde_json::to_value(&earlier)?)),
        _ if !body.made(&earlier) => Err(Refusal::KeyReused),
        "pending" => Err(Refusal::KeyInUse),
        _ => Ok(earlier),
    }
}

/// Whoever completes a charge first announces it; for all others it is what it has become.
async fn complete(mock: &Mock, provider_key: &str) -> Result<Charge, Refusal> {
    let mut tx = mock.pool.begin().await?;
    let mut charge = sql::get(&mut tx, provider_key).await?;
    let card = charge.payment_method.as_deref().and_then(Card::parse);
    let decline_code = card.and_then(Card::decline_code);
    let is_first = sql::complete(&mut tx, provider_key, decline_code).await?;
    charge = sql::get(&mut tx, provider_key).await?;
    if is_first {
        announce(mock, &mut tx, &charge).await?;
    }
    tx.commit().await?;
    mock.wake_deliveries();
    Ok(charge)
}

/// A key nobody charged under yet is taken, so that no later charge can have it. One that is
/// known keeps its result; one that is pending gets a moment to reach it.
async fn refuse_for_ever(mock: Data<Mock>, provider_key: String) -> Result<Charge, Refusal> {
    let mut tx = mock.pool.begin().await?;
    let is_new = sql::insert_cancelled(&mut tx, &provider_key).await?;
    let mut charge = sql::get(&mut tx, &provider_key).await?;
    if is_new {
        announce(&mock, &mut tx, &charge).await?;
    }
    tx.commit().await?;
    mock.wake_deliveries();
    for _ in 0..super::CANCEL_POLLS {
        if charge.status != "pending" {
            break;
        }
        tokio::time::sleep(super::CANCEL_POLL).await;
        charge = sql::get(&mut *mock.pool.acquire().await?, &provider_key).await?;
    }
    Ok(charge)
}

async fn announce(mock: &Mock, tx: &mut PgConnection, charge: &Charge) -> Result<(), Refusal> {
    events::record(mock, tx, &format!("charge.{}", charge.status), charge).await
}
