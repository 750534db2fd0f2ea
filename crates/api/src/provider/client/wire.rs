//! The provider's JSON, parsed once, here.
//!
//! Unknown members are welcome: it is somebody else's API and may grow.

use domain::{ChargeOutcome, DeclineCode, Money, RefundOutcome};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use time::OffsetDateTime;

const ID_BYTES_MAX: usize = 255;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChargeStatus {
    Pending,
    Succeeded,
    Declined,
    Cancelled,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RefundStatus {
    Pending,
    Succeeded,
    Failed,
}

#[derive(Deserialize)]
pub(super) struct Charge {
    #[serde(deserialize_with = "id")]
    id: String,
    provider_key: String,
    reference: Option<String>,
    amount: Option<Money>,
    refunded: Option<Money>,
    status: ChargeStatus,
    decline_code: Option<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

#[derive(Deserialize)]
pub(super) struct Refund {
    #[serde(deserialize_with = "id")]
    id: String,
    provider_key: String,
    charge_id: Option<String>,
    reference: Option<String>,
    amount: Option<Money>,
    status: RefundStatus,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

/// An id is a word: what cannot be stored must not be the proof that money moved.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let id = String::deserialize(deserializer)?;
    let is_word =
        (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    is_word.then_some(id).ok_or_else(|| D::Error::custom("an id has visible ASCII only"))
}

impl From<Charge> for super::Charge {
    fn from(charge: Charge) -> Self {
        let charge_id = charge.id.clone();
        let outcome = match charge.status {
            ChargeStatus::Pending => None,
            ChargeStatus::Succeeded => Some(ChargeOutcome::Succeeded { charge_id }),
            ChargeStatus::Declined => {
                let code = decline_code(charge.decline_code.as_deref());
                Some(ChargeOutcome::Declined { charge_id, code })
            }
            ChargeStatus::Cancelled => Some(ChargeOutcome::Cancelled),
        };
        Self {
            id: charge.id,
            provider_key: charge.provider_key,
            reference: charge.reference,
            amount: charge.amount,
            refunded: charge.refunded,
            outcome,
            created_at: charge.created_at,
        }
    }
}

impl From<Refund> for super::Refund {
    fn from(refund: Refund) -> Self {
        let provider_refund_id = refund.id.clone();
        let outcome = match refund.status {
            RefundStatus::Pending => None,
            RefundStatus::Succeeded => Some(RefundOutcome::Succeeded { provider_refund_id }),
            RefundStatus::Failed => {
                let provider_refund_id = Some(provider_refund_id);
                Some(RefundOutcome::Failed { provider_refund_id })
            }
        };
        Self {
            id: refund.id,
            provider_key: refund.provider_key,
            charge_id: refund.charge_id,
            reference: refund.reference,
            amount: refund.amount,
            outcome,
            created_at: refund.created_at,
        }
    }
}

/// A decline is final whatever its reason; a new reason must not make the outcome unknown.
fn decline_code(code: Option<&str>) -> DeclineCode {
    code.and_then(|code| code.parse().ok()).unwrap_or(DeclineCode::CardDeclined)
}
