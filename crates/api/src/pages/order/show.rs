//! `GET /orders/{id}`: from rows to the page.

use actix_web::{HttpRequest, HttpResponse, web};
use domain::{AccountId, DeclineCode, Money, OrderId, OrderStatus, PaymentStatus, RefundStatus};
use time::OffsetDateTime;

use super::{
    OrderLine, OrderPage, OrderView, Press, ProviderStep, RefundLine, RefundOffer, State, Stray,
};
use super::{act, own, sql};
use crate::app::App;
use crate::orders::{self, Order};
use crate::pages::keyed::{self, KeyFacts};
use crate::pages::layout::Section;
use crate::pages::marks::{Chip, Mark, Notice};
use crate::pages::pressed;
use crate::pages::response::{self, Shown};
use crate::pages::said::Said;
use crate::pages::test_cards;
use crate::pages::visitor::Visitor;
use crate::payments::{self, Payment};
use crate::presses::{self, sql::Requests};
use crate::problem::Problem;

/// The handler.
pub(in crate::pages) async fn show_order(
    app: App,
    request: HttpRequest,
    id: web::Path<String>,
) -> HttpResponse {
    response::answer(&request, show(&app, &request, &id).await)
}

async fn show(app: &App, request: &HttpRequest, id: &str) -> Shown {
    let visitor = Visitor::greet(app, request).await?;
    let id: OrderId = id.parse().map_err(|_| Problem::not_found())?;
    let order = own::claim(app, &visitor, id).await?;
    let facts = Facts::read(app, order).await?;
    let layout = visitor.layout(app, request, Section::Orders).await?;
    let mut page = facts.draw(app, layout, visitor.account.id);
    page.notice = Said::heard(request).map(|said| facts.notice(said));
    let mut response = visitor.show(request, &page);
    Said::forget(&act::page(id), request, &mut response);
    Ok(response)
}

/// Everything that is known of an order and its money.
struct Facts {
    order: Order,
    lines: Vec<orders::OrderLine>,
    payments: Vec<Payment>,
    refunds: Vec<sql::Refund>,
    asking: Option<sql::Asking>,
    paid_at: Option<OffsetDateTime>,
    requests: Vec<Requests>,
    now: OffsetDateTime,
}

impl Facts {
    async fn read(app: &App, order: Order) -> Result<Self, Problem> {
        let mut conn = app.db.connection().await?;
        let live = order.live_payment.map(|(id, _)| id);
        let facts = Self {
            lines: orders::sql::lines(&mut conn, order.id).await?,
            payments: payments::sql::of_order(&mut conn, order.id).await?,
            refunds: sql::refunds(&mut conn, order.id).await?,
            asking: match live {
                Some(id) => sql::asking(&mut conn, id).await?,
                None => None,
            },
            paid_at: match live {
                Some(id) => sql::paid_at(&mut conn, id).await?,
                None => None,
            },
            requests: presses::sql::of_order(&mut conn, order.id).await?,
            now: app.clock.now(),
            order,
        };
        conn.done();
        Ok(facts)
    }

    /// A merchant sees every order, but pays only for its own.
    fn draw(&self, app: &App, page: crate::pages::Layout, visitor: AccountId) -> OrderPage {
        let state = self.state();
        let payable = matches!(state, State::Pending { .. } | State::Declined { .. });
        OrderPage {
            page,
            order: self.view(),
            notice: None,
            asked: self.asked(&state),
            pay: (payable && self.order.account_id == visitor).then(|| self.key(app)),
            refunds: self.refund_lines(),
            kept: self.kept(),
            strays: self.strays(),
            presses: self.presses(),
            cancel: payable.then(|| keyed::of_order(app, "cancel", self.order.id, 0)),
            refund: self.refundable(app),
            state,
        }
    }

    fn view(&self) -> OrderView {
        let lines = self.lines.iter().map(|line| OrderLine {
            name: line.name.clone(),
            quantity: line.quantity.unsigned_abs(),
            amount: line.line_total,
        });
        let Order { id, total, email, .. } = &self.order;
        OrderView { id: *id, lines: lines.collect(), total: *total, email: email.clone() }
    }

    fn state(&self) -> State {
        match self.order.status {
            OrderStatus::Paid => State::Paid { card: self.card() },
            OrderStatus::PartiallyRefunded => {
                State::PartlyRefunded { back: self.gone_back(), card: self.card() }
            }
            OrderStatus::Refunded => State::Refunded { card: self.card() },
            OrderStatus::Cancelled => State::Cancelled,
            OrderStatus::Expired => State::Expired,
            OrderStatus::Pending => self.pending(),
        }
    }

    fn pending(&self) -> State {
        match self.order.live_payment {
            Some((_, PaymentStatus::Processing)) => return State::Processing,
            Some((_, PaymentStatus::Unknown)) => return State::Unknown,
            Some((
                _,
                PaymentStatus::Succeeded | PaymentStatus::Declined | PaymentStatus::Cancelled,
            ))
            | None => {}
        }
        // The job that puts the things back may come a moment later; paying is refused already.
        if self.order.reserved_until <= self.now {
            return State::Expired;
        }
        match self.payments.last().filter(|payment| payment.status == PaymentStatus::Declined) {
            Some(payment) => State::Declined {
                for_want_of_funds: payment.decline_code == Some(DeclineCode::InsufficientFunds),
            },
            None => State::Pending { until: self.order.reserved_until.into() },
        }
    }

