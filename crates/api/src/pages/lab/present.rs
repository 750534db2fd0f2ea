//! `/lab/present`: one run on a projector, step by step.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::super::layout::{Layout, Section, Theme};
use super::super::response::{self, Shown};
use super::code::Line;
use super::side::{Charge, Side};
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
    let clock = Clock::new(scene.moments(), 1.0);
    let all = scene.arrows.len();
    let step = setup.step.unwrap_or(1).clamp(1, all.max(1));
    let arrow = scene.arrows.get(step - 1);
    let coins = scene.arrows.iter().take(step).filter_map(|arrow| arrow.coin).count();
    let charged = i64::try_from(coins).unwrap_or_default();
    let address = |step: usize| format!("/lab/present?run={id}&step={step}");
    let mut layout = entered.layout;
    layout.theme = layout.theme.or(Some(Theme::Dark));
    let page = Present {
        page: layout,
        w: words,
        guard: side.guard.clone(),
        fault: words.say(&format!("fault-{}", run.spec.fault.name())),
        board: boards(&scene, &side.sentence, words),
        charges: side.charges.into_iter().take(coins).collect(),
        row: arrow.map_or(0, |arrow| clock.index(arrow.moment)),
        says: arrow.map(|arrow| arrow.sentence(words)).unwrap_or_default(),
        verdict: if step == all {
            Some((side.sentence.clone(), side.tone, side.why.clone()))
        } else {
            None
        },
        so_far: dollars(charged * price()),
        charged,
        step: words.with("present-step", &[("step", &step.to_string()), ("all", &all.to_string())]),
        previous: (step > 1).then(|| address(step - 1)),
        next: (step < all).then(|| address(step + 1)),
        leave: format!("{}&run={id}", Setup::address_of(run.spec)),
        line: side.code.into_iter().find(|line| !line.class.is_empty()),
        file: side.file,
    };
    Ok(entered.visitor.show(request, &page))
}

/// The same diagram for a projector, a laptop and a phone; the stylesheet shows one of them.
fn boards(scene: &Scene, title: &str, words: &Words) -> String {
    let sizes =
        [("big", 1160.0, 1.35, 84.0), ("mid", 776.0, 1.1, 72.0), ("small", 292.0, 1.0, 36.0)];
    let board = |(id, width, scale, clock_width): (&str, f64, f64, f64)| {
        let clock = Clock::new(scene.moments(), scale);
        let look = Look { width, scale, narrow: id == "small", id, title };
        let (time, drawing) =
            (gutter(&clock, clock_width, words), draw(scene, &clock, look, words));
        format!("<div class=\"board {id}\">{time}{drawing}</div>")
    };
    sizes.map(board).concat()
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
    charges: Vec<Charge>,
    so_far: String,
    charged: i64,
    step: String,
    previous: Option<String>,
    next: Option<String>,
    leave: String,
    line: Option<Line>,
    file: &'static str,
}
