//! What starts runs: "Run for me", and the visitor's own presses.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::json;
use tokio::time::timeout;

use super::super::keyed;
use super::super::posted::{Again, Fields, Form, Posted};
use super::super::response::{self, Shown};
use super::{Setup, lab};
use crate::app::App;
use crate::lab::{Run, Wanted};
use crate::problem::{Code, Problem};

/// Without a script, the answer waits for the end of the run.
const PATIENCE: Duration = Duration::from_secs(70);
/// Most runs are over by then.
const RUNS_PAUSE_S: u64 = 5;
const AGAIN: Again<'static> = Again { page: "/lab", form: None };

/// `POST /lab/runs`
pub(super) async fn run_for_me(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    response::answer(&request, start(&app, &request, form, false).await)
}

/// `POST /lab/presses`: each press of the button is one of these.
pub(super) async fn press(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    response::answer(&request, start(&app, &request, form, true).await)
}

async fn start(app: &App, request: &HttpRequest, form: Form, presses: bool) -> Shown {
    let lab = lab(app)?;
    let Posted { visitor, fields } = Posted::take(app, request, form, AGAIN).await?;
    let setup = setup(&fields);
    let wanted = Wanted {
        visitor: visitor.account.id.to_string(),
        key: keyed::read(fields.get("form"))?,
        specs: setup.specs(),
    };
    let runs = match presses {
        true => lab.press(&wanted),
        false => lab.start(&wanted),
    }
    .ok_or_else(still_running)?;
    let address = result(&setup, &runs);
    if wants_json(request) {
        let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
        return Ok(HttpResponse::Ok().json(json!({ "runs": ids, "address": address })));
    }
    for run in &runs {
        let _ = timeout(PATIENCE, run.finished()).await;
    }
    Ok(response::see_other(&address))
}

fn still_running() -> Problem {
    let detail = "Your last runs have not ended. Wait for them, then start this one again.";
    Problem::new(Code::RateLimited, detail).retry_after(RUNS_PAUSE_S)
}

/// `POST /lab/reset`
pub(super) async fn reset(app: App, request: HttpRequest, form: Form) -> HttpResponse {
    response::answer(&request, forget(&app, &request, form).await)
}

async fn forget(app: &App, request: &HttpRequest, form: Form) -> Shown {
    let lab = lab(app)?;
    let posted = Posted::take(app, request, form, AGAIN).await?;
    lab.runs().forget(&posted.visitor.account.id.to_string());
    Ok(response::see_other("/lab"))
}

fn setup(fields: &Fields) -> Setup {
    let text = |name: &str| Some(fields.get(name).to_owned());
    Setup {
        left: text("left"),
        right: text("right"),
        fault: text("fault"),
        clicks: fields.get("clicks").parse().ok(),
        spacing: fields.get("spacing").parse().ok(),
        ..Setup::default()
    }
}

fn result(setup: &Setup, runs: &[Arc<Run>]) -> String {
    let mut address = setup.address();
    for (name, run) in ["run", "other"].iter().zip(runs) {
        address.push_str(&format!("&{name}={}", run.id));
    }
    address
}

fn wants_json(request: &HttpRequest) -> bool {
    let accept = request.headers().get(header::ACCEPT);
    accept.is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}
