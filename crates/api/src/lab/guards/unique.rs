//! A unique constraint on the order's key, and nothing else.

use crate::lab::shop::{Answer, Paid, Purchase, Shop};

pub(super) async fn pay(shop: &Shop, purchase: &Purchase) -> Answer {
    let charge = shop.charge(purchase).await?; // !race
    // The second insert fails on lab_order_unique_key, as it should.
    let order = shop.order_once(purchase, &charge).await?; // !cart
    Ok(Paid::now(order, charge, purchase))
}
