//! From events to arrows and bars: what each step of a run looks like.

use std::collections::HashMap;

use super::clock::PARTS;
use crate::lab::events::Event;
use crate::lab::spec::{Fault, Guard, Spec};
use crate::lab::words::Words;

/// More rows than this are cut off.
const ARROWS_MAX: usize = 90;

/// Who takes part, from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    Ada,
    AdaToo,
    A,
    B,
    Redis,
    Postgres,
    Provider,
}

/// What an arrow means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Call,
    Back,
    /// The card is charged.
    Money,
    /// The card is charged again.
    Duplicate,
    /// An answer that lets the duplicate through, or follows from it.
    DuplicateBack,
    /// An earlier answer is given again.
    Replay,
    /// The write that decides.
    Win,
    /// Only words, at a lane.
    Note,
}

impl Kind {
    /// The class of the stylesheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Back | Self::Note => "ret",
            Self::Money => "money",
            Self::Duplicate => "dup",
            Self::DuplicateBack => "dupret",
            Self::Replay => "replay",
            Self::Win => "win",
        }
    }
}

/// Something that went from one lane to another.
#[derive(Debug, Clone)]
pub struct Arrow {
    pub moment: i64,
    pub from: Lane,
    pub to: Lane,
    pub kind: Kind,
    pub text: String,
    /// Which charge.
    pub coin: Option<usize>,
    /// Which press.
    pub click: Option<u32>,
    pub lost: bool,
}

/// Something that took a while.
#[derive(Debug, Clone)]
pub struct Bar {
    pub lane: Lane,
    pub from: i64,
    pub to: i64,
    /// `act`, `lease`, `wait`
    pub class: &'static str,
    pub crash: bool,
}

/// One run, ready to be drawn.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    pub lanes: Vec<(Lane, bool)>,
    pub arrows: Vec<Arrow>,
    pub bars: Vec<Bar>,
    /// What died, and when.
    pub torn: Option<(Lane, i64)>,
}

impl Scene {
    /// What these events look like. With `all_lanes`, unused lanes stay as dotted lines.
    pub fn of(spec: Spec, events: &[Event], words: &Words, all_lanes: bool) -> Self {
        let mut builder = Builder {
            spec,
            words,
            scene: Self::default(),
            open: HashMap::new(),
            charges: 0,
            charging: HashMap::new(),
        };
        let start = events.first().map_or(0, |event| event.at_us);
        let mut before = (-1, 0);
        for (index, event) in events.iter().enumerate() {
            let ms = (event.at_us - start) / 1000;
            let part = if before.0 == ms { before.1 + 1 } else { 0 };
            if builder.scene.arrows.len() >= ARROWS_MAX {
                break;
            }
            let moment = ms * PARTS + part.min(PARTS - 1);
            if builder.take(event, moment, &events[index + 1..]) {
                before = (ms, part);
            }
        }
        builder.finish(all_lanes)
    }

    /// The moments at which something happened.
    pub fn moments(&self) -> impl Iterator<Item = i64> {
        let torn = self.torn.map(|(_, moment)| moment);
        self.arrows.iter().map(|arrow| arrow.moment).chain(torn)
    }
}

struct Builder<'a> {
    spec: Spec,
    words: &'a Words,
    scene: Scene,
    /// Bars that have begun: by lane, class and press.
    open: HashMap<(Lane, &'static str, u32), i64>,
    charges: usize,
    /// The charge that a press has under way, and whether it is one too many.
    charging: HashMap<u32, (usize, bool)>,
}

