//! A private Postgres and Redis from the binaries installed on this machine.
//!
//! With nothing configured the application brings its own servers: they listen on unix sockets
//! only, keep everything below one [`DataDir`], and start and stop with the application.
//!
//! | after …                              | the next start finds            | and …                          |
//! |--------------------------------------|---------------------------------|--------------------------------|
//! | a clean stop                         | a stopped cluster               | starts it                      |
//! | `kill -9` of the application         | a server that lives on          | uses it, stops it at the end   |
//! | `kill -9` of the server, power loss  | a stale `postmaster.pid`        | removes it, Postgres recovers  |
//! | `kill -9` in the middle of `initdb`  | a folder under a temporary name | removes it, begins again       |
//!
//! One application owns a data directory at a time, by a file lock that ends with its process.
//! Commands beside a running application join it: they use its servers and stop nothing.

mod account;
mod binaries;
mod data_dir;
mod postgres;
mod redis;
mod socket;
mod stale;

pub(crate) use binaries::redis_server;
pub use data_dir::DataDir;
pub use postgres::Postgres;
pub use redis::Redis;
