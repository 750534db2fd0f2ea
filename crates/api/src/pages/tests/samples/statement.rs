//! An account's books.

use super::*;

pub(super) fn books() -> Vec<Sample> {
    let entry = |minute, refund, amount, balance| StatementEntry {
        at: at(minute),
        order: id(0x7f3a_c21e),
        payment: PaymentId::from_uuid(Uuid::from_u128(0x7f3a_c21f)),
        refund,
        amount: usd(amount),
        balance: usd(balance),
    };
    let refund = Some(RefundId::from_uuid(Uuid::from_u128(0x7f3a_c220)));
    let merchant = || Layout {
        merchant: true,
        signed_in: Some("merchant@payonce.test".to_owned()),
        ..layout(Section::Statement)
    };
    let sheet = Statement {
        page: merchant(),
        account: LedgerAccount::ProviderClearing,
        currency: Currency::Usd,
        currencies: vec![Currency::Usd, Currency::Eur, Currency::Jpy],
        opening: usd(123_400),
        entries: vec![entry(42, None, 4200, 127_600), entry(50, refund, -1000, 126_600)],
        closing: usd(126_600),
        older: Some(17),
        newest: false,
        accounts: vec![
            (LedgerAccount::ProviderClearing, usd(126_600)),
            (LedgerAccount::Refunds, usd(1000)),
            (LedgerAccount::Sales, usd(-127_600)),
        ],
        sum: usd(0),
    };
    let off = Statement {
        page: Layout { theme: Some(Theme::Dark), ..merchant() },
        accounts: vec![(LedgerAccount::Sales, usd(-100))],
        sum: usd(-100),
        older: None,
        newest: true,
        currencies: vec![Currency::Usd],
        entries: vec![entry(42, None, 4200, 127_600)],
        ..sheet.clone_without_entries()
    };
    let empty = Statement { newest: true, older: None, ..sheet.clone_without_entries() };
    let bare = || Layout { csrf: String::new(), cart_count: None, ..layout(Section::Elsewhere) };
    vec![
        sample("statement", &sheet),
        sample("statement-off", &off),
        sample("statement-empty", &empty),
        sample("problems", &ProblemIndex { page: bare(), codes: Code::ALL }),
        sample("problem", &ProblemPage { page: bare(), code: Code::OutcomeUnknown }),
        sample("problem-final", &ProblemPage { page: bare(), code: Code::CardDeclined }),
    ]
}

impl Statement {
    fn clone_without_entries(&self) -> Self {
        Self {
            page: self.page.clone(),
            currencies: self.currencies.clone(),
            entries: Vec::new(),
            accounts: self.accounts.clone(),
            ..*self
        }
    }
}
