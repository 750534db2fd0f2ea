//! Ids, SKUs, tokens and words have one text form each, and read back what they write.

use std::collections::HashMap;
use std::fmt::{Debug, Display};
use std::str::FromStr;

use domain::{
    AccountId, CartId, Currency, DeclineCode, EventId, LedgerAccount, LedgerTransactionId, OrderId,
    OrderStatus, PaymentId, PaymentMethod, PaymentStatus, Quantity, ReceiptId, RefundId,
    RefundStatus, Sku, StockMovementId, WebhookEndpointId,
};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::sku;

fn round_trips<T>(value: &T)
where
    T: Display + FromStr + Serialize + DeserializeOwned + PartialEq + Debug,
{
    let text = value.to_string();
    assert_eq!(T::from_str(&text).ok().as_ref(), Some(value));
    let json = serde_json::to_string(value).expect("it serialises");
    assert_eq!(json, format!("\"{text}\""));
    assert_eq!(&serde_json::from_str::<T>(&json).expect("it reads back"), value);
}

proptest! {
    #[test]
    fn an_id_reads_back_what_it_writes(number in any::<u128>()) {
        let uuid = Uuid::from_u128(number);
        round_trips(&AccountId::from_uuid(uuid));
        round_trips(&OrderId::from_uuid(uuid));
        round_trips(&PaymentId::from_uuid(uuid));
        round_trips(&RefundId::from_uuid(uuid));
        round_trips(&StockMovementId::from_uuid(uuid));
        round_trips(&ReceiptId::from_uuid(uuid));
        round_trips(&WebhookEndpointId::from_uuid(uuid));
        round_trips(&EventId::from_uuid(uuid));
        round_trips(&CartId::from_uuid(uuid));
        round_trips(&LedgerTransactionId::from_uuid(uuid));
        prop_assert_eq!(OrderId::from_uuid(uuid).uuid(), uuid);
    }

    #[test]
    fn whatever_reads_as_an_id_is_written_the_same(text in "(ord_)?[0-9a-fA-F_-]{30,36}") {
        if let Ok(id) = text.parse::<OrderId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn a_sku_is_any_short_plain_name(text in "[A-Za-z0-9._-]{1,64}") {
        round_trips(&text.parse::<Sku>().expect("it is plain"));
    }

    #[test]
    fn a_payment_method_is_any_short_token(text in "pm_[a-z0-9_]{1,60}") {
        round_trips(&text.parse::<PaymentMethod>().expect("it is a token"));
    }

    #[test]
    fn a_quantity_is_what_lies_between_1_and_99(pieces in prop_oneof![-5..105_i64, any::<i64>()]) {
        let quantity = Quantity::try_from(pieces).map(Quantity::get).map(i64::from).ok();
        prop_assert_eq!(quantity, (1..=99).contains(&pieces).then_some(pieces));
    }
}

#[test]
fn an_id_has_no_second_spelling() {
    let digits = "0192f0c1a2b37c4d8e5f60718293a4b5";
    let order = format!("ord_{digits}");
    assert_eq!(order.parse::<OrderId>().expect("the one spelling").to_string(), order);
    for text in [
        digits.to_owned(),
        format!("pay_{digits}"),
        format!("ORD_{digits}"),
        format!("ord_{}", digits.to_uppercase()),
        format!("ord_{{{digits}}}"),
        format!("ord_{digits} "),
        format!(" ord_{digits}"),
        format!("ord_{digits}0"),
        format!("ord_{}", &digits[1..]),
        format!("ord_ord_{digits}"),
        "ord_0192f0c1-a2b3-7c4d-8e5f-60718293a4b5".to_owned(),
        format!("ord_é{}", &digits[2..]),
        "ord_".to_owned(),
        String::new(),
    ] {
        let refused = text.parse::<OrderId>().expect_err(&text);
        assert_eq!(refused.prefix, "ord_");
        assert!(serde_json::from_str::<OrderId>(&format!("{text:?}")).is_err());
    }
}

#[test]
fn every_word_reads_back_and_no_other_spelling_does() {
    fn check<T>(all: &[T])
    where
        T: Display + FromStr + Serialize + DeserializeOwned + PartialEq + Debug,
    {
        for word in all {
            round_trips(word);
            let text = word.to_string();
            for other in [text.to_lowercase(), text.to_uppercase(), format!("{text} ")] {
                assert_eq!(other.parse::<T>().is_ok(), other == text, "{other:?}");
            }
        }
    }
    check(Currency::ALL);
    check(OrderStatus::ALL);
    check(PaymentStatus::ALL);
    check(RefundStatus::ALL);
    check(DeclineCode::ALL);
    check(LedgerAccount::ALL);
}

#[test]
fn a_token_goes_to_the_provider_as_it_was_sent() {
    let token = "pm_card_visa".parse::<PaymentMethod>().expect("it is a token");
    assert_eq!(token.as_str(), "pm_card_visa");
}

#[test]
fn a_map_of_products_is_asked_with_plain_text() {
    let stock = HashMap::from([("mug", 3), ("tea", 5)].map(|(name, pieces)| (sku(name), pieces)));
    assert_eq!(
        ["mug", "tea", "Mug"].map(|name| stock.get(name).copied()),
        [Some(3), Some(5), None]
    );
}

#[test]
fn a_quantity_is_written_as_its_number() {
    let quantity = Quantity::try_from(42).expect("it lies between 1 and 99");
    assert_eq!(format!("{quantity} pieces"), "42 pieces");
    assert_eq!(format!("{quantity:>4}"), "  42");
}

#[test]
fn a_sku_is_never_empty_long_or_fancy() {
    let long = "a".repeat(65);
    for text in ["", &long, "a b", "a/b", "naïve", "a\0", "a\n", "\"a\""] {
        assert!(text.parse::<Sku>().is_err(), "{text:?}");
    }
}

#[test]
fn a_payment_method_is_never_a_card_number_or_a_path() {
    let long = format!("pm_{}", "a".repeat(61));
    for text in ["", "pm_", &long, "4242424242424242", "pm_Card", "pm_a-b", "pm_a/b", "xpm_a"] {
        assert!(text.parse::<PaymentMethod>().is_err(), "{text:?}");
    }
}
