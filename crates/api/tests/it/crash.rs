//! Death at every point of the real server, with a real database, cache and provider.

mod books;
mod cell;
mod census;
mod checks;
mod conflicts;
mod couriers;
mod crowd;
mod deed;
mod dropped;
mod named;
mod planted;
mod receiver;
mod replicas;
mod restarts;
mod rows;
pub(crate) mod scene;
mod table;

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use census::Census;
use rows::{Deed, FAULTS, Fault, POINTS, Point};
use scene::{Scene, Setting};
use table::Cell;

/// Scenes that run at once; each is a handful of processes.
const SCENES: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_crash_at_any_point_loses_or_doubles_anything() {
    let record = matrix(rounds()).await;
    let Record { cells, census, broken } = &*record.lock().unwrap();
    // Shown with --nocapture.
    eprintln!("{}", table::page(cells, census));
    let failed = cells.iter().filter_map(|(point, fault, outcome)| {
        let why = outcome.as_ref().err()?;
        Some(format!("{} {} × {}: {why}", point.deed.title(), point.name, fault.title()))
    });
    let failed: Vec<String> = failed.chain(broken.iter().cloned()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A shopper's token, at a server that may be a process.
pub(crate) async fn sign_in(port: u16) -> String {
    scene::sign_in(port, api::catalog::demo::SHOPPER).await
}

/// How the rows of the page begin.
pub(crate) fn rows() -> impl Iterator<Item = String> {
    POINTS.into_iter().map(|point| format!("| {} | `{}` |", point.deed.title(), point.name))
}

/// One in the tests; longer runs ask for more.
fn rounds() -> usize {
    std::env::var("PAYONCE_CRASH_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap())
}

/// What happened so far.
#[derive(Default)]
struct Record {
    cells: Vec<Cell>,
    census: Census,
    broken: Vec<String>,
}

type Shared = Arc<Mutex<Record>>;

/// A lane for each fault and each half of the operations: cells of a lane share a scene.
async fn matrix(rounds: usize) -> Shared {
    let permits = Arc::new(Semaphore::new(SCENES));
    let record = Shared::default();
    let mut lanes = JoinSet::new();
    for (fault, pays) in FAULTS.into_iter().flat_map(|fault| [(fault, true), (fault, false)]) {
        let (permits, record) = (Arc::clone(&permits), Arc::clone(&record));
        lanes.spawn(async move {
            let _permit = permits.acquire_owned().await.unwrap();
            lane(fault, pays, rounds, &record).await;
        });
    }
    lanes.join_all().await;
    record
}

async fn lane(fault: Fault, pays: bool, rounds: usize, record: &Shared) {
    let setting = Setting { with_other: fault == Fault::Stop, ..Setting::default() };
    let half = |point: &Point| matches!(point.deed, Deed::Order | Deed::Payment) == pays;
    let points = POINTS.into_iter().filter(half).filter(|point| point.faults.contains(&fault));
    let mut scene = Scene::set(&setting).await;
    for _ in 0..rounds {
        for point in points.clone() {
            let outcome = cell::run(&mut scene, point, fault).await;
            if let Err(why) = &outcome {
                eprintln!("{} {} × {}: {why}", point.deed.title(), point.name, fault.title());
                // What one cell broke is not the next one's fault.
                end(&scene, fault, record).await;
                scene = Scene::set(&setting).await;
            }
            record.lock().unwrap().cells.push((point, fault, outcome));
        }
        keep(record);
    }
    end(&scene, fault, record).await;
    keep(record);
}

async fn end(scene: &Scene, fault: Fault, record: &Shared) {
    let counted = census::take(scene).await;
    let mut record = record.lock().unwrap();
    match counted {
        Ok((census, missing)) => {
            record.census += census;
            let said = missing.into_iter().map(|what| format!("{}: {what}", fault.title()));
            record.broken.extend(said);
        }
        Err(why) => record.broken.push(format!("{}: {why}", fault.title())),
    }
}

/// Where a longer run asks for it, what is known so far is on file.
fn keep(record: &Shared) {
    let Some(path) = std::env::var_os("PAYONCE_CRASH_TABLE") else { return };
    let record = record.lock().unwrap();
    std::fs::write(path, table::page(&record.cells, &record.census)).unwrap();
}
