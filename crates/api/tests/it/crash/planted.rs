//! A matrix that cannot fail proves nothing: four known mistakes, planted on purpose, and the
//! cells that have to notice them.

use super::cell::{self, Fault, POINTS, Point};
use super::scene::{Scene, Setting};

/// The mistake, where a SIGKILL tells, and what it tells.
const MISTAKES: [(&str, &[&str], &str); 4] = [
    ("fresh_key", &["after_send", "answered"], "2 captures"),
    ("effects_apart", &["before_settle_commit"], "the key is stuck"),
    ("reply_apart", &["settle_committed"], "the key is stuck"),
    ("resend_unasked", &["after_send", "answered"], "sent again without asking"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_planted_mistake_is_caught() {
    let mut missed = Vec::new();
    for (mistake, points, told) in MISTAKES {
        let mut caught = Vec::new();
        for point in POINTS.iter().filter(|point| points.contains(&point.name)) {
            // Something else that went wrong is no proof.
            caught.extend(caught_at(mistake, *point).await.filter(|why| why.contains(told)));
        }
        eprintln!("{mistake}: caught {} of {} times: {caught:?}", caught.len(), points.len());
        // How often depends on who is faster at a point; that it is caught does not.
        if caught.is_empty() {
            missed.push(mistake);
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

async fn caught_at(mistake: &'static str, point: Point) -> Option<String> {
    let mut scene = Scene::set(&planted(mistake)).await;
    cell::run(&mut scene, point, Fault::Kill).await.err()
}

fn planted(mistake: &'static str) -> Setting {
    Setting { defect: Some(mistake), ..Setting::default() }
}
