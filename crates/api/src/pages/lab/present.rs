//! `/lab/present`: one run on a projector, step by step.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::super::layout::{Layout, Section, Theme};
use super::super::response::{self, Shown};
use super::side::{self, Side};
use super::{Entered, Setup, lab};
use crate::app::App;
use crate::lab::diagram::{Clock, Look, Scene, draw, gutter};
use crate::lab::verdict::{dollars, price};
use crate::lab::words::Words;
use crate::problem::Problem;

/// `GET /lab/present`
pub(super) async fn show_step(
    app: App,
    request: HttpRequest,
    setup: web::Query<Setup>,
) -> HttpResponse {
    response::answer(&request, show(&app, &request, &setup).await)
}

async fn show(app: &App, request: &HttpRequest, setup: &Setup) -> Shown {
    let lab = lab(app)?;
    let entered = Entered::new(app, request, Section::Lab, setup.lang.as_deref()).await?;
    let words = entered.words;
    let id = setup.run.as_deref().unwrap_or_default();
    let run = lab.runs().get(id, &entered.owner()).ok_or_else(Problem::not_found)?;
    let side = Side::of(&run, words).ok_or_else(Problem::not_found)?;
    let scene = Scene::of(run.spec, &run.events(), words, false);
    let clock = Clock::new(scene.moments(), 1.35);
    let all = scene.arrows.len();
    let step = setup.step.unwrap_or(1).clamp(1, all.max(1));
    let look = Look { width: 1180.0, scale: 1.35, narrow: false, id: "p", title: &side.sentence };
    let arrow = scene.arrows.get(step - 1);
    let coins = scene.arrows.iter().take(step).filter_map(|arrow| arrow.coin).count();
    let coins = i64::try_from(coins).unwrap_or_default();
    let address = |step: usize| format!("/lab/present?run={id}&step={step}");
    let mut layout = entered.layout;
    layout.theme = layout.theme.or(Some(Theme::Dark));
    let page = Present {
        page: layout,
        w: words,
        guard: side.guard.clone(),
        fault: words.say(&format!("fault-{}", run.spec.fault.name())),
        board: format!("{}{}", gutter(&clock, 84.0, words), draw(&scene, &clock, look, words)),
        row: arrow.map_or(0, |arrow| clock.index(arrow.moment)),
        says: arrow.map(|arrow| arrow.sentence(words)).unwrap_or_default(),
        verdict: if step == all {
            Some((side.sentence.clone(), side.tone, side.why.clone()))
        } else {
            None
        },
        so_far: dollars(coins * price()),
        charged: coins,
        step: words.with("present-step", &[("step", &step.to_string()), ("all", &all.to_string())]),
        previous: (step > 1).then(|| address(step - 1)),
        next: (step < all).then(|| address(step + 1)),
        leave: format!("{}&run={id}", Setup::address_of(run.spec)),
        line: side.code.into_iter().find(|line| !line.class.is_empty()),
        file: side.file,
    };
    Ok(entered.visitor.show(request, &page))
}

impl Setup {
    /// The page of the lab on which this one guard stands alone.
    fn address_of(spec: crate::lab::Spec) -> String {
        let (guard, fault) = (spec.guard.name(), spec.fault.name());
        format!("/lab?left={guard}&right=&fault={fault}")
    }
}

#[derive(Template)]
#[template(path = "lab/present.html")]
struct Present {
    page: Layout,
    w: &'static Words,
    guard: String,
    fault: String,
    board: String,
    row: usize,
    says: String,
    verdict: Option<(String, &'static str, String)>,
    so_far: String,
    charged: i64,
    step: String,
    previous: Option<String>,
    next: Option<String>,
    leave: String,
    line: Option<side::Line>,
    file: &'static str,
}
