//! The rules of Payonce, and nothing else.
//!
//! This crate is pure: no async, no IO, no clock, no randomness. Time and identifiers come in as
//! parameters, decisions go out as values, so every rule can be tested by calling it. Callers
//! read rows or requests, ask here what may happen, and write the answer down.
//!
//! Three habits run through all modules:
//! - **Parse once.** A [`Sku`], a [`Quantity`] or an [`OrderId`] is valid because it exists.
//! - **Money never guesses.** Integers in minor units, checked arithmetic, one currency at a time.
//! - **Transitions are total.** Each takes the state it finds and returns the next one or a named
//!   refusal; no match has a wildcard arm, so a new state does not compile until every rule has
//!   an opinion about it.

#![warn(missing_docs)]

mod words;

mod id;
mod money;

mod catalog;
mod order;
mod payment;
mod refund;

mod ledger;

pub use catalog::{Offer, Quantity, QuantityError, Sku, SkuError};
pub use id::{
    AccountId, CartId, EventId, IdError, LedgerTransactionId, OrderId, PaymentId, ReceiptId,
    RefundId, StockMovementId, WebhookEndpointId,
};
pub use ledger::{Entry, LedgerAccount, LedgerError, Posting};
pub use money::{Currency, DecimalError, Money, MoneyError};
pub use order::{
    Basket, BasketError, BasketLine, LivePayment, OrderRefusal, OrderState, OrderStatus,
    PriceChanged, PricedLine, PricedOrder, PricingError, check_expected,
};
pub use payment::{
    ChargeOutcome, DeclineCode, IllegalTransition, NotCaptured, PaymentMethod, PaymentMethodError,
    PaymentStatus,
};
pub use refund::{
    IllegalRefundTransition, InvalidRefund, RefundOutcome, RefundRefusal, RefundStatus, Refundable,
    plan_refund,
};
pub use words::UnknownWord;
