//! How much one account may ask for: executions are limited, replays are not.
//!
//! A client that repeats a request must never be told to go away because it repeated it. So the
//! look-up comes first, and only what would really execute is counted. In demo mode there are no limits.
//!
//! Keys whose outcome is not known cost work until it is: each is asked after for as long as it
//! takes. So one account may have only so many of them, whoever lost the answers.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use idempotency::{Scope, postgres};
use sqlx::PgConnection;

use crate::app::App;
use crate::operation::Stop;
use crate::problem::{Code, Problem};

/// New operations of one account: so many a second, and that many at once.
const EXECUTIONS_PER_S: NonZeroU32 = NonZeroU32::new(20).expect("not zero");
const EXECUTIONS_BURST: NonZeroU32 = NonZeroU32::new(200).expect("not zero");
/// Sign-ins and new accounts by one e-mail: guessing has to be slow.
const SIGN_INS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(10).expect("not zero");
/// When to ask again: recovery looks every few seconds.
const UNRESOLVED_PAUSE_S: u64 = 5;
/// Accounts whose budget is full again are forgotten once there are this many.
const KNOWN_MAX: usize = 100_000;

/// The budgets of all accounts in this process.
pub struct Budgets(Option<Limits>);

struct Limits {
    executions: DefaultKeyedRateLimiter<Scope>,
    sign_ins: DefaultKeyedRateLimiter<Scope>,
}

impl Budgets {
    /// With limits, or without any.
    pub fn new(limited: bool) -> Self {
        Self(limited.then(|| Limits {
            executions: RateLimiter::keyed(
                Quota::per_second(EXECUTIONS_PER_S).allow_burst(EXECUTIONS_BURST),
            ),
            sign_ins: RateLimiter::keyed(Quota::per_minute(SIGN_INS_PER_MINUTE)),
        }))
    }

    /// Takes one execution out of an account's budget.
    ///
    /// # Errors
    /// `rate_limited` with the time until there is one again.
    pub fn execute(&self, scope: &Scope) -> Result<(), Problem> {
        self.0.as_ref().map_or(Ok(()), |limits| take(&limits.executions, scope))
    }

    /// Takes one attempt to sign in, by e-mail in lower case.
    ///
    /// # Errors
    /// As [`Budgets::execute`].
    pub fn sign_in(&self, email: &str) -> Result<(), Problem> {
        let scope = Scope::digest(email.as_bytes());
        self.0.as_ref().map_or(Ok(()), |limits| take(&limits.sign_ins, &scope))
    }
}

/// Refuses one more key without an outcome, if the account has as many as it may. To be asked in
/// the transaction that has just claimed the key: a key that is known never comes this far.
///
/// Claims of one account that run side by side do not see each other, so they are counted one after
/// the other. The turn comes after the record and before the order, and ends with the claim.
///
/// # Errors
/// `rate_limited`; nothing was sent, and the claim goes with the transaction.
pub async fn unresolved(app: &App, tx: &mut PgConnection, scope: &Scope) -> Result<(), Stop> {
    let Some(most) = app.clients.unresolved_keys_max.map(i64::from) else { return Ok(()) };
    postgres::take_turn(tx, scope).await?;
    if postgres::unfinished(tx, scope, most + 1).await? <= most {
        return Ok(());
    }
    metrics::counter!("payonce_unresolved_refused_total").increment(1);
    let detail = "Too many requests of this account have no outcome yet. Nothing was done.";
    Err(Stop::Passing(Problem::new(Code::RateLimited, detail).retry_after(UNRESOLVED_PAUSE_S)))
}

fn take(limiter: &DefaultKeyedRateLimiter<Scope>, scope: &Scope) -> Result<(), Problem> {
    if limiter.len() > KNOWN_MAX {
        limiter.retain_recent();
    }
    limiter.check_key(scope).map_err(|early| {
        let wait: Duration = early.wait_time_from(DefaultClock::default().now());
        Problem::new(Code::RateLimited, "Too many requests of this account. Nothing was done.")
            .retry_after(wait.as_secs() + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_of_one_account_run_out() {
        let budgets = Budgets::new(true);
        let scope = Scope::account([1; 16]);
        let refused = (0..=EXECUTIONS_BURST.get() + 50).find_map(|_| budgets.execute(&scope).err());
        assert_eq!(refused.map(|problem| problem.code), Some(Code::RateLimited));
        assert_eq!(budgets.execute(&Scope::account([2; 16])), Ok(()));
    }

    #[test]
    fn a_demo_has_no_limits() {
        let budgets = Budgets::new(false);
        let scope = Scope::account([1; 16]);
        assert!((0..10_000).all(|_| budgets.execute(&scope).is_ok()));
    }
}
