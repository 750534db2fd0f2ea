//! A history out of a seed.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::step::{How, Step, Trouble, Wish};

const CARDS: [&str; 10] = [
    "pm_card_ok",
    "pm_card_ok",
    "pm_card_ok",
    "pm_card_declined",
    "pm_card_insufficient_funds",
    "pm_card_lost_answer",
    "pm_card_reset",
    "pm_card_down",
    "pm_card_key_in_use",
    "pm_card_slow",
];

const TROUBLES: [Trouble; 17] = [
    Trouble::Kill,
    Trouble::Kill,
    Trouble::Flush,
    Trouble::Poison,
    Trouble::Remember,
    Trouble::Restore,
    Trouble::Freeze,
    Trouble::Thaw,
    Trouble::StopCache,
    Trouble::StartCache,
    Trouble::ProviderDown,
    Trouble::ProviderSlow,
    Trouble::ProviderFine,
    Trouble::HoldEvents,
    Trouble::ReleaseEvents,
    Trouble::Expire,
    Trouble::Pause(300),
];

/// The same seed gives the same steps for ever.
pub(super) fn history(seed: u64) -> Vec<Step> {
    let mut chance = StdRng::seed_from_u64(seed);
    let length = chance.random_range(15..45);
    let order = Step::New(Wish::Order { goods: 0, quantity: 1 }, How::Patiently);
    std::iter::once(order).chain((1..length).map(|_| step(&mut chance))).collect()
}

fn step(chance: &mut StdRng) -> Step {
    match chance.random_range(0..100) {
        0..45 => Step::New(wish(chance), how(chance)),
        45..75 => Step::Again(chance.random_range(0..1000), how(chance)),
        _ => Step::Trouble(TROUBLES[chance.random_range(0..TROUBLES.len())]),
    }
}

fn wish(chance: &mut StdRng) -> Wish {
    // The latest orders are the ones at which something is still going on.
    let which = chance.random_range(0..3);
    match chance.random_range(0..100) {
        0..30 => {
            Wish::Order { goods: chance.random_range(0..4), quantity: chance.random_range(1..4) }
        }
        30..65 => Wish::Pay { order: which, card: CARDS[chance.random_range(0..CARDS.len())] },
        65..75 => Wish::Cancel { order: which },
        75..90 => Wish::Refund { payment: which, part: chance.random_bool(0.5) },
        90..95 => Wish::Receipt { order: which },
        _ => Wish::Reuse { sent: chance.random_range(0..1000) },
    }
}

fn how(chance: &mut StdRng) -> How {
    match chance.random_range(0..100) {
        0..50 => How::Patiently,
        50..68 => How::Aside,
        68..80 => How::Together,
        80..92 => How::Torn(chance.random_range(0..60)),
        _ => How::Killed(chance.random_range(0..60)),
    }
}
