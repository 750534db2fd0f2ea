//! Who acts: accounts, their roles, their sessions.

pub mod bearer;
pub mod create;
pub mod current;
pub mod password;
pub mod session;
pub mod sql;

use domain::AccountId;
use idempotency::Scope;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

pub use session::Sessions;

/// What an account may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Known by a cookie only.
    Guest,
    /// Buys.
    Shopper,
    /// Sells: sees every order, refunds, moves stock.
    Merchant,
}

impl Role {
    /// As stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Shopper => "shopper",
            Self::Merchant => "merchant",
        }
    }

    /// The reverse of [`Role::as_str`].
    pub fn from_stored(text: &str) -> Option<Self> {
        [Self::Guest, Self::Shopper, Self::Merchant].into_iter().find(|role| role.as_str() == text)
    }
}

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// What it may do.
    pub role: Role,
    /// Guests have none.
    pub email: Option<String>,
    /// As given.
    pub name: Option<String>,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

impl Account {
    /// What its keys are filed under.
    pub fn scope(&self) -> Scope {
        Scope::account(*self.id.uuid().as_bytes())
    }

    /// Whether it sees everybody's orders.
    pub fn is_merchant(&self) -> bool {
        self.role == Role::Merchant
    }

    /// Whether it has the role that a route asks for.
    pub fn may(&self, wanted: Option<Role>) -> bool {
        wanted.is_none_or(|wanted| self.role == wanted)
    }
}

/// An account on the wire.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Account)]
pub struct AccountBody {
    /// `acc_…`
    #[schema(value_type = String, example = "acc_0192f0c1a2b37c4d8e9f0a1b2c3d4e5f")]
    pub id: AccountId,
    /// In lower case.
    #[schema(example = "ada@example.com")]
    pub email: Option<String>,
    /// As given.
    #[schema(example = "Ada")]
    pub name: Option<String>,
    /// What it may do.
    pub role: Role,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
}

impl From<Account> for AccountBody {
    fn from(account: Account) -> Self {
        let Account { id, role, email, name, created_at } = account;
        Self { id, email, name, role, created_at }
    }
}
