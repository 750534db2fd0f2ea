//! Create an account: one key and one e-mail, at most one account.

use actix_web::HttpResponse;
use domain::AccountId;
use idempotency::reply::ReplyHeader;
use idempotency::{Claim, Finished, Outcome, Reply};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Account, AccountBody, Role, password, sql};
use crate::app::App;
use crate::db;
use crate::guard::Guarded;
use crate::operation::{self, Ended, Operation, Stop};
use crate::problem::{Code, Problem};

/// A wish for an account.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAccount {
    /// Upper and lower case are the same.
    #[schema(example = "ada@example.com", max_length = 254, format = "email")]
    pub email: String,
    /// 10 to 200 characters.
    #[schema(example = "correct horse battery", min_length = 10, max_length = 200, format = Password)]
    pub password: String,
    /// 1 to 100 characters.
    #[schema(example = "Ada", min_length = 1, max_length = 100)]
    pub name: Option<String>,
}

/// Creates an account
#[utoipa::path(
    post, path = "/v1/accounts", tag = "Accounts", security(),
    request_body = CreateAccount,
    responses(
        (status = 201, description = "The account", body = AccountBody),
    ),
)]
pub async fn create_account(request: Guarded) -> Result<HttpResponse, Problem> {
    let body = request.body();
    request.perform(Create { body }).await
}

/// The operation.
pub struct Create {
    /// What was sent, or why it cannot be used.
    pub body: Result<CreateAccount, Problem>,
}

impl Operation for Create {
    const NAME: &'static str = "POST /v1/accounts";

    async fn execute(&self, app: &App, claim: &Claim) -> Result<Finished, Stop> {
        let body = self.body.clone().and_then(checked).map_err(Stop::Passing)?;
        // Outside the transaction: a hash takes tens of milliseconds.
        let hash = password::hash(body.password.clone()).await.map_err(Stop::Passing)?;
        let account = Account {
            id: AccountId::from_uuid(app.clock.new_id()),
            role: Role::Shopper,
            email: Some(body.email),
            name: body.name,
            created_at: app.clock.now(),
        };
        db::retrying(|| insert(app, claim, &account, &hash)).await
    }
}

async fn insert(app: &App, claim: &Claim, account: &Account, hash: &str) -> Result<Finished, Stop> {
    let mut tx = app.db.begin_claim(&claim.identity).await?;
    sql::insert(&mut tx, account, hash, Some(&claim.identity)).await.map_err(|error| {
        match db::violated(&error) {
            Some("account_email_key") => Stop::Refused(email_taken()),
            _ => Stop::from(error),
        }
    })?;
    let path = format!("/v1/accounts/{}", account.id);
    let body = serde_json::to_vec(&AccountBody::from(account.clone()))
        .map_err(|error| Stop::Passing(Problem::internal(&error)))?;
    let reply =
        Reply::new(201, "application/json", body).with(ReplyHeader::Location, "/v1/accounts/me");
    let ended = Ended {
        operation: Create::NAME,
        outcome: Outcome::Completed,
        reply: &reply,
        resource: Some(&path),
    };
    operation::commit(app, tx, claim, ended).await
}

fn email_taken() -> Problem {
    Problem::new(Code::EmailTaken, "An account with this e-mail exists. Sign in instead.")
}

fn checked(mut body: CreateAccount) -> Result<CreateAccount, Problem> {
    body.email = email(&body.email).map_err(|message| Problem::invalid("/email", message))?;
    let length = body.password.chars().count();
    if !(10..=200).contains(&length) {
        return Err(Problem::invalid("/password", "A password has 10 to 200 characters."));
    }
    if let Some(name) = &body.name
        && !(1..=100).contains(&name.chars().count())
    {
        return Err(Problem::invalid("/name", "A name has 1 to 100 characters."));
    }
    Ok(body)
}

/// What may stand in an e-mail beside letters and digits: RFC 5322's `atext`, without quoted texts,
/// which hardly a mail server takes, and without anything that is not seen.
const EMAIL_MARKS: &str = "!#$%&'*+-/=?^_`{|}~.@";

/// An e-mail in lower case, if it looks like one that mail can be sent to.
///
/// # Errors
/// A sentence for the client.
pub fn email(text: &str) -> Result<String, &'static str> {
    let email = text.trim().to_lowercase();
    let parsed: Result<lettre::Address, _> = email.parse();
    let has_domain = email.rsplit_once('@').is_some_and(|(_, domain)| domain.contains('.'));
    let is_fit = |letter: char| letter.is_alphanumeric() || EMAIL_MARKS.contains(letter);
    if email.len() > 254 || parsed.is_err() || !has_domain || !email.chars().all(is_fit) {
        return Err("This is not an e-mail address.");
    }
    Ok(email)
}
