//! Shop, cart and checkout.

use super::*;

pub(super) fn shops() -> Vec<Sample> {
    let all = Shop {
        page: layout(Section::Shop),
        currencies: vec![Currency::Usd.into(), Currency::Eur.into(), Currency::Jpy.into()],
        chosen: None,
        products: products(),
        notice: None,
    };
    let chosen = Shop {
        chosen: Some(Currency::Eur),
        products: products().into_iter().filter(|p| p.price.currency == Currency::Eur).collect(),
        page: Layout {
            words: Words::of("zh-Hans"),
            theme: Some(Theme::Dark),
            signed_in: Some("shopper@payonce.test".to_owned()),
            ..layout(Section::Shop)
        },
        ..all.clone_without_notice()
    };
    let empty = Shop {
        products: Vec::new(),
        notice: Some(notice(Mark::Plain, "Sold out.")),
        ..all.clone_without_notice()
    };
    vec![sample("shop", &all), sample("shop-eur-zh-dark", &chosen), sample("shop-empty", &empty)]
}

impl Shop {
    fn clone_without_notice(&self) -> Self {
        Self {
            page: self.page.clone(),
            currencies: self.currencies.clone(),
            chosen: self.chosen,
            products: self.products.clone(),
            notice: None,
        }
    }
}

pub(super) fn carts() -> Vec<Sample> {
    let cart = |basket, notice| Cart { page: layout(Section::Elsewhere), basket, notice };
    let mixed = Basket {
        lines: vec![
            line("BELL", "Counter bell", usd(2400), 1, 12),
            line("KETTLE", "Slow kettle", eur(5300), 2, 1),
        ],
        totals: vec![usd(2400).into(), eur(10600).into()],
    };
    vec![
        sample("cart", &cart(basket(), None)),
        sample("cart-mixed", &cart(mixed.clone(), None)),
        sample("cart-empty", &cart(Basket::default(), None)),
        sample("checkout-mixed", &Checkout { basket: mixed, ..checkout(None) }),
    ]
}

pub(super) fn checkout(notice: Option<Notice>) -> Checkout {
    Checkout {
        page: layout(Section::Elsewhere),
        cart: "cart_1".to_owned(),
        basket: basket(),
        key: key(),
        email: "ada@example.com".to_owned(),
        email_fault: None,
        chosen: "pm_card_ok".to_owned(),
        notice,
        last_order: None,
        just_ordered: None,
    }
}

pub(super) fn checkouts() -> Vec<Sample> {
    let changed = Notice::new(
        Mark::Refused,
        "The price has changed to $44.00.",
        "Nothing was ordered and nothing was charged.",
    );
    let bad_mail = Checkout {
        email: "ada".to_owned(),
        email_fault: Some("Write an address with an @, so that the receipt can arrive.".to_owned()),
        ..checkout(None)
    };
    vec![
        sample("checkout", &checkout(None)),
        sample("checkout-price-changed", &checkout(Some(changed))),
        sample("checkout-bad-mail", &bad_mail),
        sample("checkout-empty", &Checkout { basket: Basket::default(), ..checkout(None) }),
    ]
}
