//! Orders, one and many.

use super::*;

pub(super) fn orders() -> Vec<Sample> {
    let card = || crate::pages::test_cards::describe("pm_card_ok");
    let paid = || State::Paid { card: card() };
    let pay = |state, notice| OrderPage {
        pay: Some(key()),
        cancel: Some("key-cancel".to_owned()),
        notice,
        ..order(state)
    };
    let refund = |amount, status| RefundLine { amount, status, at: at(50) };
    let declined = || State::Declined { for_want_of_funds: false };
    vec![
        sample(
            "order-paid",
            &OrderPage { presses: presses(), refund: Some(offer(4200)), ..order(paid()) },
        ),
        sample(
            "order-already-paid",
            &OrderPage {
                notice: Some(Notice::new(
                    Mark::Replay,
                    "You paid this at 10:42.",
                    "We did not charge you again.",
                )),
                ..order(paid())
            },
        ),
        sample(
            "order-pending",
            &pay(
                State::Pending { until: at(57) },
                Some(Notice::new(
                    Mark::Refused,
                    "The provider could not be reached.",
                    "Nothing was charged. Press Pay to try again.",
                )),
            ),
        ),
        sample("order-processing", &order(State::Processing)),
        sample("order-unknown", &OrderPage { asked: asked(), ..order(State::Unknown) }),
        sample("order-declined", &pay(declined(), None)),
        sample("order-no-funds", &pay(State::Declined { for_want_of_funds: true }, None)),
        sample(
            "order-partly-refunded",
            &OrderPage {
                refunds: vec![
                    refund(usd(1000), RefundStatus::Succeeded),
                    refund(usd(200), RefundStatus::Failed),
                ],
                kept: Some(usd(3200)),
                refund: Some(offer(3200)),
                ..order(State::PartlyRefunded { back: usd(1000), card: card() })
            },
        ),
        sample(
            "order-refunded",
            &OrderPage {
                refunds: vec![refund(usd(4200), RefundStatus::Succeeded)],
                ..order(State::Refunded { card: card() })
            },
        ),
        sample("order-expired", &OrderPage { strays: vec![stray()], ..order(State::Expired) }),
        sample("order-cancelled", &order(State::Cancelled)),
    ]
}

fn order(state: State) -> OrderPage {
    let lines =
        vec![order_line("Counter bell", 1, usd(2400)), order_line("Enamel mug", 1, usd(1800))];
    OrderPage {
        page: layout(Section::Orders),
        order: OrderView {
            id: id(0x7f3a_c21e),
            lines,
            total: usd(4200),
            email: Some("ada@example.com".to_owned()),
        },
        state,
        notice: None,
        asked: Vec::new(),
        pay: None,
        refunds: Vec::new(),
        kept: None,
        strays: Vec::new(),
        presses: Vec::new(),
        cancel: None,
        refund: None,
    }
}

fn presses() -> Vec<Press> {
    vec![
        Press {
            number: 1,
            times: 1,
            at: at(42),
            says: "Charged $42.00, stored the answer".to_owned(),
            chip: Chip::new(Mark::Once, "charged"),
        },
        Press {
            number: 2,
            times: 3,
            at: at(42),
            says: "Waited 102 ms, got the stored answer".to_owned(),
            chip: Chip::new(Mark::Replay, "replayed"),
        },
    ]
}

fn asked() -> Vec<ProviderStep> {
    let step = |minute, says: &str, mark, word: &str| ProviderStep {
        at: at(minute),
        says: says.to_owned(),
        chip: Chip::new(mark, word),
    };
    vec![
        step(42, "Charge sent under key 7f3a…c21e", Mark::Quiet, "no answer"),
        step(43, "Asked “what became of 7f3a…c21e?”", Mark::Quiet, "no answer"),
        step(44, "Asking next, in 4 seconds", Mark::Unsure, "not known"),
    ]
}

pub(super) fn lists() -> Vec<Sample> {
    let row = |seed, what: &str, total, status| OrderRow {
        id: id(seed),
        what: what.to_owned(),
        total,
        placed_at: at(42),
        status,
    };
    let rows = vec![
        row(0x9c21_e401, "Counter bell and 1 more", usd(4200), Standing::Unknown),
        row(0x11aa_e402, "Slow kettle", eur(5300), Standing::Is(OrderStatus::Paid)),
        row(0x41ba_e403, "Station clock", jpy(10_800), Standing::Is(OrderStatus::Pending)),
        row(0x52cb_e404, "Signing pen", usd(6400), Standing::Is(OrderStatus::Refunded)),
        row(0x62cb_e405, "Signing pen", usd(6400), Standing::Is(OrderStatus::Cancelled)),
        row(0x72cb_e406, "Signing pen", usd(6400), Standing::Charging),
    ];
    let mail = |id: &str, subject: &str, delivery| {
        Mail {
        id: id.to_owned(),
        to: "ada@example.com".to_owned(),
        subject: subject.to_owned(),
        body: "Thank you, Ada.\n\nCounter bell  $24.00\nEnamel mug    $18.00\n\nCharged once to card ending 4242: $42.00\n".to_owned(),
        at: at(42),
        delivery,
    }
    };
    let mails = vec![
        mail("m1", "Your receipt for order C21E00, $42.00", Delivery::Sent),
        mail("m2", "Money on its way back, $10.00", Delivery::Queued),
        mail("m3", "Your receipt", Delivery::Dead),
    ];
    let page = || layout(Section::Orders);
    let sign_in = |page, notice| SignIn {
        page,
        back: "/checkout".to_owned(),
        email: String::new(),
        key: "key-account".to_owned(),
        notice,
        demo: true,
    };
    let signed_in =
        Layout { signed_in: Some("shopper@payonce.test".to_owned()), ..layout(Section::Elsewhere) };
    vec![
        sample(
            "orders",
            &Orders { page: page(), orders: rows, next: Some("abc".to_owned()), everybody: false },
        ),
        sample(
            "orders-empty",
            &Orders { page: signed_in.clone(), orders: Vec::new(), next: None, everybody: true },
        ),
        sample("mailbox", &Mailbox { page: layout(Section::Mailbox), mails, everybody: false }),
        sample(
            "mailbox-empty",
            &Mailbox { page: layout(Section::Mailbox), mails: Vec::new(), everybody: true },
        ),
        sample("sign-in", &sign_in(layout(Section::Elsewhere), None)),
        sample(
            "sign-in-refused",
            &sign_in(
                layout(Section::Elsewhere),
                Some(notice(Mark::Refused, "No account has this e-mail and password.")),
            ),
        ),
        sample("signed-in", &sign_in(signed_in, None)),
    ]
}
