//! The guards to compare, each in the honest form in which teams ship it.

mod button;
mod lookup;
mod none;
mod payonce;
mod processing;
mod redis;
mod unique;

use super::Guard;
use super::shop::{Answer, Purchase, Shop};

/// What the server does with a press under this guard.
pub(super) async fn pay(guard: Guard, shop: &Shop, purchase: &Purchase) -> Answer {
    match guard {
        Guard::None => none::pay(shop, purchase).await,
        Guard::Button => button::pay(shop, purchase).await,
        Guard::Unique => unique::pay(shop, purchase).await,
        Guard::Redis => redis::pay(shop, purchase).await,
        Guard::Lookup => lookup::pay(shop, purchase).await,
        Guard::Processing => processing::pay(shop, purchase).await,
        Guard::Payonce => payonce::pay(shop, purchase).await,
    }
}

/// The file behind a guard, and the text it is compiled from. Lines that end in `// !reason` are
/// the ones that decide.
pub fn source(guard: Guard) -> (&'static str, &'static str) {
    match guard {
        Guard::None => ("guards/none.rs", include_str!("guards/none.rs")),
        Guard::Button => ("guards/button.rs", include_str!("guards/button.rs")),
        Guard::Unique => ("guards/unique.rs", include_str!("guards/unique.rs")),
        Guard::Redis => ("guards/redis.rs", include_str!("guards/redis.rs")),
        Guard::Lookup => ("guards/lookup.rs", include_str!("guards/lookup.rs")),
        Guard::Processing => ("guards/processing.rs", include_str!("guards/processing.rs")),
        Guard::Payonce => ("guards/payonce.rs", include_str!("guards/payonce.rs")),
    }
}
