//! Keys of forms: minted from what the form is about, so that drawing it again changes nothing.

use domain::{CartId, OrderId};
use idempotency::canonical::Canonical;
use idempotency::fingerprint::Body;
use idempotency::prefer::WAIT_DEFAULT;
use idempotency::{Identity, Key, KeyError, Parts, Scope};
use serde::Serialize;
use tokio::time::Instant;

use crate::app::App;
use crate::guard::SECRET_MEMBERS;
use crate::operation::Asked;
use crate::problem::{Code, Problem};
use crate::secrets::Purpose;

/// A form's idempotency key and the facts folded away under it.
#[derive(Debug, Clone)]
pub struct KeyFacts {
    pub key: String,
    /// "this cart. The same cart always gets the same key"
    pub made_from: String,
    /// "this cart and $42.00. Another cart under this key is refused"
    pub bound_to: String,
    /// "unused", or what the record says.
    pub state: String,
}

impl KeyFacts {
    pub(super) fn short(&self) -> String {
        short(&self.key)
    }

    pub(super) fn inspect(&self) -> String {
        format!("/inspect?q={}", self.key)
    }
}

/// `7f3a…c21e`: enough to recognise a key by eye.
pub(super) fn short(key: &str) -> String {
    let count = key.chars().count();
    if count <= 12 {
        return key.to_owned();
    }
    let head: String = key.chars().take(4).collect();
    let tail: String = key.chars().skip(count - 4).collect();
    format!("{head}…{tail}")
}

/// The key of the order that a cart becomes: the same cart has the same key, after a refresh, on
/// the way back and in a second tab. A refusal is final under its key, so the cart's next try has
/// another.
pub(super) fn of_cart(app: &App, cart: CartId, content: &str, refused: usize) -> String {
    mint(app, "cart", &[cart.uuid().as_bytes(), content.as_bytes(), &count(refused)])
}

/// The key of what a page offers to do with an order; what ended before makes the next one another.
pub(super) fn of_order(app: &App, action: &str, order: OrderId, ended: usize) -> String {
    mint(app, action, &[order.uuid().as_bytes(), &count(ended)])
}

/// The key of the form that makes an account: one for each session.
pub(super) fn of_session(app: &App, token: &str) -> String {
    mint(app, "account", &[token.as_bytes()])
}

/// What a form does is filed under what a client of the API would have sent.
pub(super) fn ask(
    app: &App,
    scope: Scope,
    key: Key,
    path: &str,
    body: Option<&impl Serialize>,
) -> Result<Asked, Problem> {
    let document = match body {
        Some(body) => Some(canonical(body)?),
        None => None,
    };
    let parts = Parts {
        method: "POST",
        path,
        query: "",
        content_type: document.as_ref().map(|_| "application/json"),
        body: document.as_ref().map_or(Body::Empty, Body::Json),
    };
    let claim = app.fingerprinter.claim(Identity { scope, key }, parts, SECRET_MEMBERS);
    Ok(Asked { claim, path: path.to_owned(), wait: WAIT_DEFAULT, arrived: Instant::now() })
}

/// A hidden field that is not a key was not drawn by us.
pub(super) fn read(hidden: &str) -> Result<Key, Problem> {
    Key::from_bare(hidden.as_bytes()).map_err(not_a_key)
}

/// The key of one step of a form that takes two: `KEY/order`, `KEY/pay`.
pub(super) fn step(hidden: &str, step: &str) -> Result<Key, Problem> {
    Key::from_bare(format!("{hidden}/{step}").as_bytes()).map_err(not_a_key)
}

fn not_a_key(error: KeyError) -> Problem {
    let (code, what) = match error {
        KeyError::Missing | KeyError::Empty => (Code::IdempotencyKeyMissing, "is missing"),
        _ => (Code::IdempotencyKeyInvalid, "is malformed"),
    };
    Problem::new(code, format!("The form's key {what}. Nothing was done."))
}

fn canonical(body: &impl Serialize) -> Result<Canonical, Problem> {
    let bytes = serde_json::to_vec(body).map_err(|error| Problem::internal(&error))?;
    Canonical::parse(&bytes).map_err(|error| Problem::internal(&error))
}

fn mint(app: &App, what: &str, parts: &[&[u8]]) -> String {
    let parts: Vec<&[u8]> = std::iter::once(what.as_bytes()).chain(parts.iter().copied()).collect();
    hex::encode(&app.secrets.sign(Purpose::FormKey, &parts)[..16])
}

fn count(times: usize) -> [u8; 8] {
    (times as u64).to_be_bytes()
}
