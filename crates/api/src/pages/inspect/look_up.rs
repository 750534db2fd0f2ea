//! `GET /inspect`: gathers what the tables hold about a key or an order.

use actix_web::{HttpRequest, HttpResponse, web};
use domain::{AccountId, Money, OrderId};
use idempotency::Key;
use serde::Deserialize;
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::sql::{self, Found, Row};
use super::{Answer, Event, Fact, Inspect, KeyName, Node, OrderName, Place, Stop, Subject};
use crate::app::App;
use crate::pages::layout::Section;
use crate::pages::marks::{Chip, Mark};
use crate::pages::moment::Moment;
use crate::pages::orders::number;
use crate::pages::pressed;
use crate::pages::response::{self, Shown};
use crate::pages::visitor::Visitor;
use crate::presses::sql::{Requests, Want};
use crate::problem::Problem;

/// What somebody typed.
#[derive(Deserialize)]
pub(in crate::pages) struct Query {
    q: Option<String>,
}

/// The handler.
pub(in crate::pages) async fn show_inspect(
    app: App,
    request: HttpRequest,
    query: web::Query<Query>,
) -> HttpResponse {
    let typed = query.q.as_deref().unwrap_or_default().trim();
    response::answer(&request, show(&app, &request, typed).await)
}

async fn show(app: &App, request: &HttpRequest, typed: &str) -> Shown {
    let visitor = Visitor::greet(app, request).await?;
    let page = visitor.layout(app, request, Section::Inspect).await?;
    let mut inspect = Inspect {
        page,
        subject: Subject::Nothing,
        answer: None,
        track: Vec::new(),
        timeline: Vec::new(),
        facts: Vec::new(),
    };
    if !typed.is_empty() {
        match look_up(app, &visitor, typed).await? {
            Some(found) => fill(&mut inspect, typed, &found, app.clock.now()),
            None => inspect.subject = Subject::Missing(typed.to_owned()),
        }
    }
    Ok(visitor.show(request, &inspect))
}

/// An id of an order, payment or refund, or a key: the form's own, or that of one of its steps.
async fn look_up(app: &App, visitor: &Visitor, typed: &str) -> Result<Option<Found>, Problem> {
    let account = (!visitor.account.is_merchant()).then_some(visitor.account.id);
    let mut conn = app.db.connection().await?;
    let order = order_of(&mut conn, account, typed).await?;
    let found = match order {
        Some(order) => sql::everything(&mut conn, account, order).await?,
        None => None,
    };
    conn.done();
    Ok(found)
}

/// The order that what was typed is about; whose it is, is asked later.
async fn order_of(
    conn: &mut PgConnection,
    account: Option<AccountId>,
    typed: &str,
) -> sqlx::Result<Option<OrderId>> {
    if let Ok(order) = typed.parse() {
        return Ok(Some(order));
    }
    if let Ok(payment) = typed.parse() {
        return sql::order_of_payment(conn, payment).await;
    }
    if let Ok(refund) = typed.parse() {
        return sql::order_of_refund(conn, refund).await;
    }
    if Key::from_bare(typed.as_bytes()).is_err() {
        return Ok(None);
    }
    match (sql::order_of_key(conn, account, typed).await?, account) {
        (None, Some(account)) => sql::order_of_record(conn, account, typed).await,
        (found, _) => Ok(found),
    }
}

fn fill(inspect: &mut Inspect, typed: &str, found: &Found, now: OffsetDateTime) {
    inspect.subject = match typed.parse::<OrderId>() {
        Ok(order) => Subject::Order(OrderName(order)),
        Err(_) => Subject::Key(KeyName(typed.to_owned())),
    };
    inspect.answer = Some(answer(found));
    inspect.track = track(found, now);
    inspect.timeline = timeline(found);
    inspect.facts = facts(found);
}

/// Counted in the ledger and the payments, not guessed from the presses.
fn answer(found: &Found) -> Answer {
    let total = found.total;
    let (mark, says, more) = match (found.captures, found.open) {
        (0, true) => (
            Mark::Unsure,
            "We do not know yet".to_owned(),
            format!("{total} was asked for and is not confirmed. It will not be charged twice."),
        ),
        (0, false) => {
            (Mark::Refused, "Not charged".to_owned(), "No money moved for this order.".to_owned())
        }
        (1, _) => (Mark::Once, format!("Charged once, {total}"), went_back(found)),
        (times, _) => (
            Mark::Twice,
            format!("Charged {times} times"),
            "One of them goes back by itself.".to_owned(),
        ),
    };
    Answer { mark, says, more }
}

