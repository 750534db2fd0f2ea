//! A guard's own source beside its diagram: the text it is compiled from, the line that decides marked.

use crate::lab::verdict::Outcome;
use crate::lab::{Fault, Guard, Spec, source};

/// Of a longer file, the part around the line that decides.
const WHOLE: usize = 28;

pub(super) struct Line {
    pub(super) number: usize,
    pub(super) text: String,
    /// `bad`, `good` or nothing.
    pub(super) class: &'static str,
}

/// The guard's source, the lines that decide marked and the marks taken out.
pub(super) fn code(spec: Spec, outcome: Outcome) -> (&'static str, Vec<Line>) {
    let (file, text) = source(spec.guard);
    let wanted = reason(spec.fault);
    let marks = |line: &str, mark: &str| {
        line.split_once("// !")
            .is_some_and(|(_, marks)| marks.split(" !").any(|m| m.trim() == mark))
    };
    let wanted = if text.lines().any(|line| marks(line, wanted)) { wanted } else { "race" };
    let class = if outcome.is_right() { "good" } else { "bad" };
    // Where a fault does not hurt a guard, no line of it is to be praised.
    let silent = outcome.is_right() && spec.guard != Guard::Payonce;
    let lines: Vec<&str> = text.lines().collect();
    let marked = lines.iter().position(|line| marks(line, wanted)).unwrap_or_default();
    let from = if lines.len() > WHOLE { marked.saturating_sub(8) } else { 0 };
    let line = |(index, line): (usize, &&str)| Line {
        number: index + 1,
        text: line.split(" // !").next().unwrap_or_default().to_owned(),
        class: if !silent && marks(line, wanted) { class } else { "" },
    };
    (file, lines.iter().enumerate().skip(from).take(WHOLE).map(line).collect())
}

/// The line that decides and a few around it.
pub(super) fn excerpt(spec: Spec, outcome: Outcome) -> (&'static str, Vec<Line>) {
    const AROUND: usize = 3;
    let (file, lines) = code(spec, outcome);
    let marked = lines.iter().position(|line| !line.class.is_empty()).unwrap_or_default();
    let around = lines.into_iter().skip(marked.saturating_sub(AROUND)).take(2 * AROUND + 1);
    (file, around.filter(|line| !line.text.is_empty()).collect())
}

/// Which of a guard's lines a fault brings out.
pub(super) const fn reason(fault: Fault) -> &'static str {
    match fault {
        Fault::Double | Fault::Network | Fault::Lost | Fault::Tabs | Fault::Crowd => "race",
        Fault::Kill => "crash",
        Fault::Cart => "cart",
        Fault::Card => "card",
        Fault::Flush | Fault::Day => "day",
        Fault::Stop => "stop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_goes_wrong_a_line_of_the_guard_is_marked_and_says_something() {
        for guard in Guard::ALL {
            for fault in Fault::ALL {
                let (file, lines) = code(Spec::usual(guard, fault), Outcome::Twice);
                let marked: Vec<&Line> = lines.iter().filter(|l| l.class == "bad").collect();
                assert!(!marked.is_empty(), "{file} under {fault:?}");
                assert!(marked.iter().all(|l| !l.text.trim().is_empty()), "{file} under {fault:?}");
            }
        }
    }
}
