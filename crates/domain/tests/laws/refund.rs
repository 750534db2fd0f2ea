//! Refunds never exceed the capture, split to the last unit, and are refused for ever only where
//! nothing that is still open could change the answer.

use domain::{
    Currency, IllegalRefundTransition, InvalidRefund, Money, MoneyError, RefundOutcome,
    RefundRefusal, RefundStatus, Refundable, plan_refund,
};
use proptest::prelude::*;

use crate::usd;

fn payment(captured: i64, refunded: i64, open: i64) -> Refundable {
    Refundable::new(usd(captured), usd(refunded), usd(open), false).expect("amounts are sane")
}

proptest! {
    #[test]
    fn refunds_split_a_capture_to_the_last_unit(
        captured in 1..=i64::MAX,
        parts in prop::collection::vec(1..=i64::MAX, 0..20),
    ) {
        let mut refunded = 0;
        for part in parts {
            match plan_refund(&payment(captured, refunded, 0), Some(usd(part)), false) {
                Ok(amount) => {
                    prop_assert_eq!(amount, usd(part));
                    refunded += part;
                }
                Err(RefundRefusal::TooLarge { remaining }) => {
                    prop_assert_eq!(remaining, usd(captured - refunded));
                    prop_assert!(part > remaining.amount);
                }
                Err(other) => {
                    prop_assert_eq!(other, RefundRefusal::NothingLeft);
                    prop_assert_eq!(refunded, captured);
                }
            }
        }
        if let Ok(rest) = plan_refund(&payment(captured, refunded, 0), None, true) {
            refunded += rest.amount;
        }
        prop_assert_eq!(refunded, captured);
        let more = plan_refund(&payment(captured, refunded, 0), None, false);
        prop_assert_eq!(more, Err(RefundRefusal::NothingLeft));
    }

    #[test]
    fn no_plan_exceeds_what_is_neither_refunded_nor_on_its_way(
        (captured, refunded, open) in capture(),
        requested in prop::option::of(prop_oneof![-5..1_100_i64, any::<i64>()]),
        restock in any::<bool>(),
    ) {
        let plan = plan_refund(&payment(captured, refunded, open), requested.map(usd), restock);
        if let Ok(amount) = plan {
            prop_assert!(amount.is_positive());
            prop_assert!(refunded + open + amount.amount <= captured);
            prop_assert!(!restock || refunded + amount.amount == captured);
        }
    }

    #[test]
    fn a_refusal_passes_exactly_when_some_outcome_of_open_refunds_would_lift_it(
        (captured, refunded, open) in capture(),
        requested in prop::option::of(prop_oneof![-5..1_100_i64, any::<i64>()]),
        restock in any::<bool>(),
        restocked in any::<bool>(),
    ) {
        let plan = |succeeded, open| {
            let refunded = usd(refunded + succeeded);
            let payment = Refundable::new(usd(captured), refunded, usd(open), restocked);
            plan_refund(&payment.expect("amounts are sane"), requested.map(usd), restock)
        };
        if let Err(refused) = plan(0, open) {
            let liftable = (0..=open).any(|succeeded| plan(succeeded, 0).is_ok());
            prop_assert_eq!(refused == RefundRefusal::RefundInProgress, liftable);
        }
    }

    #[test]
    fn the_currency_is_always_the_payments(
        amount in any::<i64>(),
        currency in proptest::sample::select(&Currency::ALL[1..]),
        restock in any::<bool>(),
    ) {
        let requested = Money::new(amount, currency);
        let refused = plan_refund(&payment(100, 0, 0), Some(requested), restock);
        let wrong = InvalidRefund::WrongCurrency(Currency::Usd);
        prop_assert_eq!(refused, Err(RefundRefusal::Invalid(wrong)));
    }
}

/// A captured amount, and parts of it that went back or are on their way.
fn capture() -> impl Strategy<Value = (i64, i64, i64)> {
    (1..=1_000_i64).prop_flat_map(|captured| (Just(captured), 0..=captured)).prop_flat_map(
        |(captured, refunded)| (Just(captured), Just(refunded), 0..=captured - refunded),
    )
}