fn went_back(found: &Found) -> String {
    if found.refunded == 0 {
        return "The ledger holds one capture for this order and no more.".to_owned();
    }
    let back = Money::new(found.refunded, found.total.currency);
    format!("The ledger holds one capture for this order. {back} went back.")
}

fn track(found: &Found, now: OffsetDateTime) -> Vec<Stop> {
    let clock = |at: OffsetDateTime| Moment::from(at).clock();
    let mut stops = vec![Stop {
        word: "ordered".to_owned(),
        when: clock(found.created_at),
        place: Place::Passed,
    }];
    let last = match (found.captures, found.open, found.paid_at) {
        (1.., _, Some(at)) => ("paid", after(found.created_at, at), Place::Now(Mark::Once)),
        (_, true, _) => ("not known", clock(now), Place::Now(Mark::Unsure)),
        _ => (found.status.as_str(), clock(now), Place::Now(Mark::Plain)),
    };
    stops.push(Stop { word: last.0.replace('_', " "), when: last.1, place: last.2 });
    if let Some(expires) = found.expires_at.filter(|expires| *expires > now) {
        let hours = (expires - now).whole_hours();
        let when = if hours > 0 { format!("in {hours} h") } else { "within the hour".to_owned() };
        stops.push(Stop { word: "keys expire".to_owned(), when, place: Place::Ahead });
    }
    stops
}

fn after(from: OffsetDateTime, to: OffsetDateTime) -> String {
    match (to - from).whole_milliseconds() {
        ms @ ..=9_999 => format!("+{ms} ms"),
        ms => format!("+{} s", ms / 1000),
    }
}

/// What was asked before what came of it, where both are of the same moment.
fn timeline(found: &Found) -> Vec<Event> {
    let asked = found.requests.iter().map(|requests| (requests.first_at, request(requests)));
    let told = found.rows.iter().map(|row| (row.at, event(row)));
    let mut events: Vec<(OffsetDateTime, Event)> = asked.chain(told).collect();
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().map(|(_, event)| event).collect()
}

fn request(requests: &Requests) -> Event {
    let chip = pressed::chip(requests);
    let place = match requests.want {
        Want::Order => "Order",
        Want::Payment => "Payment",
        Want::Refund => "Refund",
    };
    Event {
        at: requests.first_at.into(),
        place: place.to_owned(),
        what: pressed::says(requests),
        mark: chip.mark,
        node: Node::Press(u32::try_from(requests.number).unwrap_or(u32::MAX)),
        state_after: Some(chip),
    }
}

fn event(row: &Row) -> Event {
    let (mark, node) = match row.kind.as_str() {
        "captured" => (Mark::Once, Node::Outcome),
        "returned" => (Mark::Returned, Node::Outcome),
        "declined" => (Mark::Refused, Node::Outcome),
        "unknown" => (Mark::Unsure, Node::Outcome),
        _ => (Mark::Plain, Node::Dot),
    };
    Event {
        at: row.at.into(),
        place: row.place.clone(),
        what: row.what.clone(),
        mark,
        node,
        state_after: row.state.as_ref().map(|state| Chip::new(chip_mark(state), state.as_str())),
    }
}

fn chip_mark(state: &str) -> Mark {
    match state {
        "paid" | "succeeded" => Mark::Once,
        "unknown" => Mark::Unsure,
        _ => Mark::Plain,
    }
}

/// "5, of which 2 executed"
fn requests_seen(found: &Found) -> String {
    let seen: i64 = found.requests.iter().map(|requests| requests.times).sum();
    let executed = found.requests.iter().filter(|requests| requests.told == "executed").count();
    format!("{seen}, of which {executed} executed")
}

fn facts(found: &Found) -> Vec<Fact> {
    let mut facts = vec![
        Fact::link("Order", number(found.id), format!("/orders/{}", found.id)),
        Fact::text("Amount", found.total.to_string()),
        Fact::text("Captures in the ledger", found.captures.to_string()),
        Fact::text("Requests seen", requests_seen(found)),
        Fact::code("Key of the order", &*found.key),
    ];
    facts.extend(found.payment_keys.iter().map(|key| Fact::code("Key of a payment", &**key)));
    facts.extend(found.provider_keys.iter().map(|key| Fact::code("Provider key", &**key)));
    facts
}
