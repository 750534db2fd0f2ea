//! The ledger: money moves from one account to another and is never made or lost on the way.
//!
//! An [`Entry`] can only be had balanced, so any set of entries sums to zero in each currency.

use crate::money::{Currency, Money};
use crate::words::words;

words! {
    /// The accounts of the ledger.
    LedgerAccount {
        /// What the provider holds for us.
        ProviderClearing = "provider_clearing",
        /// What was sold.
        Sales = "sales",
        /// What was given back.
        Refunds = "refunds",
    }
}

/// One side of a movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// The account that changes.
    pub account: LedgerAccount,
    /// By how much, in minor units; a debit is positive.
    pub amount: i64,
    /// The currency the minor units belong to.
    pub currency: Currency,
}

/// A balanced set of postings, written together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    postings: Vec<Posting>,
}

/// Why postings are not an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// An entry without postings says nothing.
    #[error("an entry has postings")]
    Empty,
    /// A posting of nothing says nothing.
    #[error("a posting is not zero")]
    ZeroPosting,
    /// The postings of this currency do not sum to zero.
    #[error("the postings in {} do not balance", .currency.code())]
    Unbalanced {
        /// The first currency that does not.
        currency: Currency,
    },
    /// A movement goes by its direction, not by its sign.
    #[error("a movement is more than nothing")]
    NotPositive,
}

impl Entry {
    /// Money came in: the provider holds it, and it was for something sold.
    pub fn charge(amount: Money) -> Result<Self, LedgerError> {
        Self::movement(amount, LedgerAccount::Sales, LedgerAccount::ProviderClearing)
    }

    /// Money went back: the provider holds it no longer.
    pub fn refund(amount: Money) -> Result<Self, LedgerError> {
        Self::movement(amount, LedgerAccount::ProviderClearing, LedgerAccount::Refunds)
    }

    /// Any set of postings, if it balances.
    pub fn balanced(postings: Vec<Posting>) -> Result<Self, LedgerError> {
        if postings.is_empty() {
            return Err(LedgerError::Empty);
        }
        if postings.iter().any(|posting| posting.amount == 0) {
            return Err(LedgerError::ZeroPosting);
        }
        let unbalanced = |currency: &&Currency| sum(&postings, **currency) != 0;
        match Currency::ALL.iter().find(unbalanced) {
            Some(&currency) => Err(LedgerError::Unbalanced { currency }),
            None => Ok(Self { postings }),
        }
    }

    /// The postings, which sum to zero in each currency.
    pub fn postings(&self) -> &[Posting] {
        &self.postings
    }

    fn movement(money: Money, from: LedgerAccount, to: LedgerAccount) -> Result<Self, LedgerError> {
        if !money.is_positive() {
            return Err(LedgerError::NotPositive);
        }
        let Money { amount, currency } = money;
        Self::balanced(vec![
            Posting { account: to, amount, currency },
            Posting { account: from, amount: -amount, currency },
        ])
    }
}

/// Wider than any posting, so that no number of large ones wraps round to zero.
fn sum(postings: &[Posting], currency: Currency) -> i128 {
    let of_currency = postings.iter().filter(|posting| posting.currency == currency);
    of_currency.map(|posting| i128::from(posting.amount)).sum()
}
