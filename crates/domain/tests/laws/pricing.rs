//! Baskets merge without losing a piece; totals are exact or refused, never wrapped.

use std::collections::HashMap;

use domain::{
    Basket, BasketError, Currency, Money, Offer, PriceChanged, PricedOrder, PricingError, Sku,
    check_expected,
};
use proptest::prelude::*;

use crate::{money, sku, usd};

/// Few names, so that duplicates are the rule.
fn raw_lines() -> impl Strategy<Value = Vec<(Sku, i64)>> {
    prop::collection::vec(("[ab][ab]?", 1..=20_i64), 1..=30)
        .prop_map(|lines| lines.into_iter().map(|(text, n)| (sku(&text), n)).collect())
}

/// As many products as given prices, one piece price each, and a line for every one of them.
fn priced(prices: &[i64], pieces: i64) -> Result<PricedOrder, PricingError> {
    let names: Vec<Sku> = (0..prices.len()).map(|n| sku(&format!("p{n}"))).collect();
    let offers: HashMap<Sku, i64> = names.iter().cloned().zip(prices.iter().copied()).collect();
    Basket::from_lines(names.into_iter().map(|name| (name, pieces)))
        .expect("the lines are within limits")
        .price(|sku| offers.get(sku).map(|&price| offer(sku, usd(price))))
}

fn offer(sku: &Sku, unit_price: Money) -> Offer {
    Offer { sku: sku.clone(), name: format!("Product {sku}"), unit_price }
}

