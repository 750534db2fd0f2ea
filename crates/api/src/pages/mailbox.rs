//! `/mailbox`: the mails this shop sent, so that a second receipt could not hide.

mod sql;

use actix_web::{HttpRequest, HttpResponse};
use askama::Template;

use super::layout::{Layout, Section};
use super::marks::{Chip, Mark};
use super::moment::Moment;
use super::response::{self, Shown};
use super::visitor::Visitor;
use crate::app::App;

/// `GET /mailbox`
pub(super) async fn show_mailbox(app: App, request: HttpRequest) -> HttpResponse {
    response::answer(&request, show(&app, &request).await)
}

async fn show(app: &App, request: &HttpRequest) -> Shown {
    let visitor = Visitor::greet(app, request).await?;
    let everybody = visitor.account.is_merchant();
    let whose = (!everybody).then_some(visitor.account.id);
    let mut conn = app.db.connection().await?;
    let mails = sql::newest(&mut conn, whose).await;
    let mails = conn.end(mails)?;
    let page = visitor.layout(app, request, Section::Mailbox).await?;
    Ok(visitor.show(request, &Mailbox { page, mails, everybody }))
}

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
