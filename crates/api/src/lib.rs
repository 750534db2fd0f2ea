//! The Payonce server.
