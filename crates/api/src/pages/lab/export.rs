//! A run to take away: its diagram as SVG, everything about it as JSON.

use std::sync::Arc;

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::json;

use super::super::response::{self, Detour, Shown};
use super::super::visitor::Visitor;
use super::{lab, language, side};
use crate::app::App;
use crate::lab::Run;
use crate::lab::diagram::{Clock, Look, Scene, draw, escaped, gutter};
use crate::lab::words::Words;
use crate::problem::Problem;

/// `GET /lab/runs/{id}/diagram.svg`
pub(super) async fn svg(app: App, request: HttpRequest, id: web::Path<String>) -> HttpResponse {
    let shown: Shown = async {
        let run = own_run(&app, &request, &id).await?;
        let picture = picture(&run, language(&request, None));
        Ok(attachment("image/svg+xml", "svg", &run).body(picture))
    }
    .await;
    response::answer(&request, shown)
}

/// Verdict, clock and diagram in one picture that stands alone, on white paper.
fn picture(run: &Run, words: &Words) -> String {
    const HEAD: f64 = 56.0;
    let scene = Scene::of(run.spec, &run.events(), words, false);
    let clock = Clock::new(scene.moments(), 1.0);
    let said = match run.verdict() {
        Some(verdict) => side::sentence(words, run.spec, &verdict),
        None => words.say("running"),
    };
    let about = format!(
        "{} · {}",
        words.say(&format!("guard-{}", run.spec.guard.name())),
        words.say(&format!("fault-{}", run.spec.fault.name()))
    );
    let look = Look { width: 900.0, scale: 1.0, narrow: false, id: "x", title: &said };
    let at = |x: f64, drawing: &str| {
        drawing.replacen("<svg ", &format!("<svg x=\"{x}\" y=\"{HEAD}\" "), 1)
    };
    let (time, drawing) = (gutter(&clock, 64.0, words), draw(&scene, &clock, look, words));
    let (height, said, about) = (HEAD + clock.end + 24.0, escaped(&said), escaped(&about));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"972\" height=\"{height:.0}\" \
         viewBox=\"0 0 972 {height:.0}\"><title>{said}</title><style>{STYLE}</style>\
         <rect class=\"paper\" width=\"972\" height=\"{height:.0}\"/>\
         <text class=\"name\" x=\"20\" y=\"28\" font-size=\"18\">{said}</text>\
         <text class=\"sub\" x=\"20\" y=\"48\" font-size=\"13\">{about}</text>{}{}</svg>",
        at(0.0, &time),
        at(64.0, &drawing)
    )
}

/// `GET /lab/runs/{id}/run.json`
pub(super) async fn json(app: App, request: HttpRequest, id: web::Path<String>) -> HttpResponse {
    let shown: Shown = async {
        let run = own_run(&app, &request, &id).await?;
        let body = json!({
            "id": run.id, "experiment": run.spec, "verdict": run.verdict(), "events": run.events(),
        });
        Ok(attachment("application/json", "json", &run).json(body))
    }
    .await;
    response::answer(&request, shown)
}

async fn own_run(app: &App, request: &HttpRequest, id: &str) -> Result<Arc<Run>, Detour> {
    let lab = lab(app)?;
    let visitor = Visitor::greet(app, request).await?;
    let run = lab.runs().get(id, &visitor.account.id.to_string());
    run.ok_or_else(|| Problem::not_found().into())
}

fn attachment(kind: &str, ending: &str, run: &Run) -> actix_web::HttpResponseBuilder {
    let name = format!("payonce-{}-{}.{ending}", run.spec.guard.name(), run.spec.fault.name());
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::CONTENT_TYPE, kind))
        .insert_header((header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")));
    response
}

/// The stylesheet of a diagram that stands alone, on light paper.
const STYLE: &str = "text{font-family:system-ui,sans-serif}.paper{fill:#fff}.lb.money,.lb.dup,.lb.dupret,.lb.win,.lb.replay{font-weight:600}.lane,.cap{stroke:#b9c3ca;stroke-width:1.25}.off{stroke-dasharray:2 5}\
.name{font-weight:600;fill:#14202b}.sub,.tm{fill:#586672}.act{fill:#fff;stroke:#7e8a94}.lease{stroke:#0b8560}.wait{stroke:#2a78b8}\
.call{stroke:#43515d;stroke-width:1.5;fill:none}.ret{stroke:#586672;stroke-width:1.25;fill:none}.money{stroke:#14202b;stroke-width:2.5;fill:none}\
.dup{stroke:#d23c1e;stroke-width:2.5;fill:none}.dupret{stroke:#d23c1e;stroke-width:1.5;fill:none}.replay{stroke:#2a78b8;stroke-width:2;fill:none}\
.win{stroke:#0b8560;stroke-width:2;fill:none}.hd.call{fill:#43515d;stroke:none}.hd.money{fill:#14202b;stroke:none}.hd.dup{fill:#d23c1e;stroke:none}\
.hd.win{fill:#0b8560;stroke:none}.lb{fill:#14202b;stroke:#fff;stroke-width:5;paint-order:stroke}.lb.dup,.lb.dupret{fill:#a8230c}.lb.dup{stroke:#fbdacf}.lb.win{fill:#00694a}\
.lb.replay{fill:#1a5a8c}.coin{fill:#14202b}.coin.d{fill:#d23c1e}.cointx{fill:#fff;font-weight:700}.band{fill:#fbdacf}.fold{fill:#f6f7f7}\
.ring{fill:#fff;stroke:#2a78b8;stroke-width:2}.clk{fill:#fff;stroke:#14202b;stroke-width:1.75}.clktx{fill:#14202b;font-weight:700}\
.torn{fill:none;stroke:#d23c1e;stroke-width:2.5}.p-tint{fill:#e6f6ee}.p-line{stroke:#0b8560;stroke-width:1.5}.p-wait{fill:#e4f0f9}.p-dot{fill:#2a78b8}";
