//! The life of an order, walked in full: every state meets every event.

use domain::{
    Currency, LivePayment, Money, OrderRefusal, OrderState, OrderStatus, PaymentId, PaymentStatus,
};
use time::OffsetDateTime;
use time::macros::datetime;

use crate::{payment, usd};

const EARLIER: OffsetDateTime = datetime!(2024-05-01 11:59:59 UTC);
const NOW: OffsetDateTime = datetime!(2024-05-01 12:00 UTC);
const LATER: OffsetDateTime = datetime!(2024-05-01 12:00:01 UTC);

/// A row per state, a column per event. In time and late are about the reservation, and a word
/// behind them is the status of the linked payment: `own`, as against a stranger. A refund comes to
/// `part` or `all` of the capture. Refusals stand in brackets.
const TABLE: &str = "
state               | cancel        | expire        | begin         | pay own    | pay other     | unlink own | unlink other  | refund part        | refund all
pending in time     | cancelled     | [reserved]    | linked        | [illegal]  | [illegal]     | [illegal]  | [illegal]     | [illegal]          | [illegal]
- processing        | [in progress] | [in progress] | [in progress] | paid       | [in progress] | unlinked   | [in progress] | [illegal]          | [illegal]
- unknown           | [in progress] | [in progress] | [in progress] | paid       | [in progress] | unlinked   | [in progress] | [illegal]          | [illegal]
- succeeded         | [paid]        | [paid]        | [paid]        | paid       | [paid]        | [paid]     | [paid]        | [illegal]          | [illegal]
- declined          | cancelled     | [reserved]    | linked        | [illegal]  | [illegal]     | unlinked   | [illegal]     | [illegal]          | [illegal]
- cancelled         | cancelled     | [reserved]    | linked        | [illegal]  | [illegal]     | unlinked   | [illegal]     | [illegal]          | [illegal]
pending late        | cancelled     | expired       | [expired]     | [illegal]  | [illegal]     | [illegal]  | [illegal]     | [illegal]          | [illegal]
- processing        | [in progress] | [in progress] | [in progress] | paid       | [in progress] | unlinked   | [in progress] | [illegal]          | [illegal]
- unknown           | [in progress] | [in progress] | [in progress] | paid       | [in progress] | unlinked   | [in progress] | [illegal]          | [illegal]
- succeeded         | [paid]        | [paid]        | [paid]        | paid       | [paid]        | [paid]     | [paid]        | [illegal]          | [illegal]
- declined          | cancelled     | expired       | [expired]     | [illegal]  | [illegal]     | unlinked   | [illegal]     | [illegal]          | [illegal]
- cancelled         | cancelled     | expired       | [expired]     | [illegal]  | [illegal]     | unlinked   | [illegal]     | [illegal]          | [illegal]
paid                | [illegal]     | [illegal]     | [paid]        | [paid]     | [paid]        | [paid]     | [paid]        | partially_refunded | refunded
partially_refunded  | [illegal]     | [illegal]     | [paid]        | [paid]     | [paid]        | [paid]     | [paid]        | partially_refunded | refunded
refunded            | [illegal]     | [illegal]     | [paid]        | [paid]     | [paid]        | [paid]     | [paid]        | [illegal]          | [illegal]
cancelled           | [illegal]     | [illegal]     | [illegal]     | [illegal]  | [illegal]     | [illegal]  | [illegal]     | [illegal]          | [illegal]
expired             | [illegal]     | [illegal]     | [expired]     | [expired]  | [expired]     | [expired]  | [expired]     | [illegal]          | [illegal]
";

