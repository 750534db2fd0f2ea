//! Runs while they run: the board again after every change, as server-sent events.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde::Deserialize;

use super::super::response::{self, Shown};
use super::super::visitor::Visitor;
use super::{lab, language, side};
use crate::app::App;
use crate::lab::Run;
use crate::lab::words::Words;

/// So often at most.
const PACE: Duration = Duration::from_millis(60);

#[derive(Debug, Deserialize)]
pub(super) struct Watched {
    /// Ids, commas between.
    runs: String,
}

/// `GET /lab/live`
pub(super) async fn stream(
    app: App,
    request: HttpRequest,
    watched: web::Query<Watched>,
) -> HttpResponse {
    response::answer(&request, watch(&app, &request, &watched).await)
}

async fn watch(app: &App, request: &HttpRequest, watched: &Watched) -> Shown {
    let lab = lab(app)?;
    let visitor = Visitor::greet(app, request).await?;
    let owner = visitor.account.id.to_string();
    let ids = watched.runs.split(',').take(2);
    let runs: Vec<Arc<Run>> = ids.filter_map(|id| lab.runs().get(id, &owner)).collect();
    let words = language(request, None);
    let boards = stream::unfold((runs, false), move |(runs, ended)| async move {
        if ended {
            return None;
        }
        changed(&runs).await;
        let ended = runs.iter().all(|run| run.ended().is_some());
        Some((message(&runs, words, ended), (runs, ended)))
    });
    Ok(HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/event-stream"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .streaming(boards.map(Ok::<_, actix_web::Error>)))
}

/// The next change, or a moment, whichever is later; a second at most.
async fn changed(runs: &[Arc<Run>]) {
    tokio::time::sleep(PACE).await;
    let Some(run) = runs.iter().find(|run| run.ended().is_none()) else { return };
    let mut changes = run.changes();
    let _ = tokio::time::timeout(Duration::from_millis(300), changes.changed()).await;
}

fn message(runs: &[Arc<Run>], words: &Words, ended: bool) -> Bytes {
    let board = serde_json::Value::String(side::board(runs, words));
    let end = if ended { "event: ended\ndata: .\n\n" } else { "" };
    Bytes::from(format!("event: board\ndata: {board}\n\n{end}"))
}
