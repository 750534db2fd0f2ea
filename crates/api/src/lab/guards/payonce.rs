//! Payonce: the product's own two operations, called as the checkout page calls them. The order
//! runs under `KEY/order`, the payment under `KEY/pay`.

use idempotency::canonical::Canonical;
use idempotency::fingerprint::Body;
use idempotency::{Claim, Identity, Key, Parts, prefer};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::accounts::{Account, Role};
use crate::lab::shop::{Answer, Paid, Purchase, Refused, Shop};
use crate::operation::{self, Answer as Told, Asked, Source};
use crate::orders::create::{Create as CreateOrder, CreateOrder as Order, CreateOrderLine};
use crate::payments::create::{Create as CreatePayment, CreatePayment as Payment};

pub(super) async fn pay(shop: &Shop, purchase: &Purchase) -> Answer {
    let order = match &purchase.order {
        Some(order) => order.clone(),
        None => place(shop, purchase).await?,
    };
    let body = Payment { payment_method: purchase.card.clone(), amount: None };
    let asked = asked(shop, purchase, "pay", &format!("/v1/orders/{order}/payments"), &body)?;
    let operation = CreatePayment {
        account: account(shop, purchase),
        order: Ok(parsed(&order)?),
        body: Ok(body),
    };
    // One record, claimed before any money moves; everybody else gets its answer.
    let told = operation::perform(&shop.app, asked, operation).await; // !race
    let (paid, again) = read(told).map_err(|refused| refused.about(&order))?;
    Ok(Paid { order, charge: text(&paid, "id"), cart: purchase.cart, again })
}

async fn place(shop: &Shop, purchase: &Purchase) -> Result<String, Refused> {
    let line = CreateOrderLine { sku: shop.sku(purchase), quantity: purchase.quantity() };
    let body = Order {
        lines: vec![line],
        expected_total: None,
        email: Some("ada@payonce.test".to_owned()),
        note: None,
    };
    let asked = asked(shop, purchase, "order", "/v1/orders", &body)?;
    let operation = CreateOrder { account: account(shop, purchase), cart: None, body: Ok(body) };
    let (order, _) = read(operation::perform(&shop.app, asked, operation).await)?; // !cart
    Ok(text(&order, "id"))
}

/// The same claim that a request with this header and this body would make.
fn asked(
    shop: &Shop,
    purchase: &Purchase,
    part: &str,
    path: &str,
    body: &impl Serialize,
) -> Result<Asked, Refused> {
    let json = serde_json::to_vec(body).map_err(Refused::broken)?;
    let document = Canonical::parse(&json).map_err(Refused::broken)?;
    let key =
        Key::from_bare(format!("{}/{part}", purchase.key).as_bytes()).map_err(Refused::broken)?;
    let identity = Identity { scope: account(shop, purchase).scope(), key };
    let parts = Parts {
        method: "POST",
        path,
        query: "",
        content_type: Some("application/json"),
        body: Body::Json(&document),
    };
    let claim: Claim = shop.app.fingerprinter.claim(identity, parts, &[]);
    Ok(Asked { claim, path: path.to_owned(), wait: prefer::WAIT_DEFAULT, arrived: Instant::now() })
}

fn read(told: Told) -> Result<(Value, bool), Refused> {
    match told {
        Told::Finished(finished, source) => {
            let body: Value =
                serde_json::from_slice(finished.reply.body()).map_err(Refused::broken)?;
            match finished.reply.status() {
                200..300 => Ok((body, source != Source::Executed)),
                402 => Err(Refused::Declined),
                _ => Err(Refused::Other(text(&body, "code"))),
            }
        }
        Told::Problem(problem) => Err(match problem.code.as_str() {
            "request_in_progress" | "outcome_unknown" => Refused::InProgress,
            "idempotency_key_reused" => Refused::KeyReused,
            "idempotency_key_expired" => Refused::PaidBefore,
            other => Refused::Other(other.to_owned()),
        }),
    }
}

fn account(shop: &Shop, purchase: &Purchase) -> Account {
    Account {
        id: domain::AccountId::from_uuid(purchase.account),
        role: Role::Guest,
        email: None,
        name: None,
        created_at: shop.app.clock.now(),
    }
}

fn parsed(order: &str) -> Result<domain::OrderId, Refused> {
    order.parse().map_err(|_| Refused::Other("order".to_owned()))
}

fn text(body: &Value, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
