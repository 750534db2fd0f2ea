#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod key;

pub mod canonical;

pub mod fingerprint;

pub mod reply;

pub mod record;

pub mod flight;

mod packed;

pub mod memory;

pub mod sealed;

pub mod prefer;

#[cfg(feature = "postgres")]
pub mod postgres;

#[cfg(feature = "redis")]
pub mod redis;

#[cfg(feature = "actix")]
pub mod actix;

pub use fingerprint::{Claim, Fingerprint, Fingerprinter, Marks, Parts};
pub use flight::{Entry, Flights};
pub use key::{Identity, Key, KeyError, Scope};
pub use record::{Admission, Finished, Outcome, Record, State};
pub use reply::Reply;
