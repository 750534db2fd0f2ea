//! Webhooks: events of the provider that come in, and events of ours that go out.

pub mod deliver;
pub mod endpoints;
pub mod inbound;
pub mod signature;
pub mod target;
