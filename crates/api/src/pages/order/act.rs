//! What a shopper does with an order: pay it, cancel it, send its money back. Each ends on the order's own page, which
//! tells what became of it.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use domain::OrderId;
use idempotency::Key;
use tokio::time::timeout;

use crate::app::App;
use crate::operation::{self, Answer, Source};
use crate::orders::cancel::Cancel;
use crate::pages::keyed;
use crate::pages::order::own;
use crate::pages::posted::{Again, Form, Posted};
use crate::pages::response::{self, Shown};
use crate::pages::said::Said;
use crate::pages::visitor::Visitor;
use crate::payments::create::{Create, CreatePayment};
use crate::problem::Problem;
use crate::refunds::create::{self as refunds, CreateRefund};

/// Nobody looks at a blank page for longer: the order's page says that it is being charged. The
/// work is a task of its own and goes on.
const PATIENCE: Duration = Duration::from_secs(4);

/// `POST /orders/{id}/payments`
pub(in crate::pages) async fn pay_order(
    app: App,
    request: HttpRequest,
    id: web::Path<String>,
    form: Form,
) -> HttpResponse {
    let shown = async {
        let (id, posted) = take(&app, &request, &id, form).await?;
        let key = keyed::read(posted.fields.get("idempotency_key"))?;
        let card = posted.fields.get("payment_method");
        let said = pay(&app, &posted.visitor, id, key, card).await?;
        Ok(see(&request, id, said))
    };
    response::answer(&request, shown.await)
}

/// `POST /orders/{id}/cancel`
pub(in crate::pages) async fn cancel_order(
    app: App,
    request: HttpRequest,
    id: web::Path<String>,
    form: Form,
) -> HttpResponse {
    response::answer(&request, cancel(&app, &request, &id, form).await)
}

async fn cancel(app: &App, request: &HttpRequest, id: &str, form: Form) -> Shown {
    let (id, Posted { visitor, fields }) = take(app, request, id, form).await?;
    let key = keyed::read(fields.get("idempotency_key"))?;
    let path = format!("/v1/orders/{id}/cancel");
    let scope = visitor.account.scope();
    let asked = keyed::ask(app, scope, key, &path, None::<&()>)?;
    let operation = Cancel { account: visitor.account, order: Ok(id), body: Ok(()) };
    let answer = operation::perform(app, asked, operation).await;
    not_found(&answer)?;
    // Cancelled twice looks like cancelled once.
    Ok(see(request, id, told(&answer).filter(|said| *said != Said::Replayed)))
}

/// `POST /orders/{id}/refunds`: what is left of the payment, and the goods with it.
pub(in crate::pages) async fn refund_order(
    app: App,
    request: HttpRequest,
    id: web::Path<String>,
    form: Form,
) -> HttpResponse {
    response::answer(&request, refund(&app, &request, &id, form).await)
}

async fn refund(app: &App, request: &HttpRequest, id: &str, form: Form) -> Shown {
    let (id, Posted { visitor, fields }) = take(app, request, id, form).await?;
    let key = keyed::read(fields.get("idempotency_key"))?;
    let order = own::claim(app, &visitor, id).await?;
    let Some((payment, _)) = order.live_payment else { return Ok(see(request, id, None)) };
    let body = CreateRefund { amount: None, reason: None, restock: Some(true) };
    let path = format!("/v1/payments/{payment}/refunds");
    let asked = keyed::ask(app, visitor.account.scope(), key, &path, Some(&body))?;
    let operation =
        refunds::Create { account: visitor.account, payment: Ok(payment), body: Ok(body) };
    let said = patiently(operation::perform(app, asked, operation)).await?;
    Ok(see(request, id, said))
}

/// The form, if it is about an order at all.
async fn take(
    app: &App,
    request: &HttpRequest,
    id: &str,
    form: Form,
) -> Result<(OrderId, Posted), response::Detour> {
    let id: OrderId = id.parse().map_err(|_| Problem::not_found())?;
    let again = Again { page: &page(id), form: None };
    Ok((id, Posted::take(app, request, form, again).await?))
}

/// Pays an order under a key; what the order's page should add to what it sees for itself.
///
/// # Errors
/// `not_found` for what is somebody else's, and what is wrong with the form.
pub(in crate::pages) async fn pay(
    app: &App,
    visitor: &Visitor,
    order: OrderId,
    key: Key,
    card: &str,
) -> Result<Option<Said>, Problem> {
    let body = CreatePayment { payment_method: card.to_owned(), amount: None };
    let account = visitor.account.clone();
    let path = format!("/v1/orders/{order}/payments");
    let asked = keyed::ask(app, account.scope(), key, &path, Some(&body))?;
    let create = Create { account, order: Ok(order), body: Ok(body) };
    patiently(operation::perform(app, asked, create)).await
}

async fn patiently(running: impl Future<Output = Answer>) -> Result<Option<Said>, Problem> {
    match timeout(PATIENCE, running).await {
        Ok(answer) => {
            not_found(&answer)?;
            Ok(told(&answer))
        }
        Err(_) => Ok(None),
    }
}

fn told(answer: &Answer) -> Option<Said> {
    match answer {
        Answer::Finished(finished, source) => {
            let code = response::refused_with(finished).unwrap_or_default();
            let repeated = (*source != Source::Executed).then_some(Said::Replayed);
            Said::of_code(&code).or(repeated)
        }
        Answer::Problem(problem) => Said::of_code(problem.code.as_str()),
    }
}

/// What was refused before it began has no order's page to be told on.
fn not_found(answer: &Answer) -> Result<(), Problem> {
    use crate::problem::Code;
    match answer {
        Answer::Problem(problem)
            if matches!(problem.code, Code::NotFound | Code::ValidationFailed) =>
        {
            Err(Problem::clone(problem))
        }
        Answer::Problem(_) | Answer::Finished(..) => Ok(()),
    }
}

/// On to the order.
pub(in crate::pages) fn see(
    request: &HttpRequest,
    order: OrderId,
    said: Option<Said>,
) -> HttpResponse {
    let page = page(order);
    let mut response = response::see_other(&page);
    if let Some(said) = said {
        said.on(&page, request, &mut response);
    }
    response
}

pub(in crate::pages) fn page(order: OrderId) -> String {
    format!("/orders/{order}")
}
