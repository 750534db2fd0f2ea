//! `/learn`: ten lessons of one screen each, and a page of red flags to print.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::super::layout::{Layout, Section};
use super::super::response::{self, Shown};
use super::code::{self, Line};
use super::{Entered, Setup, side};
use crate::app::App;
use crate::lab::verdict::Outcome;
use crate::lab::words::Words;
use crate::lab::{Fault, Guard, Spec};
use crate::problem::Problem;

/// The experiment of each lesson.
const EXPERIMENTS: [(Guard, Option<Guard>, Fault); 10] = [
    (Guard::None, None, Fault::Double),
    (Guard::Button, Some(Guard::Payonce), Fault::Network),
    (Guard::Unique, Some(Guard::Payonce), Fault::Double),
    (Guard::Redis, Some(Guard::Payonce), Fault::Double),
    (Guard::Processing, Some(Guard::Payonce), Fault::Double),
    (Guard::Processing, Some(Guard::Payonce), Fault::Tabs),
    (Guard::Lookup, Some(Guard::Payonce), Fault::Kill),
    (Guard::Redis, Some(Guard::Payonce), Fault::Crowd),
    (Guard::Lookup, Some(Guard::Payonce), Fault::Day),
    (Guard::Redis, Some(Guard::Payonce), Fault::Cart),
];

/// `GET /learn`
pub(super) async fn show_first(
    app: App,
    request: HttpRequest,
    setup: web::Query<Setup>,
) -> HttpResponse {
    response::answer(&request, show(&app, &request, &setup, 1).await)
}

/// `GET /learn/{number}`
pub(super) async fn show_lesson(
    app: App,
    request: HttpRequest,
    number: web::Path<String>,
    setup: web::Query<Setup>,
) -> HttpResponse {
    let number = number.parse().unwrap_or_default();
    response::answer(&request, show(&app, &request, &setup, number).await)
}

async fn show(app: &App, request: &HttpRequest, setup: &Setup, number: usize) -> Shown {
    let entered = Entered::new(app, request, Section::Lessons, setup.lang.as_deref()).await?;
    let words = entered.words;
    let experiment = number.checked_sub(1).and_then(|index| EXPERIMENTS.get(index));
    let (left, right, fault) = experiment.ok_or_else(Problem::not_found)?;
    let text = |part: &str| words.say(&format!("lesson-{number}-{part}"));
    let title = |number: usize| words.say(&format!("lesson-{number}-title"));
    let page = Lesson {
        w: words,
        number,
        titles: (1..=EXPERIMENTS.len()).map(|number| (number, title(number))).collect(),
        title: text("title"),
        lead: text("lead"),
        first: text("a"),
        second: text("b"),
        codes: [(Some(*left), Outcome::Twice), (*right, Outcome::Once)]
            .into_iter()
            .filter_map(|(guard, outcome)| Some(Code::of(words, guard?, *fault, outcome)))
            .collect(),
        left: left.name(),
        right: right.map_or("", Guard::name),
        fault: fault.name(),
        caption: caption(words, *left, *right, *fault),
        next: (number < EXPERIMENTS.len())
            .then(|| (number + 1, words.with("learn-next", &[("title", &title(number + 1))]))),
        has_lab: app.lab.get().is_some(),
        page: entered.layout,
    };
    Ok(entered.visitor.show(request, &page))
}

#[derive(Template)]
#[template(path = "learn/lesson.html")]
struct Lesson {
    page: Layout,
    w: &'static Words,
    number: usize,
    titles: Vec<(usize, String)>,
    title: String,
    lead: String,
    first: String,
    second: String,
    codes: Vec<Code>,
    left: &'static str,
    right: &'static str,
    fault: &'static str,
    caption: String,
    next: Option<(usize, String)>,
    has_lab: bool,
}

/// The line of a guard that decides, and what is to be said about it.
struct Code {
    file: &'static str,
    lines: Vec<Line>,
    note: String,
    why: String,
}

impl Code {
    fn of(words: &Words, guard: Guard, fault: Fault, outcome: Outcome) -> Self {
        let spec = Spec::usual(guard, fault);
        let (file, lines) = code::excerpt(spec, outcome);
        let note = if outcome.is_right() { "deciding-line" } else { "guilty-line" };
        Self { file, lines, note: words.say(note), why: side::why(words, spec, outcome) }
    }
}

fn caption(words: &Words, left: Guard, right: Option<Guard>, fault: Fault) -> String {
    let guard = |guard: Guard| words.say(&format!("guard-{}", guard.name()));
    let names =
        [Some(guard(left)), right.map(guard), Some(words.say(&format!("fault-{}", fault.name())))];
    names.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// `GET /learn/red-flags`
pub(super) async fn show_flags(
    app: App,
    request: HttpRequest,
    setup: web::Query<Setup>,
) -> HttpResponse {
    let shown: Shown = async {
        let entered = Entered::new(&app, &request, Section::Lessons, setup.lang.as_deref()).await?;
        let words = entered.words;
        let texts = |name: &str, count: usize| {
            (1..=count).map(|number| words.say(&format!("{name}-{number}"))).collect()
        };
        let page = Flags {
            w: words,
            flags: texts("flag", 8),
            excuses: texts("excuse", 5),
            page: entered.layout,
        };
        Ok(entered.visitor.show(&request, &page))
    }
    .await;
    response::answer(&request, shown)
}

#[derive(Template)]
#[template(path = "learn/red-flags.html")]
struct Flags {
    page: Layout,
    w: &'static Words,
    flags: Vec<String>,
    excuses: Vec<String>,
}