#[test]
fn a_refund_is_more_than_nothing() {
    for amount in [0, -1, i64::MIN] {
        let refused = plan_refund(&payment(100, 0, 0), Some(usd(amount)), false);
        assert_eq!(refused, Err(RefundRefusal::Invalid(InvalidRefund::NotPositive)));
    }
    assert_eq!(InvalidRefund::NotPositive.pointer(), "/amount/amount");
}

#[test]
fn without_an_amount_what_remains_goes_back_not_what_was_paid() {
    assert_eq!(plan_refund(&payment(100, 60, 0), None, false), Ok(usd(40)));
    assert_eq!(plan_refund(&payment(100, 0, 60), None, false), Ok(usd(40)));
}

#[test]
fn more_than_the_capture_is_too_large_now_and_for_ever() {
    let too_large = |remaining| Err(RefundRefusal::TooLarge { remaining: usd(remaining) });
    assert_eq!(plan_refund(&payment(100, 0, 0), Some(usd(101)), false), too_large(100));
    assert_eq!(plan_refund(&payment(100, 0, 0), Some(usd(i64::MAX)), false), too_large(100));
    assert_eq!(plan_refund(&payment(100, 60, 10), Some(usd(41)), false), too_large(30));
}

#[test]
fn what_only_open_refunds_stand_in_the_way_of_is_a_passing_refusal() {
    let passing = Err(RefundRefusal::RefundInProgress);
    assert_eq!(plan_refund(&payment(100, 0, 60), Some(usd(60)), false), passing);
    assert_eq!(plan_refund(&payment(100, 0, 100), None, false), passing);
    assert_eq!(plan_refund(&payment(100, 0, 60), Some(usd(40)), true), passing);
}

#[test]
fn goods_go_back_once_and_with_the_remainder() {
    let invalid = |reason| Err(RefundRefusal::Invalid(reason));
    assert_eq!(plan_refund(&payment(100, 60, 0), Some(usd(40)), true), Ok(usd(40)));
    let early = plan_refund(&payment(100, 0, 0), Some(usd(40)), true);
    assert_eq!(early, invalid(InvalidRefund::RestockNeedsRemainder));
    let restocked = Refundable::new(usd(100), usd(60), usd(0), true).expect("amounts are sane");
    let again = plan_refund(&restocked, None, true);
    assert_eq!(again, invalid(InvalidRefund::NothingToRestock));
    assert_eq!(plan_refund(&restocked, None, false), Ok(usd(40)));
    assert_eq!(InvalidRefund::NothingToRestock.pointer(), "/restock");
}

#[test]
fn a_payment_is_summed_up_in_one_currency() {
    let eur = Money::zero(Currency::Eur);
    let mixed = Refundable::new(usd(100), eur, usd(0), false);
    assert_eq!(mixed, Err(MoneyError::CurrencyMismatch));
    let overflowing = Refundable::new(usd(i64::MIN), usd(1), usd(0), false);
    assert_eq!(overflowing, Err(MoneyError::Overflow));
}

#[test]
fn every_refund_status_meets_every_answer() {
    let succeeded = RefundOutcome::Succeeded { provider_refund_id: "re_1".to_owned() };
    let failed = RefundOutcome::Failed { provider_refund_id: None };
    for &from in RefundStatus::ALL {
        for outcome in [&succeeded, &failed] {
            let to = outcome.status();
            let refused = Err(IllegalRefundTransition { from, to });
            assert_eq!(from.settle(outcome), if from.is_open() { Ok(to) } else { refused });
            assert_eq!(IllegalRefundTransition { from, to }.is_repeat(), from == to);
        }
        let lost = from.lose_answer().ok();
        let processing = from == RefundStatus::Processing;
        assert_eq!(lost, processing.then_some(RefundStatus::Unknown));
    }
}
