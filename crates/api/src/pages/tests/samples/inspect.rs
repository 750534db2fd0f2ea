//! What became of a key.

use super::*;

pub(super) fn inspections() -> Vec<Sample> {
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
