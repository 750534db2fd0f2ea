//! `/orders/{id}`: what became of the money, told truthfully in every state.

pub(super) mod act;
pub(super) mod own;
pub(super) mod show;
mod sql;
mod view;

use askama::Template;
use domain::Money;

pub use view::{OrderLine, OrderView, Press, ProviderStep, RefundLine, RefundOffer, State, Stray};

use super::keyed::KeyFacts;
use super::layout::Layout;
use super::marks::Notice;
use super::test_cards::{TEST_CARDS, TestCard};

#[derive(Debug, Template)]
#[template(path = "orders/order.html")]
pub struct OrderPage {
    pub page: Layout,
    pub order: OrderView,
    pub state: State,
    pub notice: Option<Notice>,
    /// What we asked the provider and when; the last step is the one to come.
    pub asked: Vec<ProviderStep>,
    /// Present while the order can be paid, with the key of the next attempt.
    pub pay: Option<KeyFacts>,
    pub refunds: Vec<RefundLine>,
    /// What stays paid once refunds are taken off; `None` while nothing went back.
    pub kept: Option<Money>,
    pub strays: Vec<Stray>,
    pub presses: Vec<Press>,
    /// The key under which the order may be cancelled, while it may.
    pub cancel: Option<String>,
    pub refund: Option<RefundOffer>,
}

impl OrderPage {
    fn headline(&self) -> String {
        let total = self.order.total;
        match &self.state {
            State::Pending { .. } => format!("Not paid yet, {total}"),
            State::Processing => format!("Charging {total}"),
            State::Unknown => "We do not know yet".to_owned(),
            State::Declined { .. } => "The bank said no".to_owned(),
            State::Paid { .. } => format!("Paid once, {total}"),
            State::PartlyRefunded { back, .. } => format!("{back} went back"),
            State::Refunded { .. } => format!("All {total} went back"),
            State::Cancelled => "This order was cancelled".to_owned(),
            State::Expired => "This order ran out of time".to_owned(),
        }
    }

    fn lead(&self) -> String {
        let (number, total) = (self.order.number(), self.order.total);
        match &self.state {
            State::Pending { until } => format!(
                "Order {number} is set aside for you until {} UTC. Nothing was charged.",
                until.minute()
            ),
            State::Processing => format!(
                "We asked for {total} and the provider is at work. It will not be charged twice."
            ),
            State::Unknown => format!(
                "We asked for {total} and no answer came back. Your card may have been charged \
                 once. It will not be charged twice."
            ),
            State::Declined { for_want_of_funds } => {
                let why = if *for_want_of_funds {
                    " There was not enough money on the card."
                } else {
                    ""
                };
                format!(
                    "Nothing was charged.{why} Order {number} is still yours to pay: take another card."
                )
            }
            State::Paid { .. } => format!("Order {number} is yours. {}", self.press_words()),
            State::PartlyRefunded { back, card } => {
                format!("You paid {total} once. {back} of it went back to {card}.")
            }
            State::Refunded { card } => {
                format!("You paid {total} once, and all of it went back to {card}.")
            }
            State::Cancelled => {
                format!("Its things are back on the shelf. {}", self.money_words())
            }
            State::Expired => format!(
                "Nobody paid it in time, so its things are back on the shelf. {}",
                self.money_words()
            ),
        }
    }

    /// An order that ended unpaid; what came all the same is told below.
    fn money_words(&self) -> &'static str {
        if self.strays.is_empty() { "Nothing was charged." } else { "Money came too late for it." }
    }

    fn press_words(&self) -> String {
        match self.presses.iter().map(|press| press.times).sum::<i64>() {
            ..=1 => "Your card was charged once.".to_owned(),
            2 => "You pressed Pay two times; only the first press moved money.".to_owned(),
            presses => {
                format!("You pressed Pay {presses} times; only the first press moved money.")
            }
        }
    }

    fn total_words(&self) -> String {
        match &self.state {
            State::Paid { card }
            | State::PartlyRefunded { card, .. }
            | State::Refunded { card } => {
                format!("Charged to {card}")
            }
            State::Processing => "Being charged".to_owned(),
            State::Unknown => "Asked for".to_owned(),
            State::Pending { .. } | State::Declined { .. } => "To pay".to_owned(),
            State::Cancelled | State::Expired if self.strays.is_empty() => {
                "Never charged".to_owned()
            }
            State::Cancelled | State::Expired => "Total".to_owned(),
        }
    }

    fn pay_heading(&self) -> &'static str {
        match self.state {
            State::Declined { .. } => "Try another card",
            _ => "Pay with a test card",
        }
    }

    fn advice(&self) -> Option<String> {
        match &self.state {
            State::Processing => Some(
                "Nothing is needed. If you press Pay again, you come back to this page.".to_owned(),
            ),
            State::Unknown => Some(self.unknown_advice()),
            _ => None,
        }
    }

    fn unknown_advice(&self) -> String {
        let mail = match &self.order.email {
            Some(email) => format!(", and we write to {email} once it is paid"),
            None => String::new(),
        };
        format!(
            "Nothing is needed. Your things are set aside for you until this is settled{mail}. \
             If you press Pay again, you come back to this page."
        )
    }

    /// Seconds after which the page asks again by itself; settled orders do not.
    fn looks_again_after(&self) -> Option<u32> {
        match self.state {
            State::Processing => Some(2),
            State::Unknown => Some(5),
            _ => None,
        }
    }

    #[expect(clippy::unused_self, reason = "templates reach functions through self")]
    fn cards(&self) -> &'static [TestCard] {
        &TEST_CARDS
    }
}
