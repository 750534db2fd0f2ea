//! `/statement`: one account of the ledger as its bank would print it, for the merchant.
//!
//! A sheet holds the newest entries, oldest first, between an opening and a closing balance;
//! older sheets are behind a cursor. All figures are read in one snapshot, so that they add up
//! while money moves.

mod draw;
mod sql;

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use domain::{Currency, LedgerAccount, Money, OrderId, PaymentId, RefundId};
use serde::Deserialize;

use super::layout::{Layout, Section};
use super::moment::Moment;
use super::response::{self, Shown};
use super::visitor::Visitor;
use crate::accounts::bearer;
use crate::app::App;
use crate::problem::Problem;

/// Entries on one sheet.
const ON_A_SHEET: usize = 25;

/// Which sheet.
#[derive(Deserialize)]
pub(super) struct Wanted {
    account: Option<String>,
    currency: Option<String>,
    /// The entry before which the sheet ends.
    cursor: Option<String>,
}

/// `GET /statement`
pub(super) async fn show_statement(
    app: App,
    request: HttpRequest,
    wanted: web::Query<Wanted>,
) -> HttpResponse {
    response::answer(&request, show(&app, &request, &wanted).await)
}

async fn show(app: &App, request: &HttpRequest, wanted: &Wanted) -> Shown {
    let Some(visitor) = Visitor::known(app, request).await? else {
        return Err(bearer::forbidden().into());
    };
    if !visitor.account.is_merchant() {
        return Err(bearer::forbidden().into());
    }
    let sheet = read(app, wanted).await?;
    let page = visitor.layout(app, request, Section::Statement).await?;
    let statement = Statement::of(page, sheet).map_err(|error| Problem::internal(&error))?;
    Ok(visitor.show(request, &statement))
}

async fn read(app: &App, wanted: &Wanted) -> Result<sql::Sheet, Problem> {
    let account = named(wanted.account.as_deref())?.unwrap_or(LedgerAccount::ProviderClearing);
    let currency = named(wanted.currency.as_deref())?;
    let before = named(wanted.cursor.as_deref())?;
    let mut tx = app.db.begin().await?;
    let sheet = sql::sheet(&mut tx, account, currency, before).await?;
    tx.rollback().await;
    Ok(sheet)
}

/// What is there and cannot be read names nothing.
fn named<T: std::str::FromStr>(text: Option<&str>) -> Result<Option<T>, Problem> {
    text.map(|text| text.parse().map_err(|_| Problem::not_found())).transpose()
}

#[derive(Debug, Template)]
#[template(path = "statement.html")]
pub struct Statement {
    pub page: Layout,
    pub account: LedgerAccount,
    pub currency: Currency,
    /// Those in which money ever moved.
    pub currencies: Vec<Currency>,
    pub opening: Money,
    /// Oldest first.
    pub entries: Vec<StatementEntry>,
    pub closing: Money,
    /// The cursor of the sheet before this one.
    pub older: Option<i64>,
    /// This is the sheet that ends now.
    pub newest: bool,
    /// Every account in this currency.
    pub accounts: Vec<(LedgerAccount, Money)>,
    /// What they come to.
    pub sum: Money,
}

/// One line of the sheet.
#[derive(Debug, Clone)]
pub struct StatementEntry {
    pub at: Moment,
    pub order: OrderId,
    pub payment: PaymentId,
    /// None: a capture.
    pub refund: Option<RefundId>,
    /// A debit is positive.
    pub amount: Money,
    /// Of the account after it.
    pub balance: Money,
}
