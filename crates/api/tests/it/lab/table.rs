//! Every guard under every fault: the documented verdict, by real runs. `scripts/soak lab` runs
//! them many times over and writes what they came to into a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api::lab::verdict::Outcome;
use api::lab::{Fault, Guard};
use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::Bench;

/// What each guard comes to, in the order of [`Fault::ALL`].
const fn documented(guard: Guard) -> [Outcome; 11] {
    use Outcome::{Lost, Once, Refused, Stuck, Twice, Wrong};
    match guard {
        Guard::None => [Twice, Twice, Twice, Twice, Twice, Twice, Twice, Once, Once, Twice, Twice],
        Guard::Button => [Once, Twice, Twice, Twice, Twice, Twice, Twice, Once, Once, Twice, Twice],
        Guard::Unique => {
            [Twice, Twice, Twice, Twice, Twice, Twice, Twice, Lost, Once, Twice, Twice]
        }
        Guard::Redis => {
            [Twice, Twice, Once, Twice, Twice, Twice, Stuck, Wrong, Stuck, Twice, Twice]
        }
        Guard::Lookup => [Twice, Twice, Once, Twice, Twice, Once, Once, Wrong, Stuck, Twice, Twice],
        Guard::Processing => {
            [Once, Once, Once, Twice, Stuck, Once, Once, Wrong, Stuck, Twice, Once]
        }
        Guard::Payonce => [Once, Once, Once, Once, Once, Once, Once, Refused, Once, Once, Once],
    }
}

/// One after the other: what is tried is a race of milliseconds, which a crowded machine may decide
/// the other way.
const AT_ONCE: usize = 1;

/// What the runs of each cell came to, by name, and how often.
type Came = BTreeMap<(&'static str, &'static str), BTreeMap<String, usize>>;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "races of milliseconds want a machine to themselves: scripts/test runs it by itself"]
async fn every_guard_under_every_fault_comes_to_its_documented_verdict() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let rounds = number("PAYONCE_LAB_ROUNDS").unwrap_or(1);
    let bench = Bench::new().await;
    let (mut came, mut different) = (Came::new(), Vec::new());
    let cells: Vec<_> = Guard::ALL
        .into_iter()
        .flat_map(|guard| Fault::ALL.into_iter().zip(documented(guard)).map(move |of| (guard, of)))
        .collect();
    for round in 1..=rounds {
        let runs = cells.iter().map(|(guard, (fault, _))| bench.run(*guard, *fault).boxed());
        let runs: Vec<_> = stream::iter(runs).buffered(AT_ONCE).collect().await;
        for ((guard, (fault, expected)), run) in cells.iter().zip(runs) {
            let to = match run.ended().unwrap() {
                Ok(verdict) => verdict.outcome.name().to_owned(),
                Err(reason) => reason,
            };
            if to != expected.name() {
                let (guard, fault) = (guard.name(), fault.name());
                different.push(format!("{guard}, {fault}: not {}, but {to}", expected.name()));
            }
            *came.entry((guard.name(), fault.name())).or_default().entry(to).or_default() += 1;
        }
        eprintln!("round {round} of {rounds}, {} verdicts differ", different.len());
    }
    bench.lab.stop().await;
    if let Some(path) = std::env::var_os("PAYONCE_LAB_TABLE") {
        std::fs::write(path, table(&came, rounds)).unwrap();
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

fn table(came: &Came, rounds: usize) -> String {
    let mut text = format!(
        "# What the guards came to\n\nWritten by `scripts/soak lab {rounds}`: {} real runs, each cell \
         {rounds} times, with a crowd of 96. A cell names what its runs came to; a number behind it \
         says that they did not agree.\n\n| guard |",
        rounds * Guard::ALL.len() * Fault::ALL.len()
    );
    let faults = Fault::ALL.map(|fault| format!(" {} |", fault.name())).concat();
    let _ = writeln!(text, "{faults}\n|---|{}", "---|".repeat(Fault::ALL.len()));
    for guard in Guard::ALL {
        let cell = |fault: Fault| format!(" {} |", told(&came[&(guard.name(), fault.name())]));
        let _ = writeln!(text, "| {} |{}", guard.name(), Fault::ALL.map(cell).concat());
    }
    text
}

fn told(outcomes: &BTreeMap<String, usize>) -> String {
    if outcomes.len() == 1 {
        return outcomes.keys().next().unwrap().clone();
    }
    let counted = outcomes.iter().map(|(outcome, times)| format!("{outcome} × {times}"));
    counted.collect::<Vec<_>>().join(", ")
}
