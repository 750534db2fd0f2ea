//! `/lab/matrix`: all guards under all faults.

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::super::layout::{Layout, Section};
use super::super::posted::{Again, Form, Posted};
use super::super::response::{self, Shown};
use super::{Entered, Setup, lab, side};
use crate::app::App;
use crate::lab::matrix::{Cell, Matrix};
use crate::lab::verdict::Outcome;
use crate::lab::words::Words;
use crate::lab::{Fault, Guard};

/// `GET /lab/matrix`
pub(super) async fn show_matrix(
    app: App,
    request: HttpRequest,
    setup: web::Query<Setup>,
) -> HttpResponse {
    response::answer(&request, show(&app, &request, &setup).await)
}

/// `POST /lab/matrix`: everything again, unless that is going on already.
pub(super) async fn run_matrix(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    response::answer(&request, start(&app, &request, form).await)
}

async fn start(app: &App, request: &HttpRequest, form: Form) -> Shown {
    let lab = lab(app)?;
    Posted::take(app, request, form, Again { page: "/lab/matrix", form: None }).await?;
    lab.run_matrix();
    Ok(response::see_other("/lab/matrix"))
}

async fn show(app: &App, request: &HttpRequest, setup: &Setup) -> Shown {
    let lab = lab(app)?;
    let entered = Entered::new(app, request, Section::Lab, setup.lang.as_deref()).await?;
    let (words, matrix) = (entered.words, lab.matrix());
    let progress = matrix.progress();
    let waiting = words.say(if progress.running { "cell-queued" } else { "cell-not-run" });
    let page = MatrixPage {
        page: entered.layout,
        w: words,
        heads: Fault::ALL.map(|fault| words.say(&format!("fault-{}", fault.name()))).to_vec(),
        rows: Guard::ALL.map(|guard| row(words, matrix, guard, &waiting)).to_vec(),
        legend: Outcome::ALL.map(|outcome| legend(words, matrix, outcome)).to_vec(),
        running: progress.running,
        ever: progress.ever,
        done: progress.cells,
        all: progress.all,
        progress: words.with(
            "matrix-progress",
            &[
                ("cells", &progress.cells.to_string()),
                ("all", &progress.all.to_string()),
                ("runs", &progress.runs.to_string()),
                ("seconds", &format!("{:.1}", progress.seconds)),
            ],
        ),
        has_redis: lab.has_redis(),
    };
    Ok(entered.visitor.show(request, &page))
}

#[derive(Template)]
#[template(path = "lab/matrix.html")]
struct MatrixPage {
    page: Layout,
    w: &'static Words,
    heads: Vec<String>,
    rows: Vec<Row>,
    legend: Vec<Legend>,
    running: bool,
    ever: bool,
    done: usize,
    all: usize,
    progress: String,
    has_redis: bool,
}

#[derive(Clone)]
struct Row {
    name: &'static str,
    guard: String,
    is_ours: bool,
    cells: Vec<CellView>,
    right: String,
}

#[derive(Clone)]
struct CellView {
    fault: String,
    tone: &'static str,
    glyph: String,
    word: String,
    /// The whole sentence, for the tip of the tongue and for screen readers.
    says: String,
    why: String,
    href: String,
    /// The same fault beside Payonce.
    beside: String,
}

#[derive(Clone)]
struct Legend {
    glyph: &'static str,
    word: String,
    count: String,
    means: String,
}

fn legend(words: &Words, matrix: &Matrix, outcome: Outcome) -> Legend {
    let cells = Guard::ALL.iter().flat_map(|guard| Fault::ALL.iter().map(|fault| (*guard, *fault)));
    let count =
        cells.filter(|(guard, fault)| outcome_of(&matrix.cell(*guard, *fault)) == Some(outcome));
    Legend {
        count: count.count().to_string(),
        glyph: side::glyph(outcome),
        word: words.say(&format!("outcome-{}", outcome.name())),
        means: words.say(&format!("means-{}", outcome.name())),
    }
}

fn row(words: &Words, matrix: &Matrix, guard: Guard, waiting: &str) -> Row {
    let cells: Vec<Cell> = Fault::ALL.iter().map(|fault| matrix.cell(guard, *fault)).collect();
    let right = cells.iter().filter(|cell| is_right(cell)).count();
    let complete = cells.iter().all(|cell| matches!(cell, Cell::Done(_) | Cell::NoResult));
    let views = Fault::ALL.iter().zip(&cells);
    Row {
        name: guard.name(),
        guard: words.say(&format!("guard-{}", guard.name())),
        is_ours: guard == Guard::Payonce,
        cells: views.map(|(fault, cell)| view(words, guard, *fault, (cell, waiting))).collect(),
        right: match complete {
            true => words.with(
                "of-all",
                &[("count", &right.to_string()), ("all", &Fault::ALL.len().to_string())],
            ),
            false => String::new(),
        },
    }
}

fn is_right(cell: &Cell) -> bool {
    outcome_of(cell).is_some_and(Outcome::is_right)
}

fn outcome_of(cell: &Cell) -> Option<Outcome> {
    let Cell::Done(run) = cell else { return None };
    run.verdict().map(|verdict| verdict.outcome)
}

const DOTTED: &str = r#"<circle class="s g-plain hole dots" cx="9" cy="9" r="7"/>"#;

/// A ring that fills with the runs.
fn filling(done: usize, all: usize) -> String {
    format!(
        r#"<circle class="s g-line hole" cx="9" cy="9" r="7"/><circle class="s g-ink hole" cx="9" cy="9" r="7" pathLength="{all}" stroke-dasharray="{done} {all}" transform="rotate(-90 9 9)"/>"#
    )
}

/// A cell, and what is said of it before its turn.
fn view(words: &Words, guard: Guard, fault: Fault, (cell, waiting): (&Cell, &str)) -> CellView {
    let fault_name = words.say(&format!("fault-{}", fault.name()));
    let open = |glyph: String, word: String| CellView {
        fault: fault_name.clone(),
        tone: "open",
        glyph,
        word,
        says: String::new(),
        why: String::new(),
        href: String::new(),
        beside: String::new(),
    };
    let plain = |word: String| open(DOTTED.to_owned(), word);
    match cell {
        Cell::Queued => plain(waiting.to_owned()),
        Cell::NoResult => plain(words.say("cell-none")),
        Cell::Running(done, all) => open(
            filling(*done, *all),
            words.with("cell-running", &[("done", &done.to_string()), ("all", &all.to_string())]),
        ),
        Cell::Done(run) => {
            let Some(verdict) = run.verdict() else { return plain(words.say("cell-none")) };
            let outcome = verdict.outcome;
            CellView {
                fault: fault_name.clone(),
                tone: outcome.tone(),
                glyph: side::glyph(outcome).to_owned(),
                word: words.say(&format!("outcome-{}", outcome.name())),
                says: side::sentence(words, run.spec, &verdict),
                why: side::why(words, run.spec, outcome),
                beside: match guard {
                    Guard::Payonce => String::new(),
                    _ => format!("/lab?left={}&right=payonce&fault={}", guard.name(), fault.name()),
                },
                href: format!(
                    "/lab?left={}&right=&fault={}&run={}",
                    guard.name(),
                    fault.name(),
                    run.id
                ),
            }
        }
    }
}
