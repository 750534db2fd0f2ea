//! Death at every point of the real server, with a real database, cache and provider.

mod cell;
mod checks;
mod conflicts;
mod crowd;
mod dropped;
mod named;
mod planted;
mod replicas;
mod restarts;
mod scene;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use cell::{FAULTS, Fault, Outcome, POINTS, Point};
use scene::{Scene, Setting};

/// Scenes that run at once; each is a handful of processes.
const SCENES: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_crash_at_any_point_loses_or_doubles_anything() {
    let rounds = std::env::var("PAYONCE_CRASH_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    let outcomes = matrix(rounds).await;
    let table = table(&outcomes, rounds);
    // Shown with --nocapture, and kept where a longer run asks for it.
    eprintln!("{table}");
    if let Some(path) = std::env::var_os("PAYONCE_CRASH_TABLE") {
        std::fs::write(path, &table).unwrap();
    }
    let failed: Vec<String> = outcomes
        .iter()
        .filter_map(|(point, fault, outcome)| {
            let why = outcome.as_ref().err()?;
            Some(format!("{} × {}: {why}", point.name, fault.title()))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

type Cells = Vec<(Point, Fault, Outcome)>;

async fn matrix(rounds: usize) -> Cells {
    let permits = Arc::new(Semaphore::new(SCENES));
    let mut lanes = JoinSet::new();
    for fault in FAULTS {
        let permits = Arc::clone(&permits);
        lanes.spawn(async move {
            let _permit = permits.acquire_owned().await.unwrap();
            lane(fault, rounds).await
        });
    }
    lanes.join_all().await.into_iter().flatten().collect()
}

async fn lane(fault: Fault, rounds: usize) -> Cells {
    let setting = Setting { with_other: fault == Fault::Stop, ..Setting::default() };
    let mut cells = Vec::new();
    let mut scene = Scene::set(&setting).await;
    for _ in 0..rounds {
        for point in POINTS {
            let outcome = cell::run(&mut scene, point, fault).await;
            if outcome.is_err() {
                // What one cell broke is not the next one's fault.
                scene = Scene::set(&setting).await;
            }
            cells.push((point, fault, outcome));
        }
    }
    cells
}

fn table(cells: &Cells, rounds: usize) -> String {
    let mut sums: HashMap<(&str, &str), (usize, usize, Duration)> = HashMap::new();
    for (point, fault, outcome) in cells {
        let sum = sums.entry((point.name, fault.title())).or_default();
        sum.1 += 1;
        if let Ok(took) = outcome {
            sum.0 += 1;
            sum.2 = sum.2.max(*took);
        }
    }
    let mut text = String::from("| point |");
    let faults = FAULTS.map(Fault::title);
    for fault in faults {
        let _ = write!(text, " {fault} |");
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(faults.len()));
    for point in POINTS {
        let _ = write!(text, "\n| `{}` |", point.name);
        for fault in faults {
            let (held, ran, longest) = sums.get(&(point.name, fault)).copied().unwrap_or_default();
            let _ = write!(text, " {held}/{ran}, {:.1} s |", longest.as_secs_f64());
        }
    }
    let held = cells.iter().filter(|cell| cell.2.is_ok()).count();
    let _ = writeln!(text, "\n\n{held} of {} cells held, {rounds} round(s) each.", cells.len());
    text
}
