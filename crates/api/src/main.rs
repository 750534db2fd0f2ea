//! The `payonce` command.

fn main() {}
