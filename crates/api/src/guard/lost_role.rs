//! Replies of before, and a role that was lost since: they are not told again.

use std::sync::Arc;

use idempotency::{Claim, Finished, Scope};
use uuid::Uuid;

use crate::accounts::{Account, bearer};
use crate::app::App;
use crate::made_by;
use crate::operation::{Answer, Operation, Stop};
use crate::problem::Problem;

/// Whoever acted on another's object as a merchant, and is none any more, is not told how it went.
pub(super) async fn still_theirs(
    app: &App,
    account: &Account,
    scope: &Scope,
    object: Uuid,
) -> Result<(), Problem> {
    if account.is_merchant() {
        return Ok(());
    }
    let mut conn = app.db.connection().await?;
    let own = made_by::is_own(&mut conn, object, account.id, scope).await;
    match conn.end(own)? {
        true => Ok(()),
        false => Err(Problem::not_found()),
    }
}

/// A role that was lost since must not see its old replies.
pub(super) fn forbid(answer: Answer) -> Answer {
    match answer {
        Answer::Finished(..) => Answer::Problem(Arc::new(bearer::forbidden())),
        problem @ Answer::Problem(_) => problem,
    }
}

/// Stands in for an operation that this account may not begin: only the look-up happens.
pub(super) struct Forbidden;

impl Operation for Forbidden {
    const NAME: &'static str = "forbidden";

    async fn execute(&self, _: &App, _: &Claim) -> Result<Finished, Stop> {
        Err(Stop::Passing(bearer::forbidden()))
    }
}
