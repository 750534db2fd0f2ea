//! `/mailbox`: the mails this shop sent, so that a second receipt could not hide.

use askama::Template;

use super::layout::Layout;
use super::marks::{Chip, Mark};
use super::moment::Moment;

#[derive(Debug, Template)]
#[template(path = "mailbox.html")]
pub struct Mailbox {
    pub page: Layout,
    pub mails: Vec<Mail>,
    /// Merchants see the mails of everybody.
    pub everybody: bool,
}

#[derive(Debug, Clone)]
pub struct Mail {
    pub id: String,
    pub to: String,
    pub subject: String,
    pub body: String,
    pub at: Moment,
    pub delivery: Delivery,
}

#[derive(Debug, Clone, Copy)]
pub enum Delivery {
    Queued,
    Sent,
    /// Every attempt failed; nobody tries again.
    Dead,
}

impl Mailbox {
    fn lead(&self) -> &'static str {
        if self.everybody {
            "Every mail this shop sent. One order gets one receipt, however often its form was sent."
        } else {
            "The mails this shop sent you. One order gets one receipt, however often you press Pay."
        }
    }
}

impl Delivery {
    fn chip(self) -> Chip {
        match self {
            Self::Queued => Chip::new(Mark::Quiet, "on its way"),
            Self::Sent => Chip::new(Mark::Plain, "sent"),
            Self::Dead => Chip::new(Mark::Refused, "could not be sent"),
        }
    }
}