impl Builder<'_> {
    /// `false`: nothing is drawn for it.
    fn take(&mut self, event: &Event, moment: i64, later: &[Event]) -> bool {
        let press = event.press;
        let ada = if event.field("tab") == "1" { Lane::AdaToo } else { Lane::Ada };
        let server = match event.server.as_str() {
            "A" => Lane::A,
            _ => Lane::B,
        };
        match event.step.as_str() {
            "press" => {
                let to = if event.field("to") == "A" { Lane::A } else { Lane::B };
                self.begin(to, "act", press, moment);
                let again = self.spec.fault == Fault::Network && press > 1;
                let text = self.words.say(if again { "flow-resent" } else { "flow-post" });
                self.arrow(moment, (ada, to), Kind::Call, text).click = Some(press);
            }
            "saw" => self.saw(event, moment, ada),
            "back" if event.field("does") == "gone" => return false,
            "call" | "back" => self.store(event, moment, server, later),
            "charge" => self.charge(event, moment, server, later),
            "charged" => {
                self.end(Lane::Provider, "act", press, moment);
                let (_, again) = self.charging.get(&press).copied().unwrap_or_default();
                let kind = if again { Kind::DuplicateBack } else { Kind::Back };
                let declined = event.field("outcome") == "declined";
                let text = self.words.say(if declined { "flow-declined" } else { "flow-charged" });
                self.arrow(moment, (Lane::Provider, server), kind, text);
            }
            "order" => {
                let text = self.words.say("flow-order");
                self.arrow(moment, (server, Lane::Postgres), Kind::Call, text);
            }
            "intent" => {
                self.begin(Lane::Postgres, "lease", 0, moment);
                let text = self.words.say("flow-intent");
                self.arrow(moment, (server, Lane::Postgres), Kind::Win, text);
            }
            "take_over" => {
                self.end(Lane::Postgres, "lease", 0, moment);
                self.end(server, "wait", press, moment);
                self.begin(Lane::Postgres, "lease", 0, moment);
                let text = self.words.say("flow-take-over");
                self.arrow(moment, (server, Lane::Postgres), Kind::Win, text);
            }
            "ask" => {
                let text = self.words.say("flow-ask");
                self.arrow(moment, (server, Lane::Provider), Kind::Call, text);
            }
            "settle" => {
                self.end(Lane::Postgres, "lease", 0, moment);
                let text = self.words.say("flow-settle");
                self.arrow(moment, (server, Lane::Postgres), Kind::Win, text);
            }
            "join" | "wait" => {
                self.begin(server, "wait", press, moment);
                let text = self.words.say("flow-waits");
                self.arrow(moment, (server, Lane::Postgres), Kind::Call, text);
            }
            "answer" => return self.answered(event, moment, server),
            "killed" => {
                self.end_crashed(Lane::A, press, moment);
                self.scene.torn = Some((Lane::A, moment));
            }
            "disabled" => {
                let text = self.words.say("flow-disabled");
                self.arrow(moment, (ada, ada), Kind::Note, text).click = Some(press);
            }
            "flushed" => {
                let text = self.words.say("flow-flushed");
                self.arrow(moment, (Lane::Redis, Lane::Redis), Kind::Note, text);
            }
            "stopped" => self.scene.torn = Some((Lane::Redis, moment)),
            "day" => {
                let text = self.words.say("flow-day");
                self.arrow(moment, (Lane::Postgres, Lane::Postgres), Kind::Note, text);
            }
            _ => return false,
        }
        true
    }

    fn store(&mut self, event: &Event, moment: i64, server: Lane, later: &[Event]) {
        let store = if event.field("with") == "redis" { Lane::Redis } else { Lane::Postgres };
        let does = event.field("does");
        let text = self.words.say(&format!("flow-{does}"));
        if event.step == "call" {
            let wins = does == "insert-processing"
                && later
                    .iter()
                    .find(|next| next.press == event.press && next.step == "back")
                    .is_some_and(|next| next.field("does") == "first");
            let again = self.charging.get(&event.press).is_some_and(|(_, again)| *again);
            let kind = match (wins, again && does == "insert-order") {
                (true, _) => Kind::Win,
                (_, true) => Kind::DuplicateBack,
                _ => Kind::Call,
            };
            let kind = if kind == Kind::DuplicateBack { Kind::Duplicate } else { kind };
            let dead = self.scene.torn.is_some_and(|(torn, _)| torn == store);
            self.arrow(moment, (server, store), kind, text).lost = dead;
            return;
        }
        let misleads = matches!(does, "nothing" | "no-row") && self.charges > 0;
        let kind = if misleads { Kind::DuplicateBack } else { Kind::Back };
        self.arrow(moment, (store, server), kind, text);
    }

    fn charge(&mut self, event: &Event, moment: i64, server: Lane, later: &[Event]) {
        let answer = later.iter().find(|next| next.press == event.press && next.step == "charged");
        let declined = answer.is_some_and(|answer| answer.field("outcome") == "declined");
        let same_key = self.spec.guard == Guard::Payonce && self.charges > 0;
        self.begin(Lane::Provider, "act", event.press, moment);
        let amount = match event.field("amount") {
            "" => crate::lab::verdict::dollars(crate::lab::verdict::price()),
            amount => dollars(amount),
        };
        if declined || same_key {
            let id = if declined { "flow-charge" } else { "flow-charge-same-key" };
            let text = self.words.with(id, &[("amount", &amount)]);
            self.charging.insert(event.press, (0, false));
            self.arrow(moment, (server, Lane::Provider), Kind::Call, text);
            return;
        }
        self.charges += 1;
        let again = self.charges > 1 && self.spec.fault != Fault::Cart;
        self.charging.insert(event.press, (self.charges, again));
        let id = if again { "flow-charge-again" } else { "flow-charge" };
        let text = self.words.with(id, &[("amount", &amount)]);
        let kind = if again { Kind::Duplicate } else { Kind::Money };
        let coin = self.charges;
        self.arrow(moment, (server, Lane::Provider), kind, text).coin = Some(coin);
    }

    fn saw(&mut self, event: &Event, moment: i64, ada: Lane) {
        let server = if event.field("to") == "A" { Lane::A } else { Lane::B };
        let saw = event.field("saw");
        let lost = matches!(saw, "no-answer" | "connection-lost");
        self.end(server, "act", event.press, moment);
        let again = self.charging.get(&event.press).is_some_and(|(_, again)| *again);
        let kind = match (saw, again) {
            ("paid-again" | "paid-before", _) => Kind::Replay,
            (_, true) => Kind::DuplicateBack,
            _ => Kind::Back,
        };
        let text = self.words.say(&format!("flow-saw-{saw}"));
        self.arrow(moment, (server, ada), kind, text).lost = lost;
    }

    /// The end of waiting is drawn; the answer itself is, where it arrives.
    fn answered(&mut self, event: &Event, moment: i64, server: Lane) -> bool {
        let waited = self.end(server, "wait", event.press, moment);
        let replayed = event.field("outcome").starts_with("replayed_postgres");
        if !replayed || !event.field("operation").contains("payments") {
            if waited {
                // The bar needs a row to end in.
                let text = self.words.say("flow-first-answer");
                self.arrow(moment, (Lane::Postgres, server), Kind::Replay, text);
            }
            return waited;
        }
        let text = self.words.say("flow-stored");
        self.arrow(moment, (Lane::Postgres, server), Kind::Replay, text);
        true
    }

    fn arrow(
        &mut self,
        moment: i64,
        (from, to): (Lane, Lane),
        kind: Kind,
        text: String,
    ) -> &mut Arrow {
        let arrow = Arrow { moment, from, to, kind, text, coin: None, click: None, lost: false };
        self.scene.arrows.push(arrow);
        self.scene.arrows.last_mut().expect("pushed just now")
    }

    fn begin(&mut self, lane: Lane, class: &'static str, press: u32, moment: i64) {
        self.open.entry((lane, class, press)).or_insert(moment);
    }

    fn end(&mut self, lane: Lane, class: &'static str, press: u32, moment: i64) -> bool {
        let Some(from) = self.open.remove(&(lane, class, press)) else { return false };
        self.scene.bars.push(Bar { lane, from, to: moment, class, crash: false });
        true
    }

    fn end_crashed(&mut self, lane: Lane, press: u32, moment: i64) {
        if let Some(from) = self.open.remove(&(lane, "act", press)) {
            self.scene.bars.push(Bar { lane, from, to: moment, class: "act", crash: true });
        }
    }

    fn finish(mut self, all_lanes: bool) -> Scene {
        let last = self.scene.moments().max().unwrap_or_default();
        let open: Vec<_> = self.open.drain().collect();
        for ((lane, class, _), from) in open {
            self.scene.bars.push(Bar { lane, from, to: last, class, crash: false });
        }
        // A bar ends where something is drawn.
        let moments: Vec<i64> = self.scene.moments().collect();
        for bar in &mut self.scene.bars {
            let end = moments.iter().copied().filter(|moment| *moment <= bar.to).max();
            bar.to = end.unwrap_or(bar.to).max(bar.from);
        }
        let arrows = &self.scene.arrows;
        // Before anything has happened, everybody waits.
        let used = |lane: Lane| {
            (arrows.is_empty() && lane != Lane::AdaToo)
                || arrows.iter().any(|a| a.from == lane || a.to == lane)
        };
        let lanes = [
            Lane::Ada,
            Lane::AdaToo,
            Lane::A,
            Lane::B,
            Lane::Redis,
            Lane::Postgres,
            Lane::Provider,
        ];
        self.scene.lanes = lanes
            .into_iter()
            .map(|lane| (lane, used(lane)))
            .filter(|(lane, used)| *used || (all_lanes && *lane != Lane::AdaToo))
            .collect();
        self.scene
    }
}

/// Money of the product reads `USD 42.00`; here it is `$42.00`.
fn dollars(amount: &str) -> String {
    let number: String = amount.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    format!("${number}")
}
