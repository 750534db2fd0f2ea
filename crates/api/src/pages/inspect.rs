//! `/inspect`: one timeline per key or order, and the answer to "was I charged twice?".

pub(super) mod look_up;
mod sql;

use askama::Template;
use domain::OrderId;

use super::keyed::short;
use super::layout::Layout;
use super::marks::{Chip, Mark};
use super::moment::Moment;
use super::orders::number;

pub(super) use look_up::show_inspect;

#[derive(Debug, Template)]
#[template(path = "inspect.html")]
pub struct Inspect {
    pub page: Layout,
    pub subject: Subject,
    pub answer: Option<Answer>,
    pub track: Vec<Stop>,
    pub timeline: Vec<Event>,
    pub facts: Vec<Fact>,
}

/// What was looked up.
#[derive(Debug, Clone)]
pub enum Subject {
    Nothing,
    Key(KeyName),
    Order(OrderName),
    /// Nothing of this account's under what was typed.
    Missing(String),
}

#[derive(Debug, Clone)]
pub struct KeyName(pub String);

#[derive(Debug, Clone, Copy)]
pub struct OrderName(pub OrderId);

/// "Charged once, $42.00", and the sentence after it.
#[derive(Debug, Clone)]
pub struct Answer {
    pub mark: Mark,
    pub says: String,
    pub more: String,
}

/// One state on the way of a key.
#[derive(Debug, Clone)]
pub struct Stop {
    pub word: String,
    pub when: String,
    pub place: Place,
}

#[derive(Debug, Clone, Copy)]
pub enum Place {
    Passed,
    Now(Mark),
    Ahead,
}

#[derive(Debug, Clone)]
pub struct Event {
    pub at: Moment,
    /// "Postgres", "Provider", "Mailbox"
    pub place: String,
    pub what: String,
    pub mark: Mark,
    pub node: Node,
    pub state_after: Option<Chip>,
}

/// What stands on the line in front of an event.
#[derive(Debug, Clone, Copy)]
pub enum Node {
    Dot,
    Press(u32),
    Outcome,
    Waiting,
}

#[derive(Debug, Clone)]
pub struct Fact {
    pub name: &'static str,
    pub value: String,
    pub href: Option<String>,
    pub is_code: bool,
}

impl Inspect {
    fn heading(&self) -> String {
        match &self.subject {
            Subject::Nothing => "Was I charged twice?".to_owned(),
            Subject::Key(key) => format!("Key {}", key.short()),
            Subject::Order(order) => format!("Order {}", order.number()),
            Subject::Missing(_) => "Nothing under it".to_owned(),
        }
    }

    fn summary(&self) -> String {
        match &self.subject {
            Subject::Nothing => "Look up the key of a form or the id of an order. \
                 You see everything that happened under it, and when."
                .to_owned(),
            Subject::Key(_) => "Everything this shop remembers of one press or many.".to_owned(),
            Subject::Order(_) => "Everything that happened to this order and its money.".to_owned(),
            Subject::Missing(query) => {
                format!("No key or order of yours is {}. Keys live for 24 hours.", short(query))
            }
        }
    }

    fn query(&self) -> String {
        match &self.subject {
            Subject::Nothing => String::new(),
            Subject::Key(key) => key.0.clone(),
            Subject::Order(order) => order.0.to_string(),
            Subject::Missing(query) => query.clone(),
        }
    }
}

impl KeyName {
    fn short(&self) -> String {
        short(&self.0)
    }
}

impl OrderName {
    fn number(self) -> String {
        number(self.0)
    }
}

impl Stop {
    fn class(&self) -> String {
        match self.place {
            Place::Passed => "done".to_owned(),
            Place::Now(mark) => format!("now {}", mark.tone()),
            Place::Ahead => "next".to_owned(),
        }
    }
}

impl Event {
    /// The drawing on the line, 24 by 24.
    fn node(&self) -> String {
        let tone = self.mark.tone();
        match self.node {
            Node::Dot => r#"<circle class="g-plain" cx="12" cy="12" r="4"/>"#.to_owned(),
            Node::Press(count) => format!(
                r#"<circle class="hollow g-ink" cx="12" cy="12" r="10"/><text x="12" y="16" text-anchor="middle">{count}</text>"#
            ),
            Node::Outcome => match self.mark {
                Mark::Replay | Mark::Refused => format!(
                    r#"<circle class="hollow g-{tone}" cx="12" cy="12" r="7"/>"#
                ),
                Mark::Unsure => r#"<circle class="hollow g-unsure" cx="12" cy="12" r="7"/><path class="g-unsure flat" d="M12 5a7 7 0 0 0 0 14z"/>"#.to_owned(),
                _ => format!(r#"<circle class="g-{tone}" cx="12" cy="12" r="7"/>"#),
            },
            Node::Waiting => format!(
                r#"<circle class="hollow dots g-{tone}" cx="12" cy="12" r="6"/>"#
            ),
        }
    }
}

impl Fact {
    pub fn text(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), href: None, is_code: false }
    }

    pub fn code(name: &'static str, value: impl Into<String>) -> Self {
        Self { is_code: true, ..Self::text(name, value) }
    }

    pub fn link(name: &'static str, value: impl Into<String>, href: impl Into<String>) -> Self {
        Self { href: Some(href.into()), ..Self::text(name, value) }
    }
}
