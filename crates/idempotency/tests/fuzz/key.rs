//! The key header against its grammar, written down a second time.

use idempotency::{Key, KeyError};
use proptest::prelude::*;

use crate::corpus;

fn corpus() -> Vec<Vec<u8>> {
    corpus::lines(include_str!("../corpus/keys.txt"))
}

/// What the header may look like, as a regular expression would say it.
fn expected(line: &[u8]) -> Option<&[u8]> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
    let start = line.iter().position(|byte| !blank(byte))?;
    let end = line.iter().rposition(|byte| !blank(byte))? + 1;
    let value = &line[start..end];
    let bare = match (value.first(), value.last()) {
        (Some(b'"'), Some(b'"')) if value.len() >= 2 => &value[1..value.len() - 1],
        _ => value,
    };
    let fits = (1..=255).contains(&bare.len());
    let plain = bare.iter().all(|byte| (0x21..=0x7e).contains(byte) && !b",;\"\\".contains(byte));
    (fits && plain).then_some(bare)
}

proptest! {
    #[test]
    fn a_header_is_read_as_the_grammar_says(line in corpus::changed(corpus())) {
        let read = Key::parse([line.as_slice()]);
        prop_assert_eq!(read.as_ref().ok().map(|key| key.as_str().as_bytes()), expected(&line));
        if let Ok(key) = read {
            let quoted = format!("\"{}\"", key.as_str());
            prop_assert_eq!(Key::parse([quoted.as_bytes()]), Ok(key.clone()));
            prop_assert_eq!(Key::from_bare(key.as_str().as_bytes()), Ok(key.clone()));
            prop_assert_eq!(Key::parse([line.as_slice(), &line]), Err(KeyError::Repeated));
            let debugged = format!("{key:?}");
            prop_assert!(key.as_str().len() < 9 || !debugged.contains(key.as_str()));
        }
    }

    #[test]
    fn keys_that_differ_in_one_byte_are_two_keys(key in "[!#-+.-:<-\\[\\]-~]{1,255}", at in any::<prop::sample::Index>()) {
        let mut other = key.clone().into_bytes();
        let at = at.index(other.len());
        other[at] = if other[at] == b'a' { b'b' } else { b'a' };
        let (key, other) = (Key::parse([key.as_bytes()]), Key::parse([other.as_slice()]));
        prop_assert!(key.is_ok() && other.is_ok());
        prop_assert_ne!(key, other);
    }
}

#[test]
fn every_line_of_the_corpus_is_read_as_the_grammar_says() {
    for line in corpus() {
        let read = Key::parse([line.as_slice()]).ok();
        let text = String::from_utf8_lossy(&line);
        assert_eq!(read.as_ref().map(|key| key.as_str().as_bytes()), expected(&line), "{text}");
    }
}
