//! An order: first a basket, then a price, then a life of its own.

mod basket;
mod price;
mod state;

mod refusal;

pub use basket::{Basket, BasketError, BasketLine};
pub use price::{PriceChanged, PricedLine, PricedOrder, PricingError, check_expected};
pub use refusal::OrderRefusal;
pub use state::{LivePayment, OrderState, OrderStatus};
