//! The shop's pages: page structs beside their handlers, logic here and not in the templates.

mod routes;

mod cookies;
mod posted;
mod response;
mod said;
mod visitor;

mod layout;
mod marks;
mod moment;
mod words;

pub mod assets;
mod keyed;
mod test_cards;

mod basket;
mod cart;
mod checkout;
mod error;
mod inspect;
mod lab;
mod mailbox;
mod order;
mod orders;
mod preferences;
mod pressed;
mod problems;
mod redrawn;
mod shop;
mod sign_in;
mod statement;

pub use basket::{Basket, Line, Total};
pub use cart::Cart;
pub use checkout::Checkout;
pub use error::{ErrorPage, Link};
pub use inspect::{Answer, Event, Fact, Inspect, KeyName, Node, OrderName, Place, Stop, Subject};
pub use keyed::KeyFacts;
pub use layout::{Layout, Section, Theme};
pub use mailbox::{Delivery, Mail, Mailbox};
pub use marks::{Chip, Mark, Notice};
pub use moment::Moment;
pub use order::{
    OrderLine, OrderPage, OrderView, Press, ProviderStep, RefundLine, RefundOffer, State, Stray,
};
pub use orders::{OrderRow, Orders, Standing};
pub use problems::{ProblemIndex, ProblemPage};
pub use redrawn::{Reason, Redrawn, RedrawnForm};
pub use routes::{configure, nowhere};
pub use shop::{Choice, Product, Shop};
pub use sign_in::SignIn;
pub use statement::{Statement, StatementEntry};
pub use words::Words;

#[cfg(test)]
mod tests;