proptest! {
    #[test]
    fn merging_keeps_every_piece_and_the_order_of_first_mention(lines in raw_lines()) {
        let mut wanted: Vec<(Sku, i64)> = Vec::new();
        for (sku, pieces) in &lines {
            match wanted.iter_mut().find(|(held, _)| held == sku) {
                Some((_, sum)) => *sum += pieces,
                None => wanted.push((sku.clone(), *pieces)),
            }
        }
        match Basket::from_lines(lines.clone()) {
            Ok(basket) => {
                let got: Vec<(Sku, i64)> = basket
                    .lines()
                    .iter()
                    .map(|line| (line.sku.clone(), i64::from(line.quantity.get())))
                    .collect();
                prop_assert_eq!(got, wanted);
                for line in basket.lines() {
                    prop_assert_eq!(&lines[line.line].0, &line.sku);
                    prop_assert!(lines[..line.line].iter().all(|(sku, _)| sku != &line.sku));
                }
            }
            Err(BasketError::MergedQuantity { line }) => {
                let name = &lines[line].0;
                let until = |end: usize| -> i64 {
                    lines[..end].iter().filter(|(sku, _)| sku == name).map(|(_, n)| n).sum()
                };
                prop_assert!(until(line) <= 99 && until(line + 1) > 99);
            }
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn the_total_is_the_sum_of_all_pieces_or_refused(
        prices in prop::collection::vec(prop_oneof![0..10_000_i64, any::<i64>()], 1..=20),
        pieces in 1..=99_i64,
    ) {
        let exact: i128 = prices.iter().map(|&p| i128::from(p) * i128::from(pieces)).sum();
        match priced(&prices, pieces) {
            Ok(order) => {
                prop_assert_eq!(i128::from(order.total.amount), exact);
                let lines: i128 = order.lines.iter().map(|l| i128::from(l.line_total.amount)).sum();
                prop_assert_eq!(lines, exact);
            }
            Err(PricingError::Overflow { line }) => {
                let before = &prices[..line];
                let sum: i128 = before.iter().map(|&p| i128::from(p) * i128::from(pieces)).sum();
                let own = i128::from(prices[line]) * i128::from(pieces);
                prop_assert!(i64::try_from(own).is_err() || i64::try_from(sum + own).is_err());
            }
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn only_the_very_same_total_is_expected(total in money(), expected in money()) {
        let changed = Err(PriceChanged { total });
        let same = total == expected;
        prop_assert_eq!(check_expected(total, Some(expected)), if same { Ok(()) } else { changed });
        prop_assert_eq!(check_expected(total, Some(total)), Ok(()));
        prop_assert_eq!(check_expected(total, None), Ok(()));
    }
}

#[test]
fn totals_at_the_edge_of_64_bits_neither_wrap_nor_panic() {
    let fits = i64::MAX / 99;
    assert_eq!(priced(&[fits], 99).expect("it fits").total, usd(fits * 99));
    assert_eq!(priced(&[fits + 1], 99), Err(PricingError::Overflow { line: 0 }));
    assert_eq!(priced(&[i64::MAX], 1).expect("it fits").total, usd(i64::MAX));
    assert_eq!(priced(&[i64::MAX, 1], 1), Err(PricingError::Overflow { line: 1 }));
    // Two to the 62nd, four times and a little: wrapping arithmetic would come to 5.
    let quarter = 1_i64 << 62;
    let wrapping = [quarter, quarter, quarter, quarter, 5];
    assert_eq!(priced(&wrapping, 1), Err(PricingError::Overflow { line: 1 }));
}

#[test]
fn a_basket_has_1_to_100_lines_as_sent() {
    let lines = |count: usize| (0..count).map(|n| (sku(&format!("p{n}")), 1));
    assert_eq!(Basket::from_lines(lines(0)), Err(BasketError::Empty));
    assert_eq!(Basket::from_lines(lines(100)).expect("a hundred lines").lines().len(), 100);
    assert_eq!(Basket::from_lines(lines(101)), Err(BasketError::TooManyLines));
    assert_eq!(BasketError::TooManyLines.pointer(), "/lines");
}

#[test]
fn each_line_is_a_quantity_before_it_is_merged() {
    for pieces in [0, -1, 100, i64::MIN, i64::MAX] {
        let refused = Basket::from_lines([(sku("a"), 3), (sku("a"), pieces)]);
        assert_eq!(refused, Err(BasketError::Quantity { line: 1 }), "{pieces}");
    }
    assert_eq!(BasketError::Quantity { line: 1 }.pointer(), "/lines/1/quantity");
}

#[test]
fn merged_lines_may_come_to_99_but_not_to_100() {
    let merged = Basket::from_lines([(sku("a"), 49), (sku("b"), 1), (sku("a"), 50)]);
    assert_eq!(merged.expect("99 pieces").lines()[0].quantity.get(), 99);
    let refused = Basket::from_lines([(sku("a"), 50), (sku("b"), 1), (sku("a"), 50)]);
    assert_eq!(refused, Err(BasketError::MergedQuantity { line: 2 }));
}

#[test]
fn an_unknown_product_is_named_with_the_line_that_first_asked_for_it() {
    let basket = Basket::from_lines([(sku("a"), 1), (sku("a"), 1), (sku("ghost"), 1)]);
    let refused = basket
        .expect("the lines are within limits")
        .price(|sku| (sku.as_str() == "a").then(|| offer(sku, usd(1))))
        .expect_err("no catalogue has ghosts");
    assert_eq!(refused, PricingError::UnknownSku { line: 2, sku: sku("ghost") });
    assert_eq!(refused.pointer(), "/lines/2/sku");
}

#[test]
fn an_order_has_one_currency() {
    let basket = Basket::from_lines([(sku("mug"), 1), (sku("tea"), 1)]).expect("two lines");
    let refused = basket.price(|sku| {
        let currency = if sku.as_str() == "tea" { Currency::Jpy } else { Currency::Eur };
        Some(offer(sku, Money::new(500, currency)))
    });
    assert_eq!(refused, Err(PricingError::MixedCurrencies { line: 1 }));
}

#[test]
fn a_line_says_what_the_catalogue_said() {
    let basket = Basket::from_lines([(sku("mug"), 3)]).expect("one line");
    let order = basket.price(|sku| Some(offer(sku, usd(1_400)))).expect("it has a price");
    let line = &order.lines[0];
    assert_eq!((line.sku.as_str(), line.name.as_str()), ("mug", "Product mug"));
    assert_eq!((line.unit_price, line.line_total), (usd(1_400), usd(4_200)));
    assert_eq!(order.total, usd(4_200));
}
