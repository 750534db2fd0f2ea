//! `/lab/present`: one run on a projector, step by step.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::super::layout::{Layout, Section, Theme};
use super::super::response::{self, Shown};
use super::code::Line;
use super::side::{Charge, Side};
use super::{Entered, Setup, lab};
use crate::app::App;
use crate::lab::Run;
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
    let find = |id: &Option<String>| lab.runs().get(id.as_deref()?, &entered.owner());
    let (left, right) = (find(&setup.run), find(&setup.other));
    let is_right = setup.side.as_deref() == Some("right");
    let run = if is_right { &right } else { &left }.as_ref().ok_or_else(Problem::not_found)?;
    let side = Side::of(run, words).ok_or_else(Problem::not_found)?;
    let scene = Scene::of(run.spec, &run.events(), words, false);
    let clock = Clock::new(scene.moments(), 1.0);
    let all = scene.arrows.len();
    let step = setup.step.unwrap_or(1).clamp(1, all.max(1));
    let arrow = scene.arrows.get(step - 1);
    let coins = scene.arrows.iter().take(step).filter_map(|arrow| arrow.coin).count();
    let charged = i64::try_from(coins).unwrap_or_default();
    let runs = runs_of(left.as_deref(), right.as_deref());
    let shown = if is_right { "&side=right" } else { "" };
    let address = |step: usize| format!("/lab/present?{runs}{shown}&step={step}");
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
        leave: lab_of(left.as_deref().unwrap_or(run), right.as_deref(), &runs),
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

/// The runs that stand on the page of the lab, as an address has them.
fn runs_of(left: Option<&Run>, right: Option<&Run>) -> String {
    let named = [("run", left), ("other", right)];
    let named = named.into_iter().filter_map(|(name, run)| Some(format!("{name}={}", run?.id)));
    named.collect::<Vec<_>>().join("&")
}

/// The page of the lab from which this was opened.
fn lab_of(left: &Run, right: Option<&Run>, runs: &str) -> String {
    let (guard, fault) = (left.spec.guard.name(), left.spec.fault.name());
    let right = right.map_or("", |run| run.spec.guard.name());
    let (clicks, spacing) = (left.spec.clicks, left.spec.spacing_ms);
    format!(
        "/lab?left={guard}&right={right}&fault={fault}&clicks={clicks}&spacing={spacing}&{runs}"
    )
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
