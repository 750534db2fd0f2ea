//! No entry makes or loses money.

use std::collections::BTreeMap;

use domain::{Currency, Entry, LedgerAccount, LedgerError, Money, Posting};
use proptest::prelude::*;

use crate::{currency, money, usd};

fn posting(amount: impl Strategy<Value = i64>) -> impl Strategy<Value = Posting> {
    let account = proptest::sample::select(LedgerAccount::ALL);
    (account, amount, currency()).prop_map(|(account, amount, currency)| Posting {
        account,
        amount,
        currency,
    })
}

/// Not zero, and with an opposite.
fn mirrored() -> impl Strategy<Value = i64> {
    prop_oneof![1..=3_i64, -3..=-1_i64, 1..=i64::MAX, -i64::MAX..=-1]
}

fn sums(postings: &[Posting]) -> BTreeMap<Currency, i128> {
    let mut sums = BTreeMap::new();
    for posting in postings {
        *sums.entry(posting.currency).or_default() += i128::from(posting.amount);
    }
    sums
}

proptest! {
    #[test]
    fn an_entry_exists_exactly_when_each_currency_sums_to_zero(
        postings in prop::collection::vec(posting(prop_oneof![-3..=3_i64, any::<i64>()]), 0..6),
    ) {
        let sound = !postings.is_empty()
            && postings.iter().all(|posting| posting.amount != 0)
            && sums(&postings).values().all(|&sum| sum == 0);
        prop_assert_eq!(Entry::balanced(postings).is_ok(), sound);
    }

    #[test]
    fn mirrored_postings_always_balance(
        postings in prop::collection::vec(posting(mirrored()), 1..6),
    ) {
        let mirror = postings.iter().map(|&p| Posting { amount: -p.amount, ..p });
        let all: Vec<Posting> = postings.iter().copied().chain(mirror).collect();
        prop_assert!(Entry::balanced(all).is_ok());
    }

    #[test]
    fn charges_and_refunds_balance_and_only_more_than_nothing_moves(money in money()) {
        for entry in [Entry::charge(money), Entry::refund(money)] {
            match entry {
                Ok(entry) => {
                    prop_assert!(money.is_positive());
                    prop_assert_eq!(sums(entry.postings()), [(money.currency, 0)].into());
                }
                Err(refused) => {
                    prop_assert!(!money.is_positive());
                    prop_assert_eq!(refused, LedgerError::NotPositive);
                }
            }
        }
    }
}

#[test]
fn a_refund_takes_from_the_provider_what_the_charge_brought_there() {
    let held = |entry: Result<Entry, LedgerError>| -> i64 {
        let entry = entry.expect("it moves something");
        let at_provider = |p: &&Posting| p.account == LedgerAccount::ProviderClearing;
        entry.postings().iter().filter(at_provider).map(|p| p.amount).sum()
    };
    assert_eq!(held(Entry::charge(usd(4_200))), 4_200);
    assert_eq!(held(Entry::refund(usd(4_200))), -4_200);
}

#[test]
fn postings_that_would_wrap_to_zero_do_not_balance() {
    let post = |amount| Posting { account: LedgerAccount::Sales, amount, currency: Currency::Usd };
    let wrapping = vec![post(i64::MIN), post(i64::MIN)];
    let currency = Currency::Usd;
    assert_eq!(Entry::balanced(wrapping), Err(LedgerError::Unbalanced { currency }));
}

#[test]
fn currencies_do_not_balance_each_other() {
    let post = |amount, currency| Posting { account: LedgerAccount::Sales, amount, currency };
    let mixed = vec![post(100, Currency::Usd), post(-100, Currency::Eur)];
    assert!(matches!(Entry::balanced(mixed), Err(LedgerError::Unbalanced { .. })));
}

#[test]
fn an_entry_without_movement_is_none() {
    assert_eq!(Entry::balanced(vec![]), Err(LedgerError::Empty));
    assert_eq!(Entry::charge(Money::zero(Currency::Jpy)), Err(LedgerError::NotPositive));
}
