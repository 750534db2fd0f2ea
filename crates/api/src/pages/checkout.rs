//! `/checkout`: one form, one key per cart content, a Pay button that is never disabled.

use askama::Template;

use super::basket::{Basket, Total};
use super::keyed::KeyFacts;
use super::layout::Layout;
use super::marks::Notice;
use super::test_cards::{TEST_CARDS, TestCard};

#[derive(Debug, Template)]
#[template(path = "checkout.html")]
pub struct Checkout {
    pub page: Layout,
    pub basket: Basket,
    pub key: KeyFacts,
    pub email: String,
    pub email_fault: Option<String>,
    /// The token of the card that is ticked.
    pub chosen: String,
    pub notice: Option<Notice>,
}

impl Checkout {
    fn can_pay(&self) -> bool {
        !self.basket.is_empty() && !self.basket.is_mixed()
    }

    fn total(&self) -> &Total {
        let total = self.basket.totals.first();
        total.expect("the form is drawn only for a cart that can be paid")
    }

    #[expect(clippy::unused_self, reason = "templates reach functions through self")]
    fn cards(&self) -> &'static [TestCard] {
        &TEST_CARDS
    }
}
