//! The provider's JSON. Its money and ids are its own; nothing here is shared with the shop.

use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use time::OffsetDateTime;

use super::card::Card;
use super::refusal::Refusal;

/// Longest key or reference, in bytes.
const NAME_MAX: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Money {
    /// Minor units.
    pub(super) amount: i64,
    pub(super) currency: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChargeRequest {
    pub(super) provider_key: String,
    pub(super) reference: String,
    pub(super) amount: Money,
    pub(super) payment_method: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefundRequest {
    pub(super) provider_key: String,
    /// The charge's id or its provider key.
    pub(super) charge: String,
    pub(super) amount: Money,
    pub(super) reference: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelRequest {
    pub(super) provider_key: String,
}

/// `?provider_key=&reference=&after=&limit=`, each optional.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    pub(super) provider_key: Option<String>,
    pub(super) reference: Option<String>,
    /// The id of the last row of the page before.
    pub(super) after: Option<String>,
    limit: Option<u32>,
}

/// One page; `next` is the value of `after` for the page that follows, and only there if one may.
#[derive(Debug, Serialize)]
pub(super) struct Page<T> {
    pub(super) data: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

/// A charge as it is shown; a key cancelled before a charge came has no amount.
#[derive(Debug, Clone, FromRow, Serialize)]
pub(super) struct Charge {
    pub(super) id: String,
    pub(super) provider_key: String,
    pub(super) reference: Option<String>,
    #[sqlx(json(nullable))]
    pub(super) amount: Option<Money>,
    pub(super) payment_method: Option<String>,
    pub(super) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decline_code: Option<String>,
    #[sqlx(json(nullable))]
    pub(super) refunded: Option<Money>,
    #[serde(with = "time::serde::rfc3339")]
    pub(super) created_at: OffsetDateTime,
}

/// A refund as it is shown; a key cancelled before a refund came has no amount.
#[derive(Debug, Clone, FromRow, Serialize)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) provider_key: String,
    /// What the caller named.
    #[serde(skip)]
    pub(super) charge: Option<String>,
    pub(super) charge_id: Option<String>,
    pub(super) reference: Option<String>,
    #[sqlx(json(nullable))]
    pub(super) amount: Option<Money>,
    pub(super) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure_code: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    pub(super) created_at: OffsetDateTime,
}

impl ChargeRequest {
    /// The card it asks to charge, once everything in it makes sense.
    pub(super) fn check(&self) -> Result<Card, Refusal> {
        check_name(&self.provider_key, "provider_key is 1 to 255 printable bytes")?;
        check_name(&self.reference, "reference is 1 to 255 printable bytes")?;
        self.amount.check()?;
        Card::parse(&self.payment_method).ok_or(Refusal::Invalid("no such payment method"))
    }

    /// Whether the stored charge came from this very request.
    pub(super) fn made(&self, charge: &Charge) -> bool {
        charge.reference.as_ref() == Some(&self.reference)
            && charge.amount.as_ref() == Some(&self.amount)
            && charge.payment_method.as_ref() == Some(&self.payment_method)
    }
}

impl RefundRequest {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_name(&self.provider_key, "provider_key is 1 to 255 printable bytes")?;
        check_name(&self.reference, "reference is 1 to 255 printable bytes")?;
        check_name(&self.charge, "charge is 1 to 255 printable bytes")?;
        self.amount.check()
    }

    pub(super) fn made(&self, refund: &Refund) -> bool {
        refund.reference.as_ref() == Some(&self.reference)
            && refund.amount.as_ref() == Some(&self.amount)
            && refund.charge.as_ref() == Some(&self.charge)
    }
}

impl CancelRequest {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_name(&self.provider_key, "provider_key is 1 to 255 printable bytes")
    }
}

impl Filter {
    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(100).clamp(1, 500)
    }
}

impl Money {
    fn check(&self) -> Result<(), Refusal> {
        if self.amount <= 0 {
            return Err(Refusal::Invalid("amount is a positive number of minor units"));
        }
        let code =
            self.currency.len() == 3 && self.currency.bytes().all(|b| b.is_ascii_uppercase());
        if code { Ok(()) } else { Err(Refusal::Invalid("currency is an ISO 4217 code")) }
    }
}

fn check_name(name: &str, what: &'static str) -> Result<(), Refusal> {
    let printable = name.bytes().all(|b| b.is_ascii_graphic());
    if printable && (1..=NAME_MAX).contains(&name.len()) {
        Ok(())
    } else {
        Err(Refusal::Invalid(what))
    }
}
