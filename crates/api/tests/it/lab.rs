//! The lab: every guard under every fault comes to what is written here, by real runs.

mod clicked;
mod matrix;
mod replayed;
mod table;

use std::path::PathBuf;

use api::lab::verdict::Outcome;
use api::lab::{Fault, Guard, Lab, Recipe, Run, Saw, Spec, Wanted};
use idempotency::Key;

use crate::postgres::TestDatabase;
use crate::redis::TestRedis;

/// As the shop's own lab, but for the size of the crowd.
pub(crate) fn recipe(database: &TestDatabase, redis: &TestRedis) -> Recipe {
    Recipe {
        database_url: database.url.clone(),
        redis_url: Some(redis.url()),
        program: PathBuf::from(env!("CARGO_BIN_EXE_payonce")),
        crowd: 96,
    }
}

struct Bench {
    lab: Lab,
    _redis: TestRedis,
    _database: TestDatabase,
}

impl Bench {
    async fn new() -> Self {
        crate::log::listen();
        let (database, redis) = (TestDatabase::new().await, TestRedis::start(None).await);
        let lab = Lab::new(recipe(&database, &redis));
        Self { lab, _redis: redis, _database: database }
    }

    async fn run(&self, guard: Guard, fault: Fault) -> std::sync::Arc<Run> {
        let run = self
            .lab
            .start(&by("somebody", &fresh(), &[Spec::usual(guard, fault)]))
            .unwrap()
            .remove(0);
        run.finished().await;
        run
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_that_is_killed_is_a_process_and_is_gone() {
    let bench = Bench::new().await;
    let run = bench.run(Guard::Lookup, Fault::Kill).await;
    let events = run.events();
    let killed = events.iter().find(|event| event.step == "killed").unwrap();
    assert_is_gone(killed.field("pid"));
    assert!(events.iter().any(|event| event.step == "charge" && event.server == "A"));
    assert_eq!(run.verdict().unwrap().presses[0].saw, Saw::ConnectionLost);
    bench.lab.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_redis_that_is_stopped_is_a_process_and_is_gone_and_payonce_does_not_mind() {
    let bench = Bench::new().await;
    for (guard, saw) in [(Guard::Redis, Saw::Failed), (Guard::Payonce, Saw::PaidAgain)] {
        let run = bench.run(guard, Fault::Stop).await;
        let events = run.events();
        let stopped = events.iter().find(|event| event.step == "stopped").unwrap();
        assert_is_gone(stopped.field("pid"));
        let verdict = run.verdict().unwrap();
        assert_eq!(verdict.presses[1].saw, saw);
        assert_eq!(verdict.books.charges.len(), 1);
    }
    bench.lab.stop().await;
}

fn by(visitor: &str, form: &str, specs: &[Spec]) -> Wanted {
    let key = Key::from_bare(form.as_bytes()).unwrap();
    Wanted { visitor: visitor.to_owned(), key, specs: specs.to_vec() }
}

fn fresh() -> String {
    format!("{:x}", rand::random::<u64>())
}

fn assert_is_gone(pid: &str) {
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    assert!(rustix::process::test_kill_process(pid).is_err(), "{pid:?} lives");
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
    let form = by("ada", "form", &specs);
    let first = bench.lab.press(&form).unwrap();
    let second = bench.lab.press(&form).unwrap();
    assert_eq!(first[0].id, second[0].id);
    for run in &first {
        run.finished().await;
        assert_eq!(run.verdict().unwrap().presses.len(), 2);
    }
    assert_eq!(first[0].verdict().unwrap().outcome, Outcome::Twice);
    assert_eq!(first[1].verdict().unwrap().outcome, Outcome::Once);
    bench.lab.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_sent_twice_begins_its_runs_once() {
    let bench = Bench::new().await;
    let [none, payonce] =
        [Guard::None, Guard::Payonce].map(|guard| [Spec::usual(guard, Fault::Double)]);
    let begun =
        |visitor, form, specs| bench.lab.start(&by(visitor, form, specs)).unwrap().remove(0);
    let first = begun("ada", "form", &none);
    assert_eq!(first.id, begun("ada", "form", &none).id);
    first.finished().await;
    assert_eq!(first.id, begun("ada", "form", &none).id);
    let others =
        [begun("ada", "next", &none), begun("ada", "form", &payonce), begun("bob", "form", &none)];
    for other in others {
        assert_ne!(first.id, other.id);
        other.finished().await;
    }
    bench.lab.stop().await;
}

/// Who starts runs and goes away does not keep the others waiting.
#[tokio::test(flavor = "multi_thread")]
async fn one_visitor_has_few_runs_at_once_and_takes_nobody_elses_turn() {
    let bench = Bench::new().await;
    let two = [Guard::None, Guard::Payonce].map(|guard| Spec::usual(guard, Fault::Double));
    let pressed = bench.lab.press(&by("ada", "first", &two)).unwrap();
    let started = bench.lab.start(&by("ada", "first", &two)).unwrap();
    assert!(
        bench.lab.press(&by("ada", "first", &two)).is_some(),
        "a press on a form that runs counts"
    );
    // Nor does forgetting them make room while they run.
    bench.lab.runs().forget("ada");
    assert!(bench.lab.start(&by("ada", "third", &two)).is_none());
    assert!(bench.lab.press(&by("ada", "second", &two)).is_none());
    let other = bench.lab.start(&by("bob", "first", &two)).unwrap();
    for run in pressed.iter().chain(&started).chain(&other) {
        run.finished().await;
    }
    assert!(bench.lab.start(&by("ada", "third", &two)).is_some());
    bench.lab.stop().await;
}
