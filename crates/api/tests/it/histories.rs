//! Random histories on real processes: orders, payments, refunds, cancellations, repeats, lost
//! connections, expiries, events of the provider, every kind of trouble with the cache, and kills.
//!
//! One seed is one history. Whatever happens in it, a key that has a reply gives that reply for ever,
//! and when everything has settled the invariants hold. A history that fails is made smaller as long
//! as it still fails, and printed as commands. `scripts/soak histories N` runs N of them;
//! with `PAYONCE_DEFECT=effects_apart` the server has a planted mistake, which must be found.

mod generate;
mod stage;
mod step;

use std::time::Duration;

use generate::history;
use stage::{Failure, Stage};
use step::Step;

/// In the normal run of the tests.
const HISTORIES: u64 = 4;
/// How often a failing history is tried again in a smaller form.
const SHRINKS_MAX: usize = 60;
/// At most this long for one history, its settling included.
const TIME_MAX: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_history_loses_or_doubles_anything() {
    let number = |name, usual| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (count, first) = (number("PAYONCE_HISTORIES", HISTORIES), number("PAYONCE_SEED", 1));
    let mut steps = 0;
    for seed in first..first + count {
        let steps_of_it = history(seed);
        steps += steps_of_it.len();
        if let Err(failure) = run(&steps_of_it).await {
            let smallest = smaller(steps_of_it, failure).await;
            panic!("seed {seed}: {}\n{}", smallest.why, smallest.commands.join("\n"));
        }
    }
    eprintln!("{count} histories of {steps} steps from seed {first} on, nothing lost or doubled");
}

async fn run(steps: &[Step]) -> Result<(), Failure> {
    let mut stage = Stage::set().await;
    let played = tokio::time::timeout(TIME_MAX, stage.play(steps)).await;
    let played = played.unwrap_or_else(|_| Err("the history did not end".to_owned()));
    played.map_err(|why| stage.failure(why))
}

/// Leaves out half, a quarter, … and at last single steps, as long as what remains still fails.
async fn smaller(mut steps: Vec<Step>, mut failure: Failure) -> Failure {
    let (mut chunk, mut tries) = (steps.len() / 2, 0);
    while chunk > 0 && tries < SHRINKS_MAX {
        let mut start = 0;
        while start < steps.len() && tries < SHRINKS_MAX {
            let end = (start + chunk).min(steps.len());
            let rest = [&steps[..start], &steps[end..]].concat();
            tries += 1;
            match run(&rest).await {
                Err(still) => (steps, failure) = (rest, still),
                Ok(()) => start = end,
            }
        }
        chunk /= 2;
    }
    failure
}
