//! What a payment method token makes the provider do, as real providers' test cards do.

use std::time::Duration;

/// A test card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Card {
    Ok,
    Declined,
    InsufficientFunds,
    Slow,
    LostAnswer,
    Reset,
    Down,
    KeyInUse,
}

/// How the first answer under a key leaves, once its work is done. Later ones are ordinary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Answered,
    /// The socket stays open and nothing is said.
    Withheld,
    /// The connection is reset.
    Reset,
    /// The caller is told that the key is in use, and has to ask again.
    KeyInUse,
}

impl Card {
    pub(super) fn parse(token: &str) -> Option<Self> {
        Some(match token {
            "pm_card_ok" => Self::Ok,
            "pm_card_declined" => Self::Declined,
            "pm_card_insufficient_funds" => Self::InsufficientFunds,
            "pm_card_slow" => Self::Slow,
            "pm_card_lost_answer" => Self::LostAnswer,
            "pm_card_reset" => Self::Reset,
            "pm_card_down" => Self::Down,
            "pm_card_key_in_use" => Self::KeyInUse,
            _ => return None,
        })
    }

    /// Why a charge is declined, if it is.
    pub(super) const fn decline_code(self) -> Option<&'static str> {
        match self {
            Self::Declined => Some("card_declined"),
            Self::InsufficientFunds => Some("insufficient_funds"),
            Self::Ok
            | Self::Slow
            | Self::LostAnswer
            | Self::Reset
            | Self::Down
            | Self::KeyInUse => None,
        }
    }

    /// How long a charge or refund stays pending.
    pub(super) const fn delay(self) -> Duration {
        match self {
            Self::Slow => Duration::from_secs(2),
            Self::Ok
            | Self::Declined
            | Self::InsufficientFunds
            | Self::LostAnswer
            | Self::Reset
            | Self::Down
            | Self::KeyInUse => Duration::ZERO,
        }
    }

    pub(super) const fn manner(self) -> Manner {
        match self {
            Self::LostAnswer => Manner::Withheld,
            Self::Reset => Manner::Reset,
            Self::KeyInUse => Manner::KeyInUse,
            Self::Ok | Self::Declined | Self::InsufficientFunds | Self::Slow | Self::Down => {
                Manner::Answered
            }
        }
    }
}
