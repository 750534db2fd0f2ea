//! Texts to start from, and what can be done to them.

use proptest::prelude::*;
use proptest::sample::Index;

/// The lines of a corpus; `%xNN` stands for a byte that would not survive an editor.
pub(crate) fn lines(file: &str) -> Vec<Vec<u8>> {
    file.lines().filter(|line| !line.starts_with('#')).map(unescaped).collect()
}

fn unescaped(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = line.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        let hex = rest.get(1..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match (byte, rest.first(), hex.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(b'x'), Some(value)) => {
                bytes.push(value);
                rest = &rest[3..];
            }
            _ => bytes.push(*byte),
        }
    }
    bytes
}

#[derive(Clone, Debug)]
enum Edit {
    Flip(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Double(Index, Index),
    Splice(Index, Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Insert(at, byte)),
        any::<Index>().prop_map(Edit::Remove),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Edit::Double(from, to)),
        (any::<Index>(), any::<Index>()).prop_map(|(other, at)| Edit::Splice(other, at)),
    ]
}

/// A text of the corpus after up to six changes.
pub(crate) fn changed(corpus: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    (any::<Index>(), prop::collection::vec(edit(), 0..6)).prop_map(move |(which, edits)| {
        let mut text = which.get(&corpus).clone();
        for edit in edits {
            apply(&mut text, &edit, &corpus);
        }
        text
    })
}

fn apply(text: &mut Vec<u8>, edit: &Edit, corpus: &[Vec<u8>]) {
    let place = |at: &Index, text: &[u8]| at.index(text.len() + 1);
    match edit {
        Edit::Insert(at, byte) => text.insert(place(at, text), *byte),
        Edit::Splice(other, at) => {
            let at = place(at, text);
            text.splice(at..at, other.get(corpus).iter().copied());
        }
        _ if text.is_empty() => {}
        Edit::Flip(at, bit) => {
            let at = at.index(text.len());
            text[at] ^= 1 << bit;
        }
        Edit::Remove(at) => drop(text.remove(at.index(text.len()))),
        Edit::Double(from, to) => {
            let (from, to) = (from.index(text.len()), to.index(text.len()));
            let part = text[from.min(to)..=from.max(to)].to_vec();
            text.extend(part);
        }
    }
}
