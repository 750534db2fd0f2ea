//! From figures to the sheet: balances are carried from line to line, with checked arithmetic.

use domain::{Currency, LedgerAccount, Money, MoneyError};

use super::sql::{Posting, Sheet};
use super::{Statement, StatementEntry};
use crate::pages::layout::Layout;
use crate::pages::marks::Mark;
use crate::pages::orders::number;

impl Statement {
    pub(super) fn of(page: Layout, sheet: Sheet) -> Result<Self, MoneyError> {
        let Sheet { account, currency, opening, postings, more, newest, balances } = sheet;
        let mut closing = opening;
        let mut entries = Vec::with_capacity(postings.len());
        for posting in &postings {
            closing = closing.checked_add(posting.amount)?;
            entries.push(StatementEntry::of(posting, closing));
        }
        let mut currencies: Vec<Currency> = balances.iter().map(|(_, b)| b.currency).collect();
        currencies.dedup();
        let of_currency = balances.into_iter().filter(|(_, balance)| balance.currency == currency);
        let accounts: Vec<_> = of_currency.collect();
        let sum = accounts
            .iter()
            .try_fold(Money::zero(currency), |sum, (_, balance)| sum.checked_add(*balance))?;
        let older = postings.first().filter(|_| more).map(|posting| posting.id);
        Ok(Self {
            page,
            account,
            currency,
            currencies,
            opening,
            entries,
            closing,
            older,
            newest,
            accounts,
            sum,
        })
    }

    /// The ways to other accounts and currencies: a sheet of each, from its end.
    pub(super) fn href(account: LedgerAccount, currency: Currency) -> String {
        format!("/statement?account={}&currency={}", account.as_str(), currency.code())
    }

    pub(super) fn accounts_to_choose(&self) -> Vec<Choice> {
        let choice = |account: &LedgerAccount| Choice {
            href: Self::href(*account, self.currency),
            text: name(*account),
            current: *account == self.account,
        };
        LedgerAccount::ALL.iter().map(choice).collect()
    }

    pub(super) fn currencies_to_choose(&self) -> Vec<Choice> {
        let choice = |currency: &Currency| Choice {
            href: Self::href(self.account, *currency),
            text: currency.code(),
            current: *currency == self.currency,
        };
        self.currencies.iter().map(choice).collect()
    }

    pub(super) fn older_href(&self) -> Option<String> {
        let cursor = self.older?;
        Some(format!("{}&cursor={cursor}", Self::href(self.account, self.currency)))
    }

    pub(super) fn newest_href(&self) -> Option<String> {
        (!self.newest).then(|| Self::href(self.account, self.currency))
    }

    pub(super) fn heading(&self) -> String {
        format!("{}, {}", name(self.account), self.currency.code())
    }

    pub(super) fn proof_lines(&self) -> impl Iterator<Item = (&'static str, Money)> {
        self.accounts.iter().map(|(account, balance)| (name(*account), *balance))
    }

    pub(super) fn is_balanced(&self) -> bool {
        self.sum.amount == 0
    }

    pub(super) fn proof_mark(&self) -> Mark {
        if self.is_balanced() { Mark::Once } else { Mark::Twice }
    }

    pub(super) fn proof(&self) -> String {
        match self.is_balanced() {
            true => "Every movement is booked on two accounts, so all of them come to nothing. \
                     No money was made or lost here."
                .to_owned(),
            false => format!("The books are off by {}: somebody has to look at them.", self.sum),
        }
    }
}

/// A link among its like.
pub(super) struct Choice {
    pub(super) href: String,
    pub(super) text: &'static str,
    pub(super) current: bool,
}

/// An account in the words of the page.
fn name(account: LedgerAccount) -> &'static str {
    match account {
        LedgerAccount::ProviderClearing => "Held by the provider",
        LedgerAccount::Sales => "Sales",
        LedgerAccount::Refunds => "Refunds",
    }
}

impl StatementEntry {
    fn of(posting: &Posting, balance: Money) -> Self {
        Self {
            at: posting.at.into(),
            order: posting.order,
            payment: posting.payment,
            refund: posting.refund,
            amount: posting.amount,
            balance,
        }
    }

    pub(super) fn order_number(&self) -> String {
        number(self.order)
    }

    pub(super) fn debit(&self) -> Option<Money> {
        self.amount.is_positive().then_some(self.amount)
    }

    /// What left the account, without its sign.
    pub(super) fn credit(&self) -> Option<Money> {
        let turned = Money::zero(self.amount.currency).checked_sub(self.amount);
        turned.ok().filter(|amount| amount.is_positive())
    }

    /// The id that this entry is about.
    pub(super) fn about(&self) -> String {
        match self.refund {
            Some(refund) => refund.to_string(),
            None => self.payment.to_string(),
        }
    }

    /// Its end, as for orders.
    pub(super) fn about_number(&self) -> String {
        let id = self.about();
        id[id.len() - 6..].to_uppercase()
    }

    pub(super) fn kind(&self) -> &'static str {
        if self.refund.is_some() { "Refund" } else { "Payment" }
    }
}
