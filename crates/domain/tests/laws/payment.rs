//! What is known of a payment only ever grows: each status meets each answer.

use domain::{ChargeOutcome, DeclineCode, IllegalTransition, PaymentStatus};
use proptest::prelude::*;

fn outcomes() -> [ChargeOutcome; 3] {
    let charge_id = || "ch_1".to_owned();
    [
        ChargeOutcome::Succeeded { charge_id: charge_id() },
        ChargeOutcome::Declined { charge_id: charge_id(), code: DeclineCode::CardDeclined },
        ChargeOutcome::Cancelled,
    ]
}

#[test]
fn every_status_meets_every_answer_as_the_table_says() {
    use PaymentStatus::{Cancelled, Declined, Processing, Succeeded, Unknown};
    let to = |from: PaymentStatus| outcomes().map(|outcome| from.settle(&outcome).ok());
    assert_eq!(to(Processing), [Some(Succeeded), Some(Declined), None]);
    assert_eq!(to(Unknown), [Some(Succeeded), Some(Declined), Some(Cancelled)]);
    for last in [Succeeded, Declined, Cancelled] {
        assert_eq!(to(last), [None; 3]);
    }
}

#[test]
fn only_a_charge_on_its_way_can_lose_its_answer() {
    for &from in PaymentStatus::ALL {
        let to = PaymentStatus::Unknown;
        let expected = match from {
            PaymentStatus::Processing => Ok(to),
            _ => Err(IllegalTransition { from, to }),
        };
        assert_eq!(from.lose_answer(), expected);
    }
}

#[test]
fn a_refused_answer_tells_whether_it_is_old_or_contradicts() {
    let [succeeded, declined, _] = outcomes();
    let repeated = PaymentStatus::Succeeded.settle(&succeeded).expect_err("it is final");
    assert!(repeated.is_repeat());
    let contradicting = PaymentStatus::Declined.settle(&succeeded).expect_err("it is final");
    assert!(!contradicting.is_repeat());
    assert_eq!((contradicting.from, contradicting.to), (declined.status(), succeeded.status()));
}

#[test]
fn only_captured_money_can_be_given_back() {
    for &status in PaymentStatus::ALL {
        let captured = status == PaymentStatus::Succeeded;
        assert_eq!(status.check_refundable().is_ok(), captured);
        assert!(!(captured && status.is_open()));
    }
}

#[test]
fn an_answer_names_its_charge_where_there_is_one() {
    assert_eq!(
        outcomes().each_ref().map(ChargeOutcome::charge_id),
        [Some("ch_1"), Some("ch_1"), None]
    );
}

proptest! {
    #[test]
    fn whatever_order_answers_arrive_in_the_first_final_one_stands(
        answers in prop::collection::vec(prop::option::of(0..3_usize), 1..12),
    ) {
        let mut status = PaymentStatus::Processing;
        for answer in answers {
            let next = match answer {
                Some(index) => status.settle(&outcomes()[index]),
                None => status.lose_answer(),
            };
            match next {
                Ok(next) => {
                    prop_assert!(status.is_open() && next != status);
                    status = next;
                }
                Err(refused) => prop_assert_eq!(refused.from, status),
            }
        }
    }
}
