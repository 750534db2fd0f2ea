//! What a request of the matrix is about: what has to be there before it, and what it has to have
//! done in the end, once.

use serde_json::json;

use super::checks::{self, ensure};
use super::rows::Deed;
use super::scene::Scene;
use crate::process::{Answer, Request};

/// A request to be sent until it is answered.
pub(super) struct Prepared {
    pub(super) request: Request,
    /// The key, or the event's id.
    pub(super) key: String,
    /// The order that it is about, if there is one.
    pub(super) order: String,
}

pub(super) async fn prepare(scene: &mut Scene, deed: Deed) -> Result<Prepared, String> {
    let key = scene.key(deed.word());
    let order = if deed.is_about_an_order() { scene.placed().await? } else { String::new() };
    let request = match deed {
        Deed::Order => scene.order(&key),
        Deed::Payment => scene.payment(&order, &key, "pm_card_ok"),
        Deed::Replay => paid_and_forgotten(scene, &order, &key).await?,
        Deed::Refund => refund(scene, &order, &key).await?,
        Deed::Account => account(&key),
        Deed::Movement => movement(scene, &key),
        Deed::Cancel => scene.keyed("POST", format!("/v1/orders/{order}/cancel"), &key),
        Deed::Receipt => {
            scene.paid(&order).await?;
            scene.keyed("POST", format!("/v1/orders/{order}/receipts"), &key)
        }
        Deed::Endpoint => scene.endpoint(&key, "payment.declined"),
        Deed::EndpointDeletion => deletion(scene, &key).await?,
        Deed::Event => refunded_elsewhere(scene, &order, &key).await?,
        Deed::Mail | Deed::Delivery => return Err("nobody asks for it".to_owned()),
    };
    Ok(Prepared { request, key, order })
}

async fn paid_and_forgotten(scene: &mut Scene, order: &str, key: &str) -> Result<Request, String> {
    let paying = scene.payment(order, key, "pm_card_ok");
    checks::answered(&paying, scene.shop.port(), false).await?;
    scene.restart_shop();
    Ok(paying)
}

async fn refund(scene: &mut Scene, order: &str, key: &str) -> Result<Request, String> {
    let payment = scene.paid(order).await?;
    let wish = json!({ "restock": true, "reason": "broken" });
    Ok(scene.keyed("POST", format!("/v1/payments/{payment}/refunds"), key).json(&wish))
}

fn account(key: &str) -> Request {
    let wish = json!({ "email": format!("{key}@shop.test"), "password": "correct horse battery" });
    Request::new("POST", "/v1/accounts").header("idempotency-key", key).json(&wish)
}

fn movement(scene: &Scene, key: &str) -> Request {
    scene
        .by_merchant("POST", "/v1/products/counter-bell/stock-movements")
        .header("idempotency-key", key)
        .json(&json!({ "delta": 3, "reason": "a delivery" }))
}

async fn deletion(scene: &mut Scene, key: &str) -> Result<Request, String> {
    let made = scene.key("endpoint");
    let making = scene.endpoint(&made, "payment.declined");
    let made = checks::answered(&making, scene.shop.port(), false).await?;
    let path = format!("/v1/webhook-endpoints/{}", made.text("id"));
    Ok(scene.by_merchant("DELETE", path).header("idempotency-key", key))
}

/// Somebody gives money back at the provider, without us. Only its event tells.
async fn refunded_elsewhere(scene: &mut Scene, order: &str, key: &str) -> Result<Request, String> {
    scene.paid(order).await?;
    let charge = scene.charges(order).await.pop().ok_or("no charge")?;
    let wish = json!({
        "provider_key": key, "charge": charge["provider_key"], "amount": charge["amount"],
        "reference": order,
    });
    let asked = Request::new("POST", "/refunds").json(&wish).ask(scene.provider.port()).await;
    let refund = asked.map_err(|error| error.to_string())?.json();
    ensure(refund["status"] == "succeeded", || format!("the provider says {refund}"))?;
    let event = json!({ "id": key, "type": "refund.succeeded", "data": refund });
    Ok(scene.event(key, &event).await)
}

/// What it has done, once, however often it was asked for.
pub(super) async fn check(
    scene: &mut Scene,
    deed: Deed,
    prepared: &Prepared,
    answer: &Answer,
) -> Result<(), String> {
    for (statement, right) in made(deed) {
        count(scene, statement, &prepared.key, *right).await?;
    }
    let order = &prepared.order;
    match deed {
        Deed::Order => {
            let order = answer.text("id");
            scene.acknowledged.push(order.clone());
            scene.paid(&order).await?;
            checks::invariants(scene, &order, "paid").await
        }
        Deed::Payment | Deed::Replay | Deed::Receipt => {
            checks::invariants(scene, order, "paid").await
        }
        Deed::Refund | Deed::Event => {
            checks::refunded_once(scene, order).await?;
            checks::invariants(scene, order, "refunded").await
        }
        Deed::Cancel => {
            ensure(answer.text("status") == "cancelled", || answer.shown())?;
            checks::left_over(scene).await
        }
        Deed::EndpointDeletion => gone(scene, &prepared.request.path).await,
        Deed::Account | Deed::Movement | Deed::Endpoint => checks::left_over(scene).await,
        Deed::Mail | Deed::Delivery => unreachable!("nobody asks for it"),
    }
}

/// Statements that count what was made under a key, and how much is right.
fn made(deed: Deed) -> &'static [(&'static str, i64)] {
    match deed {
        Deed::Order => &[(r#"select count(*) from "order" where key = $1"#, 1)],
        Deed::Payment | Deed::Replay => &[("select count(*) from payment where key = $1", 1)],
        Deed::Refund => &[("select count(*) from refund where key = $1", 1)],
        Deed::Account => {
            &[("select count(*) from account where email = $1 || '@shop.test' and key = $1", 1)]
        }
        Deed::Movement => {
            &[("select count(*) from stock_movement where key = $1 and delta = 3", 1)]
        }
        // One for each line.
        Deed::Cancel => &[(
            "select count(*) from order_line l join idempotency_record r
                 on r.resource = '/v1/orders/ord_' || replace(l.order_id::text, '-', '')
             where r.key = $1 and l.returned_at is not null",
            2,
        )],
        Deed::Endpoint => &[("select count(*) from webhook_endpoint where key = $1", 1)],
        Deed::Event => &[
            ("select count(*) from provider_event where id = $1 and outcome = 'applied'", 1),
            ("select count(*) from refund where provider_key = $1", 1),
        ],
        Deed::Receipt | Deed::EndpointDeletion | Deed::Mail | Deed::Delivery => &[],
    }
}

async fn count(
    scene: &Scene,
    statement: &'static str,
    key: &str,
    right: i64,
) -> Result<(), String> {
    let mut look = scene.look().await;
    let found = sqlx::query_scalar(statement).bind(key).fetch_one(&mut look).await;
    let found: i64 = found.map_err(|error| error.to_string())?;
    ensure(found == right, || format!("{found} instead of {right}: {statement} ({key})"))
}

async fn gone(scene: &Scene, endpoint: &str) -> Result<(), String> {
    let asked = scene.by_merchant("GET", endpoint).ask(scene.shop.port()).await;
    let answer = asked.map_err(|error| error.to_string())?;
    ensure(answer.status == 404, || answer.shown())?;
    checks::left_over(scene).await
}
