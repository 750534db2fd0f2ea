//! `/lab/plan`: how to show the lab to a team in 45 minutes.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::super::layout::{Layout, Section};
use super::super::response::{self, Shown};
use super::{Entered, Setup, lab};
use crate::app::App;
use crate::lab::words::Words;
use crate::lab::{Fault, Guard};

/// `GET /lab/plan`
pub(super) async fn show_plan(
    app: App,
    request: HttpRequest,
    setup: web::Query<Setup>,
) -> HttpResponse {
    response::answer(&request, show(&app, &request, &setup).await)
}

async fn show(app: &App, request: &HttpRequest, setup: &Setup) -> Shown {
    lab(app)?;
    let entered = Entered::new(app, request, Section::Lab, setup.lang.as_deref()).await?;
    let words = entered.words;
    let experiment = |left: Guard, right: Option<Guard>, fault: Fault| {
        let right_name = right.map_or("", Guard::name);
        let href = format!("/lab?left={}&right={right_name}&fault={}", left.name(), fault.name());
        let guards = [Some(left), right].into_iter().flatten();
        let mut names: Vec<String> =
            guards.map(|guard| words.say(&format!("guard-{}", guard.name()))).collect();
        names.push(words.say(&format!("fault-{}", fault.name())));
        (href, names.join(" · "))
    };
    let payonce = Some(Guard::Payonce);
    let links = [
        experiment(Guard::None, None, Fault::Double),
        experiment(Guard::Button, payonce, Fault::Network),
        experiment(Guard::Redis, payonce, Fault::Double),
        experiment(Guard::Processing, payonce, Fault::Kill),
        ("/lab/matrix".to_owned(), words.say("matrix-title")),
        ("/learn/red-flags".to_owned(), words.say("flags-title")),
    ];
    let steps = links.into_iter().zip(1..).map(|((href, text), n)| Step {
        says: words.say(&format!("plan-{n}")),
        href,
        text,
    });
    let page = Plan { page: entered.layout, w: words, steps: steps.collect() };
    Ok(entered.visitor.show(request, &page))
}

#[derive(Template)]
#[template(path = "lab/plan.html")]
struct Plan {
    page: Layout,
    w: &'static Words,
    steps: Vec<Step>,
}

/// What to do, and where.
struct Step {
    says: String,
    href: String,
    text: String,
}
