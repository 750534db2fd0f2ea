//! What a request of the matrix is about: what has to be there before it, and what it has to have
//! done in the end, once.

use serde_json::{Value, json};

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
    let key = scene.key(deed.title().split(' ').next().unwrap());
    let order = match deed {
        Deed::Order | Deed::Account | Deed::Movement => String::new(),
        Deed::Endpoint | Deed::EndpointDeletion => String::new(),
        Deed::Payment | Deed::Cancel => scene.placed().await?,
        Deed::Replay | Deed::Refund | Deed::Receipt | Deed::Event => scene.placed().await?,
        Deed::Mail | Deed::Delivery => return Err("nobody asks for it".to_owned()),
    };
    let request = match deed {
        Deed::Order => scene.order(&key),
        Deed::Payment => scene.payment(&order, &key, "pm_card_ok"),
        Deed::Replay => {
            let paying = scene.payment(&order, &key, "pm_card_ok");
            checks::answered(&paying, scene.shop.port(), false).await?;
            scene.restart_shop();
            paying
        }
        Deed::Refund => {
            let payment = scene.paid(&order).await?;
            let wish = json!({ "restock": true, "reason": "broken" });
            scene.keyed("POST", format!("/v1/payments/{payment}/refunds"), &key).json(&wish)
        }
        Deed::Account => {
            let wish =
                json!({ "email": format!("{key}@shop.test"), "password": "correct horse battery" });
            Request::new("POST", "/v1/accounts").header("idempotency-key", &*key).json(&wish)
        }
        Deed::Movement => {
            let wish = json!({ "delta": 3, "reason": "a delivery" });
            scene
                .by_merchant("POST", "/v1/products/counter-bell/stock-movements")
                .header("idempotency-key", &*key)
                .json(&wish)
        }
        Deed::Cancel => scene.keyed("POST", format!("/v1/orders/{order}/cancel"), &key),
        Deed::Receipt => {
            scene.paid(&order).await?;
            scene.keyed("POST", format!("/v1/orders/{order}/receipts"), &key)
        }
        Deed::Endpoint => scene.endpoint(&key, "payment.declined"),
        Deed::EndpointDeletion => {
            let made = scene.key("endpoint");
            let making = scene.endpoint(&made, "payment.declined");
            let made = checks::answered(&making, scene.shop.port(), false).await?;
            let path = format!("/v1/webhook-endpoints/{}", made.text("id"));
            scene.by_merchant("DELETE", path).header("idempotency-key", &*key)
        }
        Deed::Event => {
            let event = refund_at_the_provider(scene, &order, &key).await?;
            scene.event(&key, &event).await
        }
        Deed::Mail | Deed::Delivery => unreachable!("sent by itself"),
    };
    Ok(Prepared { request, key, order })
}

/// Somebody gives money back at the provider, without us. Only its event tells.
async fn refund_at_the_provider(
    scene: &mut Scene,
    order: &str,
    key: &str,
) -> Result<Value, String> {
    scene.paid(order).await?;
    let charge = scene.charges(order).await.pop().ok_or("no charge")?;
    let wish = json!({
        "provider_key": key, "charge": charge["provider_key"], "amount": charge["amount"],
        "reference": order,
    });
    let asked = Request::new("POST", "/refunds").json(&wish).ask(scene.provider.port()).await;
    let refund = asked.map_err(|error| error.to_string())?.json();
    ensure(refund["status"] == "succeeded", || format!("the provider says {refund}"))?;
    Ok(json!({ "id": key, "type": "refund.succeeded", "data": refund }))
}

/// What it has done, once, however often it was asked for.
pub(super) async fn check(
    scene: &mut Scene,
    deed: Deed,
    prepared: &Prepared,
    answer: &Answer,
) -> Result<(), String> {
    let Prepared { key, order, .. } = prepared;
    match deed {
        Deed::Order => {
            let order = answer.text("id");
            scene.acknowledged.push(order.clone());
            count(scene, r#"select count(*) from "order" where key = $1"#, key, 1).await?;
            scene.paid(&order).await?;
            checks::invariants(scene, &order, "paid").await
        }
        Deed::Payment | Deed::Replay | Deed::Receipt => {
            checks::invariants(scene, order, "paid").await
        }
        Deed::Refund => {
            count(scene, "select count(*) from refund where key = $1", key, 1).await?;
            checks::refunded_once(scene, order).await?;
            checks::invariants(scene, order, "refunded").await
        }
        Deed::Event => {
            let taken = "select count(*) from provider_event where id = $1 and outcome = 'applied'";
            count(scene, taken, key, 1).await?;
            let written = "select count(*) from refund where provider_key = $1";
            count(scene, written, key, 1).await?;
            checks::refunded_once(scene, order).await?;
            checks::invariants(scene, order, "refunded").await
        }
        Deed::Account => {
            let made = "select count(*) from account where email = $1 || '@shop.test'";
            count(scene, made, key, 1).await?;
            checks::left_over(scene).await
        }
        Deed::Movement => {
            let moved = "select count(*) from stock_movement where key = $1 and delta = 3";
            count(scene, moved, key, 1).await?;
            checks::left_over(scene).await
        }
        Deed::Cancel => {
            let returned = "select count(*) from stock_movement where kind = 'returned'
                            and order_id = replace($1, 'ord_', '')::uuid";
            count(scene, returned, order, 2).await?;
            ensure(answer.text("status") == "cancelled", || answer.shown())?;
            checks::left_over(scene).await
        }
        Deed::Endpoint => {
            count(scene, "select count(*) from webhook_endpoint where key = $1", key, 1).await?;
            checks::left_over(scene).await
        }
        Deed::EndpointDeletion => {
            ensure(answer.status == 204, || answer.shown())?;
            let path = prepared.request.path.clone();
            let gone = scene.by_merchant("GET", path).ask(scene.shop.port()).await;
            let gone = gone.map_err(|error| error.to_string())?;
            ensure(gone.status == 404, || gone.shown())?;
            checks::left_over(scene).await
        }
        Deed::Mail | Deed::Delivery => unreachable!("nobody asks for it"),
    }
}

/// How many there are under a key.
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
