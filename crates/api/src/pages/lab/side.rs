//! What one run came to, ready for a page: verdict, statement, facts, presses, code, text.

use std::sync::Arc;

use super::code::{Line, code, reason};
use crate::lab::diagram::{Clock, Look, Scene, draw, gutter};
use crate::lab::verdict::{Outcome, Verdict, dollars, price};
use crate::lab::words::Words;
use crate::lab::{Fault, Guard, Run, Saw, Spec};

/// One guard's half of the page.
pub(super) struct Side {
    pub(super) id: String,
    pub(super) guard: String,
    pub(super) glyph: &'static str,
    pub(super) tone: &'static str,
    pub(super) sentence: String,
    pub(super) why: String,
    pub(super) charges: Vec<Charge>,
    pub(super) more_charges: String,
    pub(super) total: String,
    pub(super) facts: Vec<Fact>,
    pub(super) presses: Vec<Saw2>,
    pub(super) file: &'static str,
    pub(super) code: Vec<Line>,
    pub(super) note: String,
    pub(super) steps: Vec<String>,
}

pub(super) struct Charge {
    pub(super) at: String,
    pub(super) id: String,
    pub(super) amount: String,
    pub(super) again: bool,
}

pub(super) struct Fact {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) remark: String,
    pub(super) wrong: bool,
}

/// A press and what it saw.
pub(super) struct Saw2 {
    pub(super) number: u32,
    pub(super) says: String,
    pub(super) replayed: bool,
}

const STATEMENT_LINES: usize = 4;

impl Side {
    /// `None`: the run has not ended, or came to nothing.
    pub(super) fn of(run: &Run, words: &Words) -> Option<Self> {
        let verdict = run.verdict()?;
        let (spec, outcome) = (run.spec, verdict.outcome);
        let (file, code) = code(spec, outcome);
        Some(Self {
            id: run.id.clone(),
            guard: words.say(&format!("guard-{}", spec.guard.name())),
            glyph: glyph(outcome),
            tone: outcome.tone(),
            sentence: sentence(words, spec, &verdict),
            why: match verdict.presses.len() {
                1 => words.say("fine-single"),
                _ => why(words, spec, outcome),
            },
            charges: charges(spec, &verdict),
            more_charges: more_charges(words, &verdict),
            total: dollars(verdict.charged),
            facts: facts(words, spec, &verdict),
            presses: presses(words, &verdict),
            file,
            code,
            note: words.say(if outcome.is_right() { "deciding-line" } else { "guilty-line" }),
            steps: steps(run, words),
        })
    }
}

/// The glyph's drawing in a box of 26 by 18.
pub(super) const fn glyph(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Once => {
            r#"<circle class="g-once" cx="9" cy="9" r="7.5"/><path class="cut" d="M5.4 9.3l2.5 2.5 4.8-5.3"/>"#
        }
        Outcome::Twice => {
            r#"<circle class="g-twice" cx="9" cy="9" r="8"/><circle class="g-twice s edge" cx="17" cy="9" r="8"/>"#
        }
        Outcome::Lost => {
            r#"<circle class="g-twice" cx="9" cy="9" r="7.5"/><path class="cut" d="M6.2 6.2l5.6 5.6m0-5.6l-5.6 5.6"/>"#
        }
        Outcome::Stuck => {
            r#"<circle class="s g-unsure hole" cx="9" cy="9" r="7"/><path class="g-unsure flat" d="M9 2a7 7 0 0 0 0 14z"/>"#
        }
        Outcome::Wrong => {
            r#"<circle class="s g-unsure hole" cx="9" cy="9" r="7.5"/><path class="s g-unsure hole" d="M5.4 7.2h7.2M5.4 10.8h7.2M11 4.8L7 13.2"/>"#
        }
        Outcome::Refused => {
            r#"<circle class="s g-once hole" cx="9" cy="9" r="7"/><path class="s g-once" d="M5.5 9h7"/>"#
        }
    }
}

