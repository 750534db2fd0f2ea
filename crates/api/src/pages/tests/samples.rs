//! One sample of every page in every state.

use askama::Template;
use domain::{
    Currency, LedgerAccount, Money, OrderId, OrderStatus, PaymentId, RefundId, RefundStatus, Sku,
};
use time::macros::datetime;
use uuid::Uuid;

use crate::pages::*;
use crate::problem::Code;

pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) html: String,
}

pub(super) fn all() -> Vec<Sample> {
    [shops(), carts(), checkouts(), orders(), lists(), inspections(), books(), errors()]
        .into_iter()
        .flatten()
        .collect()
}

/// A page full of text from strangers.
pub(super) fn hostile() -> String {
    let evil = "\" autofocus onfocus=\"alert(1)\"><script>alert(1)</script>";
    let mut page = checkout(Some(notice(Mark::Plain, evil)));
    page.email = evil.to_owned();
    page.key.key = evil.to_owned();
    page.page.signed_in = Some(evil.to_owned());
    page.basket.lines[0].name = evil.to_owned();
    page.render().expect("renders")
}

fn shops() -> Vec<Sample> {
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

fn carts() -> Vec<Sample> {
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

fn checkout(notice: Option<Notice>) -> Checkout {
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

fn checkouts() -> Vec<Sample> {
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

fn orders() -> Vec<Sample> {
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

fn lists() -> Vec<Sample> {
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

fn inspections() -> Vec<Sample> {
    let nothing = Inspect {
        page: layout(Section::Inspect),
        subject: Subject::Nothing,
        answer: None,
        track: Vec::new(),
        timeline: Vec::new(),
        facts: Vec::new(),
    };
    let missing = Inspect {
        page: layout(Section::Inspect),
        subject: Subject::Missing("9c4e".to_owned()),
        answer: None,
        track: Vec::new(),
        timeline: Vec::new(),
        facts: Vec::new(),
    };
    let found = Inspect {
        page: layout(Section::Inspect),
        subject: Subject::Key(KeyName(KEY.to_owned())),
        answer: Some(Answer {
            mark: Mark::Once,
            says: "Charged once, $42.00".to_owned(),
            more: "Two presses, one charge, one replayed answer.".to_owned(),
        }),
        track: track(),
        timeline: timeline(),
        facts: vec![
            Fact::code("Full key", KEY),
            Fact::text("Amount", "$42.00"),
            Fact::text("Presses", "2 (1 charged, 1 replayed)"),
            Fact::link("Order", "C21E00", "/orders/ord_1"),
        ],
    };
    let order = Inspect {
        page: layout(Section::Inspect),
        subject: Subject::Order(OrderName(id(0x7f3a_c21e))),
        answer: Some(Answer {
            mark: Mark::Unsure,
            says: "We do not know yet".to_owned(),
            more: "It will not be charged twice.".to_owned(),
        }),
        track: Vec::new(),
        timeline: timeline().into_iter().take(4).collect(),
        facts: Vec::new(),
    };
    vec![
        sample("inspect-empty", &nothing),
        sample("inspect-missing", &missing),
        sample("inspect", &found),
        sample("inspect-order", &order),
    ]
}

fn track() -> Vec<Stop> {
    let stop = |word: &str, when: &str, place| Stop {
        word: word.to_owned(),
        when: when.to_owned(),
        place,
    };
    vec![
        stop("processing", "10:42:07", Place::Passed),
        stop("charged", "+186 ms", Place::Passed),
        stop("paid", "+188 ms", Place::Now(Mark::Once)),
        stop("expires", "in 24 h", Place::Ahead),
    ]
}

fn timeline() -> Vec<Event> {
    let event = |minute, place: &str, what: &str, mark, node, state: Option<Chip>| Event {
        at: at(minute),
        place: place.to_owned(),
        what: what.to_owned(),
        mark,
        node,
        state_after: state,
    };
    let plain = |word: &str| Some(Chip::new(Mark::Plain, word));
    vec![
        event(41, "Shop", "Press 1 received", Mark::Plain, Node::Press(1), None),
        event(
            42,
            "Postgres",
            "Record inserted, lease for 30 s",
            Mark::Plain,
            Node::Dot,
            plain("processing"),
        ),
        event(
            42,
            "Provider",
            "Charge of $42.00 sent under this key",
            Mark::Plain,
            Node::Dot,
            plain("charging"),
        ),
        event(42, "Shop", "Press 2 received", Mark::Plain, Node::Press(2), None),
        event(
            42,
            "Postgres",
            "Second insert turned away, press 2 waits",
            Mark::Replay,
            Node::Waiting,
            None,
        ),
        event(
            43,
            "Provider",
            "Charge ch_8Q1 confirmed",
            Mark::Once,
            Node::Outcome,
            plain("charged"),
        ),
        event(
            43,
            "Postgres",
            "Order C21E00, stock and answer committed together",
            Mark::Once,
            Node::Outcome,
            Some(Chip::new(Mark::Once, "paid")),
        ),
        event(
            43,
            "Shop",
            "Press 2 answered from the stored answer",
            Mark::Replay,
            Node::Outcome,
            None,
        ),
        event(44, "Mailbox", "Receipt sent to ada@example.com", Mark::Plain, Node::Dot, None),
    ]
}

fn books() -> Vec<Sample> {
    let entry = |minute, refund, amount, balance| StatementEntry {
        at: at(minute),
        order: id(0x7f3a_c21e),
        payment: PaymentId::from_uuid(Uuid::from_u128(0x7f3a_c21f)),
        refund,
        amount: usd(amount),
        balance: usd(balance),
    };
    let refund = Some(RefundId::from_uuid(Uuid::from_u128(0x7f3a_c220)));
    let merchant = || Layout {
        merchant: true,
        signed_in: Some("merchant@payonce.test".to_owned()),
        ..layout(Section::Statement)
    };
    let sheet = Statement {
        page: merchant(),
        account: LedgerAccount::ProviderClearing,
        currency: Currency::Usd,
        currencies: vec![Currency::Usd, Currency::Eur, Currency::Jpy],
        opening: usd(123_400),
        entries: vec![entry(42, None, 4200, 127_600), entry(50, refund, -1000, 126_600)],
        closing: usd(126_600),
        older: Some(17),
        newest: false,
        accounts: vec![
            (LedgerAccount::ProviderClearing, usd(126_600)),
            (LedgerAccount::Refunds, usd(1000)),
            (LedgerAccount::Sales, usd(-127_600)),
        ],
        sum: usd(0),
    };
    let off = Statement {
        page: Layout { theme: Some(Theme::Dark), ..merchant() },
        accounts: vec![(LedgerAccount::Sales, usd(-100))],
        sum: usd(-100),
        older: None,
        newest: true,
        currencies: vec![Currency::Usd],
        entries: vec![entry(42, None, 4200, 127_600)],
        ..sheet.clone_without_entries()
    };
    let empty = Statement { newest: true, older: None, ..sheet.clone_without_entries() };
    let bare = || Layout { csrf: String::new(), cart_count: None, ..layout(Section::Elsewhere) };
    vec![
        sample("statement", &sheet),
        sample("statement-off", &off),
        sample("statement-empty", &empty),
        sample("problems", &ProblemIndex { page: bare(), codes: Code::ALL }),
        sample("problem", &ProblemPage { page: bare(), code: Code::OutcomeUnknown }),
        sample("problem-final", &ProblemPage { page: bare(), code: Code::CardDeclined }),
    ]
}

impl Statement {
    fn clone_without_entries(&self) -> Self {
        Self {
            page: self.page.clone(),
            currencies: self.currencies.clone(),
            entries: Vec::new(),
            accounts: self.accounts.clone(),
            ..*self
        }
    }
}

fn errors() -> Vec<Sample> {
    let cases = [
        (
            "error-403",
            403,
            "forbidden",
            false,
            true,
            "The form carried no token of this browser's session, so it may have been sent by another site. Nothing was done.",
        ),
        (
            "error-404",
            404,
            "not_found",
            false,
            true,
            "There is no such page, or it is not yours to see.",
        ),
        (
            "error-409",
            409,
            "outcome_unknown",
            true,
            false,
            "We asked the provider for $42.00 and no answer came back yet.",
        ),
        (
            "error-422",
            422,
            "idempotency_key_reused",
            false,
            true,
            "The first request under this key had another body.",
        ),
        ("error-429", 429, "rate_limited", true, true, "Wait a few seconds, then send it again."),
        (
            "error-500",
            500,
            "internal",
            true,
            false,
            "We cannot say how far it got. Send the same again, with the same key.",
        ),
        (
            "error-503",
            503,
            "busy",
            true,
            true,
            "The database was too busy to answer in time. Nothing was done.",
        ),
    ];
    let error =
        |(name, status, code, retryable, safe_new_key, detail): (_, u16, &str, _, _, &str)| {
            let link = (status == 409).then(|| Link {
                href: "/orders/ord_1".to_owned(),
                text: "To the order".to_owned(),
            });
            let page =
                Layout { csrf: String::new(), cart_count: None, ..layout(Section::Elsewhere) };
            sample(
                name,
                &ErrorPage {
                    page,
                    status,
                    code: code.to_owned(),
                    detail: detail.to_owned(),
                    retryable,
                    safe_new_key,
                    link,
                },
            )
        };
    let mut samples: Vec<Sample> = cases.into_iter().map(error).collect();
    let form = RedrawnForm {
        action: "/cart".to_owned(),
        key: None,
        fields: vec![
            ("sku".to_owned(), "BELL".to_owned()),
            ("quantity".to_owned(), "1".to_owned()),
        ],
        asks: "Put 1 Counter bell into the cart?".to_owned(),
        button: "Put it in".to_owned(),
    };
    samples.push(sample(
        "redrawn",
        &Redrawn {
            page: layout(Section::Elsewhere),
            reason: Reason::NoCookie,
            form: Some(form),
            back: "/".to_owned(),
        },
    ));
    samples.push(sample(
        "redrawn-bare",
        &Redrawn {
            page: layout(Section::Elsewhere),
            reason: Reason::OldSession,
            form: None,
            back: "/checkout".to_owned(),
        },
    ));
    samples
}

const KEY: &str = "7f3a9b0451de4c8e9a072d61c0b8c21e";

fn sample(name: &'static str, page: &impl Template) -> Sample {
    let html = page.render().unwrap_or_else(|error| panic!("{name}: {error}"));
    Sample { name, html }
}

fn layout(section: Section) -> Layout {
    Layout {
        words: Words::of("en"),
        section,
        theme: None,
        csrf: "csrf-sample".to_owned(),
        back: "/".to_owned(),
        cart_count: Some(2),
        signed_in: None,
        merchant: false,
    }
}

fn products() -> Vec<Product> {
    let product = |sku: &str, name: &str, description: &str, price, stock, in_cart| Product {
        sku: self::sku(sku),
        name: name.to_owned(),
        description: description.to_owned(),
        price,
        stock,
        in_cart,
    };
    vec![
        product("BELL", "Counter bell", "Brass. Rings once per press.", usd(2400), 112, 1),
        product("MUG", "Enamel mug", "Two rings, one handle.", usd(1800), 140, 0),
        product("BOOK", "Order book", "Numbered pages, no carbon.", usd(1200), 163, 0),
        product("LAMP", "Night-shift lamp", "For the person on call.", usd(8900), 107, 0),
        product("PEN", "Signing pen", "Writes a name, once.", eur(6400), 109, 0),
        product("TIN", "Sencha tin", "100 g, from Uji.", jpy(3200), 125, 0),
        product("KETTLE", "Slow kettle", "Pours when it is ready.", eur(5800), 1, 0),
        product("CLOCK", "Station clock", "Stops for nobody.", jpy(10_800), 0, 0),
    ]
}

fn basket() -> Basket {
    Basket {
        lines: vec![
            line("BELL", "Counter bell", usd(2400), 1, 12),
            line("MUG", "Enamel mug", usd(1800), 1, 40),
        ],
        totals: vec![usd(4200).into()],
    }
}

fn line(sku: &str, name: &str, unit_price: Money, quantity: u32, stock: i64) -> Line {
    let amount = unit_price.checked_mul(quantity).expect("small");
    Line { sku: self::sku(sku), name: name.to_owned(), unit_price, quantity, amount, stock }
}

fn order_line(name: &str, quantity: u32, amount: Money) -> OrderLine {
    OrderLine { name: name.to_owned(), quantity, amount }
}

fn offer(amount: i64) -> RefundOffer {
    RefundOffer { key: "key-refund".to_owned(), amount: usd(amount) }
}

fn stray() -> Stray {
    Stray { amount: usd(4200), at: at(58), refund: RefundStatus::Succeeded }
}

fn key() -> KeyFacts {
    KeyFacts {
        key: KEY.to_owned(),
        made_from: "this cart. The same cart always gets the same key".to_owned(),
        bound_to: "this cart and $42.00. Another cart under this key is refused".to_owned(),
        state: "unused".to_owned(),
    }
}

fn notice(mark: Mark, says: &str) -> Notice {
    Notice::new(mark, says, "")
}

fn id(seed: u128) -> OrderId {
    OrderId::from_uuid(Uuid::from_u128(seed))
}

fn sku(text: &str) -> Sku {
    text.parse().expect("a valid SKU")
}

fn at(minute: i64) -> Moment {
    (datetime!(2026-11-29 10:00:07.006 UTC) + time::Duration::minutes(minute)).into()
}

const fn usd(amount: i64) -> Money {
    Money::new(amount, Currency::Usd)
}

const fn eur(amount: i64) -> Money {
    Money::new(amount, Currency::Eur)
}

const fn jpy(amount: i64) -> Money {
    Money::new(amount, Currency::Jpy)
}
