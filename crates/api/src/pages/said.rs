//! What the page that a form leads to says once: kept in a cookie, so that its address stays the same.

use actix_web::{HttpRequest, HttpResponse};

use super::cookies::{self, Cookie};
use super::marks::{Mark, Notice};

/// Long enough for one redirect, also a slow one.
const LIFE: u64 = 60;

/// Something to say. The words stand here; only the name travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Replayed,
    AlreadyPaid,
    ProviderDown,
    Busy,
    StillRunning,
    OrderOver,
    SoldOut,
    PriceChanged,
    CartChanged,
    Failed,
}

const NAMES: [(Said, &str); 10] = [
    (Said::Replayed, "replayed"),
    (Said::AlreadyPaid, "already_paid"),
    (Said::ProviderDown, "provider_down"),
    (Said::Busy, "busy"),
    (Said::StillRunning, "still_running"),
    (Said::OrderOver, "order_over"),
    (Said::SoldOut, "sold_out"),
    (Said::PriceChanged, "price_changed"),
    (Said::CartChanged, "cart_changed"),
    (Said::Failed, "failed"),
];

impl Said {
    /// What a refusal's code comes to on the page behind the form.
    pub(super) fn of_code(code: &str) -> Option<Self> {
        Some(match code {
            "order_already_paid" => Self::AlreadyPaid,
            "provider_unavailable" => Self::ProviderDown,
            "busy" | "rate_limited" => Self::Busy,
            "request_in_progress" | "payment_in_progress" | "refund_in_progress" => {
                Self::StillRunning
            }
            "order_expired" | "invalid_transition" => Self::OrderOver,
            "out_of_stock" => Self::SoldOut,
            "price_changed" => Self::PriceChanged,
            "internal" => Self::Failed,
            // A decline and an unknown outcome are states; the page tells them anyway.
            _ => return None,
        })
    }

    /// What the request brings along to be said.
    pub(super) fn heard(request: &HttpRequest) -> Option<Self> {
        let name = cookies::read(request.headers(), cookies::SAID)?;
        NAMES.iter().find(|(_, known)| *known == name).map(|(said, _)| *said)
    }

    /// Has it said on the page at `path`.
    pub(super) fn on(self, path: &str, request: &HttpRequest, response: &mut HttpResponse) {
        let known = NAMES.iter().find(|(said, _)| *said == self);
        let value = known.map_or("", |(_, name)| name);
        Cookie { name: cookies::SAID, value, path, life: LIFE }.set(request, response);
    }

    /// Not a second time.
    pub(super) fn forget(path: &str, request: &HttpRequest, response: &mut HttpResponse) {
        if cookies::read(request.headers(), cookies::SAID).is_some() {
            Cookie { name: cookies::SAID, value: "", path, life: 0 }.set(request, response);
        }
    }

    pub(super) fn notice(self) -> Notice {
        let nothing = "Nothing was charged.";
        let (mark, says, more) = match self {
            Self::Replayed => (
                Mark::Replay,
                "You pressed more than once.",
                "This press got the first one's answer and moved no money.",
            ),
            Self::AlreadyPaid => {
                (Mark::Replay, "This was paid before.", "We did not charge you again.")
            }
            Self::ProviderDown => (
                Mark::Refused,
                "The payment provider took nothing.",
                "Nothing was charged. Press Pay to try again.",
            ),
            Self::Busy => {
                (Mark::Refused, "The server was too busy.", "Nothing was done. Press again.")
            }
            Self::StillRunning => {
                (Mark::Quiet, "An earlier press is still at work.", "This one changed nothing.")
            }
            Self::OrderOver => (Mark::Refused, "This order cannot do that any more.", nothing),
            Self::SoldOut => (
                Mark::Refused,
                "There is not enough on the shelf.",
                "Nothing was ordered and nothing was charged.",
            ),
            Self::PriceChanged => (
                Mark::Refused,
                "The price has changed.",
                "Nothing was ordered and nothing was charged. The new total is below.",
            ),
            Self::CartChanged => (
                Mark::Plain,
                "The cart has changed since that form was drawn.",
                "Nothing was ordered. This is the cart now.",
            ),
            Self::Failed => (
                Mark::Unsure,
                "Something failed on our side.",
                "This page tells how far it got. It will not be charged twice.",
            ),
        };
        Notice::new(mark, says, more)
    }
}
