//! The rules of Payonce, pure.
