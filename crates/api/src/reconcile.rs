//! Our books against the provider's: every movement of money must be in both, once, alike.
//!
//! Neither side stands still while it is read, so a line that differs is looked at again, on both
//! sides, before it is told. Money that is still on its way is no difference: an open payment
//! without a charge may become one, or not.

mod sql;

use std::collections::BTreeMap;
use std::io::Write;

use domain::{ChargeOutcome, Money, RefundOutcome};
use sqlx::PgConnection;

use crate::config::Settings;
use crate::parts::Parts;
use crate::provider::client::{Charge, ProviderClient, Refund, Unreachable};
use crate::serve;

/// What can move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// To us.
    Charge,
    /// Back.
    Refund,
}

/// How far a movement came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Nobody knows yet.
    Open,
    /// The money moved.
    Moved,
    /// It never will.
    Refused,
}

/// A movement in our books.
#[derive(Debug, Clone)]
pub struct Ours {
    /// `payment pay_…`
    pub name: String,
    /// What the provider knows it by.
    pub provider_key: String,
    /// How far it came.
    pub stage: Stage,
    /// How much.
    pub amount: Money,
    /// What the ledger holds of it, minor units.
    pub booked: i64,
}

/// A movement in the provider's books.
#[derive(Debug, Clone)]
pub struct Theirs {
    /// `charge ch_…`
    pub name: String,
    /// How far it came.
    pub stage: Stage,
    /// How much.
    pub amount: Option<Money>,
}

/// How a comparison ended.
pub enum Reconciled {
    /// The books agree.
    Equal,
    /// They do not; the differences were printed.
    Different,
    /// The provider cannot be asked.
    Unreachable(Unreachable),
}

/// `payonce reconcile`: prints the differences, one a line.
///
/// # Errors
/// When our own books cannot be read.
pub async fn run(settings: &Settings, out: &mut impl Write) -> anyhow::Result<Reconciled> {
    let parts = Parts::join(settings).await?;
    let provider = settings.provider_url.as_ref().map(ToString::to_string);
    let provider = provider.unwrap_or_else(|| format!("http://{}", settings.provider_listen));
    let client = ProviderClient::new(&provider, serve::http()?, settings.timing.provider_timeout);
    let mut conn = crate::db::connect(parts.database_url.expose()).await?;
    let differences = match differences(&mut conn, &client).await {
        Err(Failure::Provider(unreachable)) => Ok(Reconciled::Unreachable(unreachable)),
        Err(Failure::Database(error)) => Err(error.into()),
        Ok(differences) => {
            for difference in &differences {
                writeln!(out, "{difference}")?;
            }
            Ok(if differences.is_empty() { Reconciled::Equal } else { Reconciled::Different })
        }
    };
    drop(conn);
    parts.stop().await?;
    differences
}

/// Why the books could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Theirs cannot be read.
    #[error(transparent)]
    Provider(#[from] Unreachable),
    /// Ours cannot be read.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Every difference as a sentence.
///
/// # Errors
/// When one of the books cannot be read.
pub async fn differences(
    conn: &mut PgConnection,
    client: &ProviderClient,
) -> Result<Vec<String>, Failure> {
    let mut differences = Vec::new();
    for kind in [Kind::Charge, Kind::Refund] {
        let mut theirs = theirs(client, kind).await?;
        let mut doubtful = Vec::new();
        for ours in sql::all(conn, kind).await? {
            let theirs = theirs.remove(&ours.provider_key);
            if compare(Some(&ours), theirs.as_ref()).is_some() {
                doubtful.push(ours.provider_key);
            }
        }
        let unknown = theirs.into_iter().filter(|(_, line)| compare(None, Some(line)).is_some());
        doubtful.extend(unknown.map(|(provider_key, _)| provider_key));
        for provider_key in doubtful {
            let theirs = ask(client, kind, &provider_key).await?;
            let ours = sql::one(conn, kind, &provider_key).await?;
            differences.extend(compare(ours.as_ref(), theirs.as_ref()));
        }
    }
    Ok(differences)
}

/// What is wrong between two lines, if anything is.
pub fn compare(ours: Option<&Ours>, theirs: Option<&Theirs>) -> Option<String> {
    let theirs_moved = theirs.filter(|line| line.stage == Stage::Moved);
    match (ours, theirs_moved) {
        (None, None) => None,
        (None, Some(theirs)) => Some(format!(
            "{} moved {}, and we know nothing of it",
            theirs.name,
            shown(theirs.amount)
        )),
        (Some(ours), None) if ours.stage == Stage::Moved => {
            let said = theirs.map_or("the provider has no such thing".to_owned(), |line| {
                format!("{} is {}", line.name, word(line.stage))
            });
            Some(format!("{} succeeded here, but {said}", ours.name))
        }
        (Some(ours), None) => booked(ours, 0),
        (Some(ours), Some(theirs)) if ours.stage != Stage::Moved => Some(format!(
            "{} is {} here, but {} succeeded",
            ours.name,
            word(ours.stage),
            theirs.name
        )),
        (Some(ours), Some(theirs)) if theirs.amount != Some(ours.amount) => Some(format!(
            "{} moved {} here, but {} moved {}",
            ours.name,
            ours.amount,
            theirs.name,
            shown(theirs.amount)
        )),
        (Some(ours), Some(_)) => booked(ours, ours.amount.amount),
    }
}

fn booked(ours: &Ours, due: i64) -> Option<String> {
    let differs = ours.booked != due;
    differs.then(|| format!("{}: the ledger holds {} in place of {due}", ours.name, ours.booked))
}

fn word(stage: Stage) -> &'static str {
    match stage {
        Stage::Open => "open",
        Stage::Moved => "succeeded",
        Stage::Refused => "refused",
    }
}

