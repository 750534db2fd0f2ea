//! Webhooks: events of the provider that come in, and events of ours that go out.

pub mod signature;
pub mod target;
