//! What is tried: a guard, a fault, and the timing of the clicks.

use serde::{Deserialize, Serialize};

/// What stands between two clicks and two charges, from worst to best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    None,
    Button,
    Unique,
    Redis,
    Lookup,
    Processing,
    Payonce,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    Double,
    Network,
    Lost,
    Tabs,
    Kill,
    Flush,
    Stop,
    Cart,
    Card,
    Day,
    Crowd,
}

impl Guard {
    /// In the order of the matrix.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Button,
        Self::Unique,
        Self::Redis,
        Self::Lookup,
        Self::Processing,
        Self::Payonce,
    ];

    /// In addresses and texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Button => "button",
            Self::Unique => "unique",
            Self::Redis => "redis",
            Self::Lookup => "lookup",
            Self::Processing => "processing",
            Self::Payonce => "payonce",
        }
    }

    /// The reverse of [`Guard::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|guard| guard.name() == name)
    }
}

impl Fault {
    /// In the order of the matrix.
    pub const ALL: [Self; 11] = [
        Self::Double,
        Self::Network,
        Self::Lost,
        Self::Tabs,
        Self::Kill,
        Self::Flush,
        Self::Stop,
        Self::Cart,
        Self::Card,
        Self::Day,
        Self::Crowd,
    ];

    /// In addresses and texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Double => "double",
            Self::Network => "network",
            Self::Lost => "lost",
            Self::Tabs => "tabs",
            Self::Kill => "kill",
            Self::Flush => "flush",
            Self::Stop => "stop",
            Self::Cart => "cart",
            Self::Card => "card",
            Self::Day => "day",
            Self::Crowd => "crowd",
        }
    }

    /// The reverse of [`Fault::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Whether the visitor's own presses are the presses of the run.
    pub const fn takes_clicks(self) -> bool {
        matches!(self, Self::Double | Self::Tabs)
    }

    /// Whether one run is dear: a cell of the matrix then has one instead of five.
    pub const fn is_dear(self) -> bool {
        matches!(self, Self::Kill | Self::Crowd)
    }
}

/// One experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spec {
    pub guard: Guard,
    pub fault: Fault,
    /// How often Pay is pressed.
    pub clicks: u32,
    /// Between two presses.
    pub spacing_ms: u64,
}

impl Spec {
    /// Bounded: at least two clicks, at most nine, at most two seconds apart.
    pub fn new(guard: Guard, fault: Fault, clicks: u32, spacing_ms: u64) -> Self {
        Self { guard, fault, clicks: clicks.clamp(2, 9), spacing_ms: spacing_ms.min(2000) }
    }

    /// Two clicks 40 ms apart.
    pub fn usual(guard: Guard, fault: Fault) -> Self {
        Self::new(guard, fault, 2, 40)
    }
}
