//! Money is exact: it adds up, it refuses what it cannot hold, and text loses nothing.

use domain::{Currency, DecimalError, Money, MoneyError};
use proptest::prelude::*;

use crate::{currency, money, usd};

proptest! {
    #[test]
    fn a_sum_is_exact_or_refused(a in any::<i64>(), b in any::<i64>(), currency in currency()) {
        let exact = i128::from(a) + i128::from(b);
        let sum = Money::new(a, currency).checked_add(Money::new(b, currency));
        prop_assert_eq!(sum, narrow(exact, currency));
    }

    #[test]
    fn a_difference_is_exact_or_refused(
        a in any::<i64>(), b in any::<i64>(), currency in currency(),
    ) {
        let exact = i128::from(a) - i128::from(b);
        let difference = Money::new(a, currency).checked_sub(Money::new(b, currency));
        prop_assert_eq!(difference, narrow(exact, currency));
    }

    #[test]
    fn a_product_is_exact_or_refused(money in money(), times in any::<u32>()) {
        let exact = i128::from(money.amount) * i128::from(times);
        prop_assert_eq!(money.checked_mul(times), narrow(exact, money.currency));
    }

    #[test]
    fn currencies_never_mix(
        amounts in any::<[i64; 2]>(), one in 0..Currency::ALL.len(), apart in 1..Currency::ALL.len(),
    ) {
        let other = (one + apart) % Currency::ALL.len();
        let [a, b] = [(amounts[0], one), (amounts[1], other)]
            .map(|(amount, which)| Money::new(amount, Currency::ALL[which]));
        prop_assert_eq!(a.checked_add(b), Err(MoneyError::CurrencyMismatch));
        prop_assert_eq!(a.checked_sub(b), Err(MoneyError::CurrencyMismatch));
    }

    #[test]
    fn plain_decimals_read_back_to_the_minor_unit(money in money()) {
        prop_assert_eq!(Money::parse_decimal(&money.decimal(), money.currency), Ok(money));
    }

    #[test]
    fn plain_decimals_have_exactly_the_places_of_the_currency(money in money()) {
        let places = money.decimal().split_once('.').map_or(0, |(_, fraction)| fraction.len());
        prop_assert_eq!(places, money.currency.exponent() as usize);
    }

    #[test]
    fn the_text_for_people_is_the_decimal_with_commas_and_a_sign_of_the_currency(money in money()) {
        let text = money.to_string();
        let plain: String = text.chars().filter(|c| matches!(c, '0'..='9' | '.' | '-')).collect();
        prop_assert_eq!(plain, money.decimal());
        let symbol = ["$", "€", "£", "¥", "KWD "].into_iter().find(|symbol| text.contains(symbol));
        prop_assert_eq!(symbol, Some(symbol_of(money.currency)));
    }

    #[test]
    fn money_reads_back_from_json(money in money()) {
        let json = serde_json::to_string(&money).expect("it serialises");
        let (amount, code) = (money.amount, money.currency.code());
        prop_assert_eq!(&json, &format!(r#"{{"amount":{amount},"currency":"{code}"}}"#));
        prop_assert_eq!(serde_json::from_str::<Money>(&json).expect("it reads back"), money);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,40}|-?[0-9.]{0,40}", currency in currency()) {
        if let Ok(money) = Money::parse_decimal(&text, currency) {
            prop_assert_eq!(Money::parse_decimal(&money.decimal(), currency), Ok(money));
        }
    }
}

fn narrow(exact: i128, currency: Currency) -> Result<Money, MoneyError> {
    let amount = i64::try_from(exact).map_err(|_| MoneyError::Overflow)?;
    Ok(Money::new(amount, currency))
}

fn symbol_of(currency: Currency) -> &'static str {
    match currency {
        Currency::Usd => "$",
        Currency::Eur => "€",
        Currency::Gbp => "£",
        Currency::Jpy => "¥",
        Currency::Kwd => "KWD ",
    }
}

#[test]
fn each_currency_is_shown_by_its_own_exponent() {
    let cases = [
        (4_200, Currency::Usd, "$42.00", "42.00"),
        (1_000, Currency::Eur, "€10.00", "10.00"),
        (123_456_789, Currency::Gbp, "£1,234,567.89", "1234567.89"),
        (500, Currency::Jpy, "¥500", "500"),
        (13_400, Currency::Jpy, "¥13,400", "13400"),
        (12_345, Currency::Kwd, "KWD 12.345", "12.345"),
        (5, Currency::Usd, "$0.05", "0.05"),
        (-5, Currency::Eur, "-€0.05", "-0.05"),
        (0, Currency::Kwd, "KWD 0.000", "0.000"),
        (i64::MIN, Currency::Usd, "-$92,233,720,368,547,758.08", "-92233720368547758.08"),
    ];
    for (amount, currency, people, plain) in cases {
        let money = Money::new(amount, currency);
        assert_eq!((money.to_string(), money.decimal()), (people.to_owned(), plain.to_owned()));
    }
}

#[test]
fn places_behind_the_point_may_be_left_out_but_not_exceeded() {
    let read = |text, currency| Money::parse_decimal(text, currency).map(|money| money.amount);
    assert_eq!(read("42", Currency::Usd), Ok(4_200));
    assert_eq!(read("42.5", Currency::Usd), Ok(4_250));
    assert_eq!(read("42.5", Currency::Kwd), Ok(42_500));
    assert_eq!(read("0.001", Currency::Kwd), Ok(1));
    assert_eq!(read("0.001", Currency::Usd), Err(DecimalError::TooPrecise));
    assert_eq!(read("500.0", Currency::Jpy), Err(DecimalError::TooPrecise));
    assert_eq!(read("92233720368547758.08", Currency::Usd), Err(DecimalError::Overflow));
    assert_eq!(read("1".repeat(400).as_str(), Currency::Jpy), Err(DecimalError::Overflow));
}

#[test]
fn nothing_but_digits_and_one_point_is_an_amount() {
    let texts = [
        "", "-", ".", "5.", ".5", "-.5", "+5", "--5", "1.2.3", "1,000", "1e2", " 5", "5 ", "0x5",
        "$5", "٥", "NaN", "5.-1",
    ];
    for text in texts {
        let read = Money::parse_decimal(text, Currency::Usd);
        assert_eq!(read, Err(DecimalError::Malformed), "{text:?}");
    }
}

#[test]
fn json_with_floats_other_members_or_other_currencies_is_not_money() {
    for json in [
        r#"{"amount":19.99,"currency":"USD"}"#,
        r#"{"amount":"1999","currency":"USD"}"#,
        r#"{"amount":9223372036854775808,"currency":"USD"}"#,
        r#"{"amount":1999,"currency":"usd"}"#,
        r#"{"amount":1999,"currency":"XXX"}"#,
        r#"{"amount":1999}"#,
        r#"{"currency":"USD"}"#,
        r#"{"amount":1999,"currency":"USD","exponent":2}"#,
    ] {
        assert!(serde_json::from_str::<Money>(json).is_err(), "{json}");
    }
}

#[test]
fn zero_is_not_positive() {
    assert!(usd(1).is_positive());
    assert!(!Money::zero(Currency::Usd).is_positive());
    assert!(!usd(-1).is_positive());
}
