//! Every interleaving, within bounds: the whole protocol holds, and each part of it is needed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::print_stdout, reason = "the numbers are what a checker is run for")]

use model::{Defect, Protocol};
use stateright::{Checker, Model};

#[test]
fn the_protocol_holds_in_every_state_that_can_be_reached() {
    let faults = std::env::var("PAYONCE_MODEL_FAULTS");
    let faults_max = faults.map_or(Protocol::whole().faults_max, |faults| faults.parse().unwrap());
    let protocol = Protocol { faults_max, ..Protocol::whole() };
    let checker = protocol.checker().threads(2).spawn_bfs().join();
    println!(
        "whole protocol with {faults_max} faults: {} states, {} of them different, longest history {} steps",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth()
    );
    checker.assert_properties();
    assert!(checker.unique_state_count() > 10_000);
}

#[test]
fn nothing_can_be_left_out() {
    for (defect, broken) in [
        (Defect::NoFence, model::SAME_REPLY),
        (Defect::NoFence, model::ONE_EFFECT),
        (Defect::NoAsking, model::ONE_EFFECT),
        (Defect::CallBeforeIntent, model::TRACED),
        (Defect::CallBeforeIntent, model::ONE_EFFECT),
        (Defect::ReplyBeforeEffects, model::TRUE_REPLY),
        (Defect::ReleaseAfterTakeOver, model::ONE_EFFECT),
        (Defect::SweepUnfinished, model::TRACED),
        (Defect::SweepUnfinished, model::ONE_EFFECT),
        (Defect::TrustedCache, model::SAME_REPLY),
        (Defect::NoTakeOver, model::SETTLES),
    ] {
        let checker = Protocol::without(defect)
            .checker()
            .threads(2)
            .finish_when(stateright::HasDiscoveries::AnyOf(std::iter::once(broken).collect()))
            .spawn_bfs()
            .join();
        let found = checker.discovery(broken);
        let history = found.unwrap_or_else(|| panic!("{defect:?} does not break: {broken}"));
        let history = history.into_actions();
        println!("{defect:?} breaks \"{broken}\" after {} steps: {history:?}", history.len());
    }
}
