//! The pages, driven as a browser without scripts would, and by a real one: every form that is
//! shipped, pressed more often than it should be, at the wrong time, from the wrong place.

mod amounts;
mod browser;
mod carts;
mod checkout;
mod clicked;
mod forms;
mod guests;
mod people;
mod pressed;
mod problems;
mod seen;
mod statement;

pub(crate) use browser::{Browser, Form, From, Page};