fn shown(amount: Option<Money>) -> String {
    amount.map_or_else(|| "an unknown amount".to_owned(), |amount| amount.to_string())
}

async fn theirs(
    client: &ProviderClient,
    kind: Kind,
) -> Result<BTreeMap<String, Theirs>, Unreachable> {
    let mut lines = BTreeMap::new();
    let mut after: Option<String> = None;
    loop {
        let next = match kind {
            Kind::Charge => {
                let page = client.list_charges(after.as_deref()).await?;
                lines.extend(page.entries.into_iter().map(charge));
                page.next
            }
            Kind::Refund => {
                let page = client.list_refunds(after.as_deref()).await?;
                lines.extend(page.entries.into_iter().map(refund));
                page.next
            }
        };
        match next {
            Some(next) => after = Some(next),
            None => return Ok(lines),
        }
    }
}

async fn ask(
    client: &ProviderClient,
    kind: Kind,
    provider_key: &str,
) -> Result<Option<Theirs>, Unreachable> {
    Ok(match kind {
        Kind::Charge => client.find_charge(provider_key).await?.map(|line| charge(line).1),
        Kind::Refund => client.find_refund(provider_key).await?.map(|line| refund(line).1),
    })
}

fn charge(charge: Charge) -> (String, Theirs) {
    let stage = match charge.outcome {
        None => Stage::Open,
        Some(ChargeOutcome::Succeeded { .. }) => Stage::Moved,
        Some(ChargeOutcome::Declined { .. } | ChargeOutcome::Cancelled) => Stage::Refused,
    };
    let name = format!("charge {} (reference {})", charge.id, charge.reference.unwrap_or_default());
    (charge.provider_key, Theirs { name, stage, amount: charge.amount })
}

fn refund(refund: Refund) -> (String, Theirs) {
    let stage = match refund.outcome {
        None => Stage::Open,
        Some(RefundOutcome::Succeeded { .. }) => Stage::Moved,
        Some(RefundOutcome::Failed { .. }) => Stage::Refused,
    };
    let name = format!("refund {} (reference {})", refund.id, refund.reference.unwrap_or_default());
    (refund.provider_key, Theirs { name, stage, amount: refund.amount })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn money(amount: i64) -> Money {
        Money { amount, currency: domain::Currency::Usd }
    }

    fn ours(stage: Stage, booked: i64) -> Ours {
        Ours { name: "ours".into(), provider_key: "k".into(), stage, amount: money(5), booked }
    }

    fn theirs(stage: Stage, amount: i64) -> Theirs {
        Theirs { name: "theirs".into(), stage, amount: Some(money(amount)) }
    }

    #[test]
    fn what_both_know_alike_is_no_difference() {
        assert_eq!(compare(Some(&ours(Stage::Moved, 5)), Some(&theirs(Stage::Moved, 5))), None);
        assert_eq!(compare(Some(&ours(Stage::Refused, 0)), Some(&theirs(Stage::Refused, 5))), None);
    }

    #[test]
    fn what_is_on_its_way_is_no_difference() {
        assert_eq!(compare(Some(&ours(Stage::Open, 0)), None), None);
        assert_eq!(compare(Some(&ours(Stage::Open, 0)), Some(&theirs(Stage::Open, 5))), None);
        assert_eq!(compare(None, Some(&theirs(Stage::Open, 5))), None);
    }

    #[test]
    fn money_that_only_one_side_knows_is_a_difference() {
        for (ours, theirs) in [
            (None, Some(theirs(Stage::Moved, 5))),
            (Some(ours(Stage::Open, 0)), Some(theirs(Stage::Moved, 5))),
            (Some(ours(Stage::Refused, 0)), Some(theirs(Stage::Moved, 5))),
            (Some(ours(Stage::Moved, 5)), None),
            (Some(ours(Stage::Moved, 5)), Some(theirs(Stage::Refused, 5))),
            (Some(ours(Stage::Moved, 5)), Some(theirs(Stage::Moved, 6))),
            (Some(ours(Stage::Moved, 0)), Some(theirs(Stage::Moved, 5))),
            (Some(ours(Stage::Refused, 5)), None),
        ] {
            assert!(compare(ours.as_ref(), theirs.as_ref()).is_some(), "{ours:?} {theirs:?}");
        }
    }
}
