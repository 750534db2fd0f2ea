//! `/lab`: two guards, one fault, a Pay button, and what came of it.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::super::layout::{Layout, Section};
use super::super::response::{self, Shown};
use super::side::{self, Side};
use super::{Entered, Setup, lab};
use crate::app::App;
use crate::lab::words::Words;
use crate::lab::{Fault, Guard, Run};

/// `GET /lab`
pub(super) async fn show_lab(
    app: App,
    request: HttpRequest,
    setup: web::Query<Setup>,
) -> HttpResponse {
    response::answer(&request, show(&app, &request, setup.into_inner()).await)
}

async fn show(app: &App, request: &HttpRequest, setup: Setup) -> Shown {
    let lab = lab(app)?;
    let entered = Entered::new(app, request, Section::Lab, setup.lang.as_deref()).await?;
    let (words, owner) = (entered.words, entered.owner());
    let named: Vec<&String> = [&setup.run, &setup.other].into_iter().flatten().collect();
    // A link that somebody shared names runs that are not this visitor's: only the experiment counts.
    let runs: Vec<Arc<Run>> = named.iter().filter_map(|id| lab.runs().get(id, &owner)).collect();
    let failed = runs.iter().find_map(|run| run.ended()?.err());
    let note = match failed {
        Some(reason) => Some(words.with("failed-run", &[("reason", &reason)])),
        None => (runs.len() < named.len()).then(|| words.say("run-is-gone")),
    };
    let page = Bench {
        page: entered.layout,
        w: words,
        form: hex::encode(rand::random::<[u8; 12]>()),
        left: choices(words, Some(setup.left()), false),
        right: choices(words, setup.right(), true),
        faults: faults(words, setup.fault()),
        clicks: setup.clicks(),
        spacing: setup.spacing(),
        price: side::amount(),
        has_redis: lab.has_redis(),
        sides: runs.iter().filter_map(|run| Side::of(run, words)).collect(),
        board: side::board(&shown(&runs, &setup), words),
        is_running: runs.iter().any(|run| run.ended().is_none()),
        note,
        address: setup.address(),
        runs: runs.iter().map(|run| run.id.clone()).collect::<Vec<_>>().join(","),
    };
    Ok(entered.visitor.show(request, &page))
}

/// Before anything has run, the lanes are drawn, waiting.
fn shown(runs: &[Arc<Run>], setup: &Setup) -> Vec<Arc<Run>> {
    if !runs.is_empty() {
        return runs.to_vec();
    }
    setup.specs().into_iter().map(Run::not_yet).collect()
}

#[derive(Template)]
#[template(path = "lab/bench.html")]
struct Bench {
    page: Layout,
    w: &'static Words,
    form: String,
    left: Vec<Choice>,
    right: Vec<Choice>,
    faults: Vec<Choice>,
    clicks: u32,
    spacing: u64,
    price: String,
    has_redis: bool,
    sides: Vec<Side>,
    board: String,
    is_running: bool,
    note: Option<String>,
    address: String,
    runs: String,
}

/// One option of a select.
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) text: String,
    pub(super) chosen: bool,
}

fn choices(words: &Words, chosen: Option<Guard>, may_be_alone: bool) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Guard::ALL
        .into_iter()
        .map(|guard| Choice {
            value: guard.name(),
            text: words.say(&format!("guard-{}", guard.name())),
            chosen: chosen == Some(guard),
        })
        .collect();
    if may_be_alone {
        choices.push(Choice { value: "", text: words.say("nobody"), chosen: chosen.is_none() });
    }
    choices
}

fn faults(words: &Words, chosen: Fault) -> Vec<Choice> {
    let choice = |fault: Fault| Choice {
        value: fault.name(),
        text: words.say(&format!("fault-{}", fault.name())),
        chosen: fault == chosen,
    };
    Fault::ALL.into_iter().map(choice).collect()
}
