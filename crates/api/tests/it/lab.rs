//! The lab: every guard under every fault comes to what is written here, by real runs.

use std::path::PathBuf;

use api::lab::verdict::Outcome;
use api::lab::{Fault, Guard, Lab, Recipe, Run, Saw, Spec};

use crate::postgres::TestDatabase;
use crate::redis::TestRedis;

struct Bench {
    lab: Lab,
    _redis: TestRedis,
    _database: TestDatabase,
}

impl Bench {
    async fn new() -> Self {
        crate::log::listen();
        let (database, redis) = (TestDatabase::new().await, TestRedis::start(None).await);
        let lab = Lab::new(Recipe {
            database_url: database.url.clone(),
            redis_url: Some(redis.url()),
            program: PathBuf::from(env!("CARGO_BIN_EXE_payonce")),
            crowd: 96,
        });
        Self { lab, _redis: redis, _database: database }
    }

    async fn run(&self, guard: Guard, fault: Fault) -> std::sync::Arc<Run> {
        let run = self.lab.start(Spec::usual(guard, fault), "somebody");
        run.finished().await;
        run
    }
}

/// What each guard comes to, in the order of [`Fault::ALL`].
fn documented(guard: Guard) -> [Outcome; 10] {
    use Outcome::{Lost, Once, Refused, Stuck, Twice, Wrong};
    match guard {
        Guard::None => [Twice, Twice, Twice, Twice, Twice, Twice, Once, Once, Twice, Twice],
        Guard::Button => [Once, Twice, Twice, Twice, Twice, Twice, Once, Once, Twice, Twice],
        Guard::Unique => [Twice, Twice, Twice, Twice, Twice, Twice, Lost, Once, Twice, Twice],
        Guard::Redis => [Twice, Twice, Once, Twice, Twice, Twice, Wrong, Stuck, Twice, Twice],
        Guard::Lookup => [Twice, Twice, Once, Twice, Twice, Once, Wrong, Stuck, Twice, Twice],
        Guard::Processing => [Once, Once, Once, Twice, Stuck, Once, Wrong, Stuck, Twice, Once],
        Guard::Payonce => [Once, Once, Once, Once, Once, Once, Refused, Once, Once, Once],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_guard_under_every_fault_comes_to_its_documented_verdict() {
    let bench = Bench::new().await;
    let mut different = Vec::new();
    for guard in Guard::ALL {
        for (fault, expected) in Fault::ALL.into_iter().zip(documented(guard)) {
            let run = bench.run(guard, fault).await;
            match run.ended().unwrap() {
                Ok(verdict) if verdict.outcome == expected => {}
                other => different.push(format!(
                    "{} under {}: expected {expected:?}, came to {other:?}",
                    guard.name(),
                    fault.name()
                )),
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    bench.lab.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_that_is_killed_is_a_process_and_is_gone() {
    let bench = Bench::new().await;
    let run = bench.run(Guard::Lookup, Fault::Kill).await;
    let events = run.events();
    let killed = events.iter().find(|event| event.step == "killed").unwrap();
    let pid: i32 = killed.field("pid").parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    assert!(rustix::process::test_kill_process(pid).is_err(), "{pid:?} lives");
    assert!(events.iter().any(|event| event.step == "charge" && event.server == "A"));
    assert_eq!(run.verdict().unwrap().presses[0].saw, Saw::ConnectionLost);
    bench.lab.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_the_run_of_another_visitor() {
    let bench = Bench::new().await;
    let run = bench.run(Guard::None, Fault::Double).await;
    assert!(bench.lab.runs().get(&run.id, "somebody").is_some());
    assert!(bench.lab.runs().get(&run.id, "somebody else").is_none());
    bench.lab.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_presses_of_a_visitor_on_one_form_are_two_presses_of_one_run() {
    let bench = Bench::new().await;
    let specs = [Guard::None, Guard::Payonce].map(|guard| Spec::usual(guard, Fault::Double));
    let first = bench.lab.press(&specs, "ada", "form");
    let second = bench.lab.press(&specs, "ada", "form");
    assert_eq!(first[0].id, second[0].id);
    for run in &first {
        run.finished().await;
        assert_eq!(run.verdict().unwrap().presses.len(), 2);
    }
    assert_eq!(first[0].verdict().unwrap().outcome, Outcome::Twice);
    assert_eq!(first[1].verdict().unwrap().outcome, Outcome::Once);
    bench.lab.stop().await;
}
