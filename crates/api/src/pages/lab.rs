//! `/lab` and `/learn`: the pages of the double-click lab. Every form works without JavaScript;
//! the script adds the visitor's own clicks live, and the replay.

mod bench;
mod code;
mod export;
mod learn;
mod live;
mod matrix;
mod plan;
mod present;
mod side;
mod start;

use actix_web::HttpRequest;
use actix_web::http::header;
use actix_web::web::ServiceConfig;
use serde::Deserialize;

use super::cookies;
use super::layout::{Layout, Section};
use super::response::Detour;
use super::routes::page;
use super::visitor::Visitor;
use crate::app::App;
use crate::lab::words::Words;
use crate::lab::{Fault, Guard, Lab, Spec};
use crate::problem::Problem;

/// Registers the pages of lab and lessons.
pub(super) fn configure(config: &mut ServiceConfig) {
    config
        .service(page("/lab").get(bench::show_lab))
        .service(page("/lab/runs").post(start::run_for_me))
        .service(page("/lab/presses").post(start::press))
        .service(page("/lab/reset").post(start::reset))
        .service(page("/lab/live").get(live::stream))
        .service(page("/lab/runs/{id}/diagram.svg").get(export::svg))
        .service(page("/lab/runs/{id}/run.json").get(export::json))
        .service(page("/lab/present").get(present::show_step))
        .service(page("/lab/plan").get(plan::show_plan))
        .service(page("/lab/matrix").get(matrix::show_matrix).post(matrix::run_matrix))
        .service(page("/learn").get(learn::show_first))
        .service(page("/learn/red-flags").get(learn::show_flags))
        .service(page("/learn/{number}").get(learn::show_lesson));
}

/// What an address of the lab holds: an experiment, so that links can be shared.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Setup {
    left: Option<String>,
    right: Option<String>,
    fault: Option<String>,
    clicks: Option<u32>,
    spacing: Option<u64>,
    run: Option<String>,
    other: Option<String>,
    /// Which of the two is presented: `right`, else the left one.
    side: Option<String>,
    step: Option<usize>,
    lang: Option<String>,
}

impl Setup {
    fn fault(&self) -> Fault {
        self.fault.as_deref().and_then(Fault::from_name).unwrap_or(Fault::Double)
    }

    fn left(&self) -> Guard {
        self.left.as_deref().and_then(Guard::from_name).unwrap_or(Guard::Redis)
    }

    /// Nothing, where one guard stands alone.
    fn right(&self) -> Option<Guard> {
        match self.right.as_deref() {
            None => Some(Guard::Payonce),
            Some(name) => Guard::from_name(name),
        }
    }

    fn clicks(&self) -> u32 {
        self.spec(Guard::None).clicks
    }

    fn spacing(&self) -> u64 {
        self.spec(Guard::None).spacing_ms
    }

    fn spec(&self, guard: Guard) -> Spec {
        Spec::new(guard, self.fault(), self.clicks.unwrap_or(2), self.spacing.unwrap_or(40))
    }

    fn specs(&self) -> Vec<Spec> {
        let guards = [Some(self.left()), self.right()];
        guards.into_iter().flatten().map(|guard| self.spec(guard)).collect()
    }

    /// This experiment as an address.
    fn address(&self) -> String {
        let right = self.right().map_or("", Guard::name);
        format!(
            "/lab?left={}&right={right}&fault={}&clicks={}&spacing={}",
            self.left().name(),
            self.fault().name(),
            self.clicks(),
            self.spacing()
        )
    }
}

/// Everything a page of the lab begins with.
struct Entered {
    visitor: Visitor,
    layout: Layout,
    words: &'static Words,
}

impl Entered {
    async fn new(
        app: &App,
        request: &HttpRequest,
        section: Section,
        asked: Option<&str>,
    ) -> Result<Self, Detour> {
        let visitor = Visitor::greet(app, request).await?;
        let mut layout = visitor.layout(app, request, section).await?;
        let words = language(request, asked);
        layout.words = super::words::Words::of(words.code);
        Ok(Self { visitor, layout, words })
    }

    /// Whose runs these are.
    fn owner(&self) -> String {
        self.visitor.account.id.to_string()
    }
}

/// The address, then the switch in the header, then what the browser asks for.
fn language(request: &HttpRequest, asked: Option<&str>) -> &'static Words {
    let chosen = asked.or_else(|| cookies::read(request.headers(), cookies::LANGUAGE));
    let header = request.headers().get(header::ACCEPT_LANGUAGE);
    let header = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
    chosen.map_or_else(|| Words::accepted(header), Words::of)
}

/// The lab, in demo mode.
fn lab(app: &App) -> Result<Lab, Detour> {
    app.lab.get().cloned().ok_or_else(|| Problem::not_found().into())
}