#[test]
fn every_state_meets_every_event_as_the_table_says() {
    let expected = TABLE.trim().lines().skip(1).map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[0].to_owned(), cells[1..].join(" | "))
    });
    let walked = states().into_iter().map(|(name, state)| (name, walk(state).join(" | ")));
    assert_eq!(walked.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

fn own() -> PaymentId {
    payment(1)
}

fn other() -> PaymentId {
    payment(2)
}

fn states() -> Vec<(String, OrderState)> {
    let pending = |until, live| OrderState::new(OrderStatus::Pending, until, live);
    let mut states = Vec::new();
    for (name, until) in [("pending in time", LATER), ("pending late", NOW)] {
        states.push((name.to_owned(), pending(until, None)));
        states.extend(PaymentStatus::ALL.iter().map(|&status| {
            (format!("- {status}"), pending(until, Some(LivePayment { id: own(), status })))
        }));
    }
    let settled = OrderStatus::ALL.iter().filter(|&&status| status != OrderStatus::Pending);
    states.extend(settled.map(|&status| (status.to_string(), OrderState::new(status, NOW, None))));
    states
}

fn walk(state: OrderState) -> [&'static str; 9] {
    let new = payment(3);
    [
        state.cancel(),
        state.expire(NOW),
        state.begin_payment(new, NOW),
        state.pay(own()),
        state.pay(other()),
        state.unlink_payment(own()),
        state.unlink_payment(other()),
        state.refund(usd(40), usd(100)),
        state.refund(usd(100), usd(100)),
    ]
    .map(|outcome| say(state, outcome))
}

/// One word per outcome; a refusal must also tell the state it met.
fn say(before: OrderState, outcome: Result<OrderState, OrderRefusal>) -> &'static str {
    match outcome {
        Ok(OrderState::Pending { live_payment: Some(live), .. }) => {
            assert_eq!(live, LivePayment { id: payment(3), status: PaymentStatus::Processing });
            "linked"
        }
        Ok(OrderState::Pending { live_payment: None, .. }) => "unlinked",
        Ok(after) => after.status().as_str(),
        Err(refusal) => {
            assert_eq!(refusal.status(), before.status());
            match refusal {
                OrderRefusal::AlreadyPaid { .. } => "[paid]",
                OrderRefusal::Expired { .. } => "[expired]",
                OrderRefusal::StillReserved { .. } => "[reserved]",
                OrderRefusal::PaymentInProgress { payment } => {
                    assert_eq!(payment, own());
                    "[in progress]"
                }
                OrderRefusal::WrongTotal { .. } => "[wrong total]",
                OrderRefusal::Illegal { .. } => "[illegal]",
            }
        }
    }
}

#[test]
fn linking_and_unlinking_leave_the_reservation_as_it_was() {
    let order = OrderState::new(OrderStatus::Pending, LATER, None);
    let linked = order.begin_payment(own(), NOW).expect("nothing stands in the way");
    assert_eq!(linked.unlink_payment(own()), Ok(order));
}

#[test]
fn a_reservation_ends_for_payments_at_the_moment_it_ends_for_the_job() {
    let order = OrderState::new(OrderStatus::Pending, NOW, None);
    assert!(order.begin_payment(own(), EARLIER).is_ok());
    assert_eq!(order.expire(EARLIER), Err(OrderRefusal::StillReserved { until: NOW }));
    assert!(order.begin_payment(own(), NOW).is_err());
    assert_eq!(order.expire(NOW), Ok(OrderState::Expired));
}

#[test]
fn no_payment_ever_reaches_an_order_that_gave_its_stock_back() {
    for order in [OrderState::Cancelled, OrderState::Expired] {
        assert!(order.begin_payment(own(), EARLIER).is_err());
        assert!(order.pay(own()).is_err());
    }
}

#[test]
fn refunds_must_come_to_something_within_the_capture() {
    let status = OrderStatus::Paid;
    let eur = Money::new(40, Currency::Eur);
    for refunded in [usd(0), usd(-1), usd(101), usd(i64::MIN), usd(i64::MAX), eur] {
        let refused = OrderState::Paid.refund(refunded, usd(100));
        assert_eq!(refused, Err(OrderRefusal::WrongTotal { status }), "{refunded}");
    }
}
