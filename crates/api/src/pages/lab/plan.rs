//! `/lab/plan`: how to show the lab to a team in 45 minutes.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::super::layout::{Layout, Section};
use super::super::response::{self, Shown};
use super::{Entered, Setup, lab};
use crate::app::App;
use crate::lab::words::Words;

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
    let links = [
        "/lab?left=none&right=&fault=double",
        "/lab?left=button&right=payonce&fault=network",
        "/lab?left=redis&right=payonce&fault=double",
        "/lab?left=processing&right=payonce&fault=kill",
        "/lab/matrix",
        "/learn/red-flags",
    ];
    let steps = links.iter().zip(1..).map(|(href, n)| (words.say(&format!("plan-{n}")), *href));
    let page = Plan { page: entered.layout, w: words, steps: steps.collect() };
    Ok(entered.visitor.show(request, &page))
}

#[derive(Template)]
#[template(path = "lab/plan.html")]
struct Plan {
    page: Layout,
    w: &'static Words,
    steps: Vec<(String, &'static str)>,
}