    fn live(&self) -> Option<&Payment> {
        let (id, _) = self.order.live_payment?;
        self.payments.iter().find(|payment| payment.id == id)
    }

    fn card(&self) -> String {
        test_cards::describe(self.live().map_or("", |payment| payment.payment_method.as_str()))
    }

    fn gone_back(&self) -> Money {
        self.live().map_or(Money::zero(self.order.total.currency), |payment| payment.refunded)
    }

    fn kept(&self) -> Option<Money> {
        let back = self.gone_back();
        back.is_positive().then(|| self.order.total.checked_sub(back).ok()).flatten()
    }

    fn refund_lines(&self) -> Vec<RefundLine> {
        let live = self.live().map(|payment| payment.id);
        let of_live = self.refunds.iter().filter(|refund| Some(refund.payment) == live);
        of_live
            .map(|refund| RefundLine {
                amount: refund.amount,
                status: refund.status,
                at: refund.at.into(),
            })
            .collect()
    }

    fn strays(&self) -> Vec<Stray> {
        let strays = self.payments.iter().filter(|payment| payment.misdirected);
        strays
            .map(|payment| {
                let refund = self.refunds.iter().find(|refund| refund.payment == payment.id);
                Stray {
                    amount: payment.amount,
                    at: payment.created_at.into(),
                    refund: refund.map_or(RefundStatus::Processing, |refund| refund.status),
                }
            })
            .collect()
    }

    /// What was asked under the key of the payment that took the money.
    fn presses(&self) -> Vec<Press> {
        let Some(payment) = self.live().filter(|live| live.status == PaymentStatus::Succeeded)
        else {
            return Vec::new();
        };
        let of_payment =
            self.requests.iter().filter(|requests| requests.subject == payment.id.uuid());
        of_payment
            .map(|requests| Press {
                number: requests.number,
                times: requests.times,
                at: requests.first_at.into(),
                says: match requests.told.as_str() {
                    "executed" => format!("Charged {}, stored the answer", payment.amount),
                    _ => pressed::says(requests),
                },
                chip: match requests.told.as_str() {
                    "executed" => Chip::new(Mark::Once, "charged"),
                    _ => pressed::chip(requests),
                },
            })
            .collect()
    }

    /// The key of the next attempt to pay: another one after each that ended.
    fn key(&self, app: &App) -> KeyFacts {
        let ended = self.payments.iter().filter(|payment| !payment.status.is_open()).count();
        KeyFacts {
            key: keyed::of_order(app, "pay", self.order.id, ended),
            made_from: "this order and the tries that ended".to_owned(),
            bound_to: format!("one try to pay {}", self.order.total),
            state: "unused".to_owned(),
        }
    }

    /// What may still go back, unless some of it is on its way.
    fn refundable(&self, app: &App) -> Option<RefundOffer> {
        let payment = self.live().filter(|payment| payment.status == PaymentStatus::Succeeded)?;
        let refunds = || self.refunds.iter().filter(|refund| refund.payment == payment.id);
        if refunds().any(|refund| refund.status.is_open()) {
            return None;
        }
        let amount = payment.amount.checked_sub(payment.refunded).ok()?;
        let key = keyed::of_order(app, "refund", self.order.id, refunds().count());
        amount.is_positive().then_some(RefundOffer { key, amount })
    }

    fn asked(&self, state: &State) -> Vec<ProviderStep> {
        let (State::Unknown, Some(payment)) = (state, self.live()) else { return Vec::new() };
        let step = |at: OffsetDateTime, says: String, mark, word: &str| ProviderStep {
            at: at.into(),
            says,
            chip: Chip::new(mark, word),
        };
        let key = keyed::short(&payment.provider_key);
        let sent = format!("Charge sent under key {key}");
        let mut steps = vec![step(payment.created_at, sent, Mark::Quiet, "no answer")];
        if let Some(asking) = &self.asking {
            let next = asking.next.unwrap_or(self.now);
            let again = match (next - self.now).whole_seconds() {
                ..=0 => "Asking what became of it, now".to_owned(),
                1 => "Asking next, in 1 second".to_owned(),
                seconds => format!("Asking next, in {seconds} seconds"),
            };
            let times = match asking.attempts {
                ..=1 => again,
                attempts => format!("{again} (try {attempts})"),
            };
            steps.push(step(next, times, Mark::Unsure, "not known"));
        }
        steps
    }

    fn notice(&self, said: Said) -> Notice {
        let mut notice = said.notice();
        if let (Said::AlreadyPaid, Some(at)) = (said, self.paid_at) {
            notice.says =
                format!("You paid this at {} UTC.", crate::pages::Moment::from(at).minute());
        }
        notice
    }
}