/// Who was charged how often, and the amount.
pub(super) fn sentence(words: &Words, spec: Spec, verdict: &Verdict) -> String {
    let amount = dollars(verdict.charged);
    let amount = [("amount", amount.as_str())];
    if spec.fault == Fault::Crowd {
        let (harmed, all) = (verdict.harmed.to_string(), verdict.customers.to_string());
        let id = if verdict.harmed == 0 { "verdict-crowd-fine" } else { "verdict-crowd" };
        return words.with(id, &[("harmed", &harmed), ("all", &all)]);
    }
    let times = verdict.books.charges.iter().filter(|c| c.customer == verdict.worst).count();
    match verdict.outcome {
        Outcome::Once if spec.fault == Fault::Cart => words.with("verdict-both", &amount),
        Outcome::Once => words.with("verdict-once", &amount),
        Outcome::Twice if times > 2 => {
            let times = times.to_string();
            words.with("verdict-many", &[("times", &times), amount[0]])
        }
        Outcome::Twice => words.with("verdict-twice", &amount),
        Outcome::Lost => words.with("verdict-lost", &[("amount", &dollars(lost(verdict)))]),
        Outcome::Stuck if verdict.charged == 0 => words.say("verdict-cannot"),
        Outcome::Stuck if !verdict.books.orders.is_empty() => words.with("verdict-untold", &amount),
        Outcome::Stuck => words.with("verdict-stuck", &amount),
        Outcome::Wrong => words.say("verdict-wrong"),
        Outcome::Refused => words.with("verdict-refused", &amount),
    }
}

/// What was charged for carts that have no order.
fn lost(verdict: &Verdict) -> i64 {
    let books = &verdict.books;
    let has_order = |customer: u32, cart: u32| {
        books.orders.iter().any(|order| order.customer == customer && order.cart == cart)
    };
    let of_worst = books.charges.iter().filter(|charge| charge.customer == verdict.worst);
    of_worst.filter(|c| !has_order(c.customer, c.cart)).map(|charge| charge.amount).sum()
}

/// Why it came out like this.
pub(super) fn why(words: &Words, spec: Spec, outcome: Outcome) -> String {
    let guard = spec.guard.name();
    if outcome.is_right() {
        let fine = if spec.guard == Guard::Payonce { "fine-payonce" } else { "fine-other" };
        return words.say(fine);
    }
    let id = format!("why-{guard}-{}", reason(spec.fault));
    if words.has(&id) { words.say(&id) } else { words.say(&format!("why-{guard}-race")) }
}

fn charges(spec: Spec, verdict: &Verdict) -> Vec<Charge> {
    let of_worst = verdict.books.charges.iter().filter(|c| c.customer == verdict.worst);
    of_worst
        .take(STATEMENT_LINES)
        .enumerate()
        .map(|(index, charge)| Charge {
            at: format!(
                "{:02}:{:02}:{:02}.{:03}",
                charge.at.hour(),
                charge.at.minute(),
                charge.at.second(),
                charge.at.millisecond()
            ),
            id: short(&charge.id),
            amount: format!("− {}", dollars(charge.amount)),
            again: index > 0 && spec.fault != Fault::Cart,
        })
        .collect()
}

/// Ids of the provider begin with the time; their ends differ.
fn short(id: &str) -> String {
    let end: String = id.chars().rev().take(4).collect::<Vec<_>>().into_iter().rev().collect();
    format!("ch_…{end}")
}

fn more_charges(words: &Words, verdict: &Verdict) -> String {
    let all = verdict.books.charges.iter().filter(|c| c.customer == verdict.worst).count();
    match all {
        0 => words.say("no-charge"),
        1 => words.say("no-second"),
        n if n > STATEMENT_LINES => {
            words.with("more-charges", &[("count", &(n - STATEMENT_LINES).to_string())])
        }
        _ => String::new(),
    }
}

