//! What a run came to, judged by the books and by what people saw, never by the script.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::browser::{Press, Saw};
use super::ledger::Books;
use super::shop::PRICE;
use super::spec::Fault;

/// From best to worst, so that the worst of several runs is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Charged once, served once.
    Once,
    /// Turned away, as it should be; nothing charged for it.
    Refused,
    /// Told "paid" for another cart.
    Wrong,
    /// Nobody can finish it.
    Stuck,
    /// Charged, and got nothing.
    Lost,
    /// Charged more than once.
    Twice,
}

impl Outcome {
    /// In the order of the legend.
    pub const ALL: [Self; 6] =
        [Self::Twice, Self::Lost, Self::Stuck, Self::Wrong, Self::Once, Self::Refused];

    /// In texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Refused => "refused",
            Self::Wrong => "wrong",
            Self::Stuck => "stuck",
            Self::Lost => "lost",
            Self::Twice => "twice",
        }
    }

    /// Whether it came out right.
    pub const fn is_right(self) -> bool {
        matches!(self, Self::Once | Self::Refused)
    }

    /// The colour family of the stylesheet.
    pub const fn tone(self) -> &'static str {
        match self {
            Self::Once | Self::Refused => "once",
            Self::Wrong | Self::Stuck => "unsure",
            Self::Lost | Self::Twice => "twice",
        }
    }
}

/// What a run came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verdict {
    pub outcome: Outcome,
    pub books: Books,
    /// What each press saw; of a crowd, of the customer it went worst for.
    pub presses: Vec<Press>,
    /// How many charges a correct shop would have made, how many orders.
    pub expected: usize,
    /// Everybody, and those it went wrong for.
    pub customers: usize,
    pub harmed: usize,
    /// The customer it went worst for.
    pub worst: u32,
    /// What the card of that customer was charged, in cents.
    pub charged: i64,
}

/// Judges.
pub(super) fn judge(fault: Fault, books: Books, presses: Vec<Press>) -> Verdict {
    let mut people: BTreeMap<u32, Vec<Press>> = BTreeMap::new();
    for press in presses {
        people.entry(press.customer).or_default().push(press);
    }
    let customers = people.len();
    let mut worst = (Outcome::Once, 0);
    let mut harmed = 0;
    let mut expected = 0;
    for (customer, presses) in &people {
        let outcome = of_customer(fault, &books, *customer, presses);
        expected += if fault == Fault::Cart && outcome == Outcome::Once { 2 } else { 1 };
        harmed += usize::from(!outcome.is_right());
        if outcome > worst.0 {
            worst = (outcome, *customer);
        }
    }
    let (outcome, worst) = worst;
    let of_worst = books.charges.iter().filter(|charge| charge.customer == worst);
    let charged = of_worst.map(|charge| charge.amount).sum();
    let presses = people.remove(&worst).unwrap_or_default();
    Verdict { outcome, books, presses, expected, customers, harmed, worst, charged }
}

fn of_customer(fault: Fault, books: &Books, customer: u32, presses: &[Press]) -> Outcome {
    let carts: &[u32] = if fault == Fault::Cart { &[0, 1] } else { &[0] };
    let outcomes = carts.iter().map(|cart| {
        let charges = books.charges.iter().filter(|c| c.customer == customer && c.cart == *cart);
        let orders = books.orders.iter().filter(|o| o.customer == customer && o.cart == *cart);
        let saw: Vec<Saw> = presses.iter().filter(|p| p.cart == *cart).map(|p| p.saw).collect();
        of_cart(charges.count(), orders.count(), &saw)
    });
    outcomes.max().unwrap_or(Outcome::Once)
}

fn of_cart(charges: usize, orders: usize, saw: &[Saw]) -> Outcome {
    let waits = saw.last().is_some_and(|saw| matches!(saw, Saw::StillWorking | Saw::NoAnswer));
    match (charges, orders) {
        (2.., _) => Outcome::Twice,
        // Bought, and told that it failed: she will try again, in vain.
        (1, 1) if saw.last() == Some(&Saw::Failed) => Outcome::Stuck,
        (1, 1) => Outcome::Once,
        (1, 2..) => Outcome::Twice,
        (1, 0) if waits => Outcome::Stuck,
        (1, 0) => Outcome::Lost,
        (0, _) if saw.contains(&Saw::PaidOther) => Outcome::Wrong,
        (0, _) if saw.last() == Some(&Saw::KeyReused) => Outcome::Refused,
        (0, _) => Outcome::Stuck,
    }
}

/// `$84.00`
pub fn dollars(cents: i64) -> String {
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// What one bell costs.
pub const fn price() -> i64 {
    PRICE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_charges_are_twice_whatever_anybody_saw() {
        assert_eq!(of_cart(2, 1, &[Saw::Paid, Saw::Failed]), Outcome::Twice);
        assert_eq!(of_cart(2, 2, &[Saw::Paid, Saw::Paid]), Outcome::Twice);
    }

    #[test]
    fn a_charge_without_goods_is_lost_or_stuck() {
        assert_eq!(of_cart(1, 0, &[Saw::ConnectionLost, Saw::StillWorking]), Outcome::Stuck);
        assert_eq!(of_cart(1, 0, &[Saw::Failed]), Outcome::Lost);
        assert_eq!(of_cart(1, 1, &[Saw::NoAnswer, Saw::Failed]), Outcome::Stuck);
    }

    #[test]
    fn only_a_refusal_of_the_key_is_right_without_a_charge() {
        assert_eq!(of_cart(0, 0, &[Saw::KeyReused]), Outcome::Refused);
        assert_eq!(of_cart(0, 0, &[Saw::Declined, Saw::Declined]), Outcome::Stuck);
        assert_eq!(of_cart(0, 0, &[Saw::PaidOther]), Outcome::Wrong);
    }
}
