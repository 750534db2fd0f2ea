//! An order: first a basket, then a price, then a life of its own.

mod basket;
mod price;
mod state;

pub use basket::{Basket, BasketError, BasketLine};
pub use price::{PriceChanged, PricedLine, PricedOrder, PricingError, check_expected};
pub use state::{LivePayment, OrderRefusal, OrderState, OrderStatus};
