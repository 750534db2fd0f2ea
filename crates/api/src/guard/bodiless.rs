//! Routes without a body: what is sent to them all the same is refused, not passed over. Whoever
//! sends members counts on them.

use std::collections::BTreeMap;

use idempotency::canonical::Canonical;
use serde_json::{Value, json};

use crate::problem::{Code, Problem};

/// Nothing: an object without members.
///
/// # Errors
/// `validation_failed`, with the pointer of every member.
pub(super) fn nothing(document: &Canonical) -> Result<(), Problem> {
    let members: BTreeMap<String, Value> = document
        .read()
        .map_err(|_| Problem::invalid("", "Send no body, or an object without members."))?;
    if members.is_empty() {
        return Ok(());
    }
    let error =
        |name: &String| json!({ "pointer": member(name), "message": "There is no such member." });
    let errors: Vec<Value> = members.keys().map(error).collect();
    Err(Problem::new(Code::ValidationFailed, "This request takes no members.")
        .member("errors", errors))
}

/// One step of a JSON pointer (RFC 6901, section 3).
pub(super) fn member(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}