fn facts(words: &Words, spec: Spec, verdict: &Verdict) -> Vec<Fact> {
    let books = &verdict.books;
    let expected = i64::try_from(verdict.expected).unwrap_or_default();
    let orders = i64::try_from(books.orders.len()).unwrap_or_default();
    let bells = if spec.fault == Fault::Cart && verdict.expected == 2 { 3 } else { expected };
    let stock = books.stock_before - bells;
    let fact = |name: &str, is: i64, value: String, should: i64| {
        let wrong = is != should;
        let count = should.to_string();
        let remark = match wrong {
            true => words.with("should-be", &[("count", &count)]),
            false => words.say("as-it-should"),
        };
        Fact { name: words.say(name), value, remark, wrong }
    };
    let stocked = format!("{} → {}", books.stock_before, books.stock_after);
    vec![
        fact("orders", orders, orders.to_string(), expected),
        fact("stock", books.stock_after, stocked, stock),
        fact("mails", books.mails, books.mails.to_string(), expected),
    ]
}

fn presses(words: &Words, verdict: &Verdict) -> Vec<Saw2> {
    let saw = |press: &crate::lab::Press| Saw2 {
        number: press.number,
        says: words.say(&format!("saw-{}", press.saw.name())),
        replayed: press.saw == Saw::PaidAgain,
    };
    verdict.presses.iter().map(saw).collect()
}

/// The run as an ordered list.
fn steps(run: &Run, words: &Words) -> Vec<String> {
    let scene = Scene::of(run.spec, &run.events(), words, false);
    scene
        .arrows
        .iter()
        .map(|arrow| {
            let ms = (arrow.moment / crate::lab::diagram::PARTS).to_string();
            format!("{}  {}", words.with("at-ms", &[("ms", &ms)]), arrow.sentence(words))
        })
        .collect()
}

/// The diagrams of up to two runs, drawn once for wide and once for narrow screens.
pub(super) fn board(runs: &[Arc<Run>], words: &Words) -> String {
    let pair = runs.len() > 1;
    let scenes: Vec<Scene> =
        runs.iter().map(|run| Scene::of(run.spec, &run.events(), words, pair)).collect();
    let mut out = String::from("<div class=\"board wide\">");
    let clock = Clock::new(scenes.iter().flat_map(Scene::moments), 1.0);
    let width = if pair { 560.0 } else { 900.0 };
    for (index, (scene, run)) in scenes.iter().zip(runs).enumerate() {
        if index == usize::from(pair) {
            out.push_str(&gutter(&clock, 64.0, words));
        }
        let title = title(run, words);
        let id = format!("w{index}");
        let look = Look { width, scale: 1.0, narrow: false, id: &id, title: &title };
        out.push_str(&draw(scene, &clock, look, words));
    }
    out.push_str("</div>");
    for (index, (scene, run)) in scenes.iter().zip(runs).enumerate() {
        let clock = Clock::new(scene.moments(), 1.0);
        let title = title(run, words);
        let id = format!("n{index}");
        let look = Look { width: 292.0, scale: 1.0, narrow: true, id: &id, title: &title };
        let name =
            crate::lab::diagram::escaped(&words.say(&format!("guard-{}", run.spec.guard.name())));
        out.push_str(&format!("<section class=\"narrow\" data-side=\"{index}\"><h3 class=\"board-name\">{name}</h3><div class=\"board\">"));
        out.push_str(&gutter(&clock, 36.0, words));
        out.push_str(&draw(scene, &clock, look, words));
        out.push_str("</div></section>");
    }
    out
}

fn title(run: &Run, words: &Words) -> String {
    match run.verdict() {
        Some(verdict) => sentence(words, run.spec, &verdict),
        None => words.say("running"),
    }
}

/// `$42.00`
pub(super) fn amount() -> String {
    dollars(price())
}
