//! The canonicaliser against a second implementation of RFC 8785, written from its text.
//!
//! A document is made as a tree, then written down in a random spelling: order of members, blanks,
//! escapes, ways to write a number. Whatever the spelling, the canonical form must be the one that
//! the second implementation makes of the tree.

use std::fmt::Write as _;

use idempotency::canonical::{Canonical, NUMBER_MAX};
use proptest::prelude::*;
use serde_json::Value;

use crate::corpus;

#[derive(Clone, Debug)]
enum Tree {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,2}",
        "[\u{1}-\u{7f}]{0,6}",
        prop::collection::vec(any::<char>(), 0..6)
            .prop_map(|chars| chars.into_iter().filter(|c| *c != '\0').collect()),
    ]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-1000..1000_i32).prop_map(f64::from),
        (-9_007_199_254_740_991..=9_007_199_254_740_991_i64).prop_map(|whole| whole as f64),
        any::<f64>().prop_map(in_range),
        (any::<i32>(), -330..10_i32)
            .prop_map(|(digits, power)| in_range(format!("{digits}e{power}").parse().unwrap())),
    ]
}

/// What is too large becomes small: filters that refuse half of all numbers end a long run early.
fn in_range(number: f64) -> f64 {
    if number.abs() <= NUMBER_MAX { number } else { number.recip() }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        number().prop_map(Tree::Number),
        text().prop_map(Tree::Text),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Tree::List),
            prop::collection::hash_map(text(), inner, 0..6)
                .prop_map(|members| Tree::Object(members.into_iter().collect())),
        ]
    })
}

/// RFC 8785, section 3.2.
fn canonical(tree: &Tree) -> String {
    match tree {
        Tree::Null => "null".to_owned(),
        Tree::Bool(value) => value.to_string(),
        Tree::Number(value) => es_number(*value),
        Tree::Text(value) => es_string(value),
        Tree::List(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Tree::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<_>>());
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", es_string(name), canonical(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

/// ECMA-262, `QuoteJSONString`.
fn es_string(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{9}' => out.push_str("\\t"),
            '\u{a}' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\u{d}' => out.push_str("\\r"),
            control if control < ' ' => write!(out, "\\u{:04x}", control as u32).unwrap(),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// ECMA-262, `Number::toString`: shortest digits `s` of which there are `k`, and `n` with value
/// s × 10^(n−k).
fn es_number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value < 0.0 {
        return format!("-{}", es_number(-value));
    }
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap();
    let digits = even_of_two(value, &mantissa.replace('.', ""), exponent);
    let (k, n) = (digits.len() as i32, exponent.parse::<i32>().unwrap() + 1);
    let zeros = |count: i32| "0".repeat(count as usize);
    match n {
        n if k <= n && n <= 21 => format!("{digits}{}", zeros(n - k)),
        n if 0 < n && n <= 21 => format!("{}.{}", &digits[..n as usize], &digits[n as usize..]),
        n if -6 < n && n <= 0 => format!("0.{}{digits}", zeros(-n)),
        n => {
            let sign = if n > 0 { '+' } else { '-' };
            let power = (n - 1).abs();
            match digits.split_at(1) {
                (first, "") => format!("{first}e{sign}{power}"),
                (first, rest) => format!("{first}.{rest}e{sign}{power}"),
            }
        }
    }
}

/// Of two shortest forms that are equally far off, ECMAScript takes the even one.
fn even_of_two(value: f64, digits: &str, exponent: &str) -> String {
    let exact = format!("{value:.1100e}");
    let exact = exact.split('e').next().unwrap().replace('.', "");
    let exact = exact.trim_end_matches('0');
    let (head, tail) = exact.split_at(digits.len().min(exact.len()));
    if tail != "5" {
        return digits.to_owned();
    }
    let below: u64 = head.parse().unwrap();
    let even = (below + below % 2).to_string();
    // Below a power of two the even one may be too far off to read back.
    let power = exponent.parse::<i32>().unwrap() + 1 - digits.len() as i32;
    match format!("{even}e{power}").parse::<f64>() == Ok(value) {
        true => even,
        false => digits.to_owned(),
    }
}

/// Decides about a spelling, bit by bit.
struct Whim<'a>(std::iter::Cycle<std::slice::Iter<'a, u8>>);

impl Whim<'_> {
    fn of(&mut self, most: u8) -> u8 {
        self.0.next().map_or(0, |byte| byte % most)
    }
}

/// The tree in some spelling.
fn spelled(tree: &Tree, whim: &mut Whim<'_>) -> String {
    let blank = ["", " ", "\n", "\t\r "][usize::from(whim.of(4))];
    let value = match tree {
        Tree::Null => "null".to_owned(),
        Tree::Bool(value) => value.to_string(),
        Tree::Number(value) => spelled_number(*value, whim),
        Tree::Text(value) => spelled_text(value, whim),
        Tree::List(items) => {
            let items: Vec<String> = items.iter().map(|item| spelled(item, whim)).collect();
            format!("[{}]", items.join(","))
        }
        Tree::Object(members) => {
            let mut members: Vec<String> = members
                .iter()
                .map(|(name, value)| {
                    format!("{}{blank}:{}", spelled_text(name, whim), spelled(value, whim))
                })
                .collect();
            if !members.is_empty() {
                let turn = usize::from(whim.of(7)) % members.len();
                members.rotate_left(turn);
            }
            format!("{{{blank}{}}}", members.join(","))
        }
    };
    format!("{blank}{value}{blank}")
}

fn spelled_number(value: f64, whim: &mut Whim<'_>) -> String {
    let plain = format!("{value}");
    match whim.of(5) {
        0 => plain,
        1 => format!("{value:e}"),
        2 => format!("{value:E}"),
        3 if plain.contains('.') => format!("{plain}00"),
        3 => format!("{plain}.0e+00"),
        _ => format!("{plain}e-0"),
    }
}

fn spelled_text(text: &str, whim: &mut Whim<'_>) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        let must = matches!(character, '"' | '\\' | '\u{0}'..='\u{1f}');
        match whim.of(4) {
            0 if !must => out.push(character),
            1 if character == '/' => out.push_str("\\/"),
            2 => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    write!(out, "\\u{unit:04X}").unwrap();
                }
            }
            _ => {
                let quoted = es_string(&character.to_string());
                out.push_str(&quoted[1..quoted.len() - 1]);
            }
        }
    }
    out.push('"');
    out
}

fn form(document: &[u8]) -> Option<String> {
    let canonical = Canonical::parse(document).ok()?;
    Some(String::from_utf8(canonical.as_bytes().to_vec()).expect("canonical JSON is UTF-8"))
}

proptest! {
    #[test]
    fn every_spelling_has_the_one_canonical_form(tree in tree(), whims in prop::collection::vec(any::<u8>(), 1..40)) {
        let document = spelled(&tree, &mut Whim(whims.iter().cycle()));
        let expected = canonical(&tree);
        prop_assert_eq!(form(document.as_bytes()), Some(expected.clone()), "{}", document);
        prop_assert_eq!(form(expected.as_bytes()), Some(expected), "the form of a form is itself");
    }

    #[test]
    fn numbers_are_written_as_ecmascript_writes_them(bits in any::<u64>(), power in -60..53_i32) {
        for value in [f64::from_bits(bits), 2_f64.powi(power), 10_f64.powi(power.min(15))] {
            let fits = value.is_finite() && value.abs() <= NUMBER_MAX;
            let written = format!("{value:e}");
            prop_assert_eq!(form(written.as_bytes()), fits.then(|| es_number(value)), "{}", written);
        }
    }

    #[test]
    fn a_member_that_comes_twice_is_refused_however_it_is_spelled(
        name in text(), other in text(), whims in prop::collection::vec(any::<u8>(), 1..20), depth in 0..4_usize,
    ) {
        let mut whim = Whim(whims.iter().cycle());
        let first = spelled_text(&name, &mut whim);
        let between = spelled_text(&other, &mut whim);
        let second = spelled_text(&name, &mut whim);
        let twice = format!("{{{first}:1,{between}:0,{second}:1}}");
        let document = format!("{}{twice}{}", "[".repeat(depth), "]".repeat(depth));
        prop_assert_eq!(form(document.as_bytes()), None, "{}", document);
    }

    #[test]
    fn half_a_surrogate_pair_is_refused(before in "[a-z]{0,3}", half in 0xd800..0xe000_u32, after in "[a-z]{0,3}") {
        let document = format!("\"{before}\\u{half:04x}{after}\"");
        prop_assert_eq!(form(document.as_bytes()), None, "{}", document);
    }

    #[test]
    fn what_is_accepted_is_json_that_says_the_same(document in corpus::changed(documents())) {
        if let Some(form) = form(&document) {
            let said: Value = serde_json::from_slice(&document).expect("it was accepted");
            let meant: Value = serde_json::from_str(&form).expect("the form is JSON");
            prop_assert!(alike(&said, &meant), "{} became {}", String::from_utf8_lossy(&document), form);
            prop_assert_eq!(self::form(form.as_bytes()), Some(form));
        }
    }

    #[test]
    fn a_leaf_is_found_at_its_pointer(tree in tree()) {
        let document = canonical(&tree);
        let whole: Value = serde_json::from_str(&document).unwrap();
        let parsed = Canonical::parse(document.as_bytes()).unwrap();
        parsed.each_leaf(|pointer, bytes| {
            let leaf = whole.pointer(pointer).expect("there is something at the pointer");
            let read: Value = serde_json::from_slice(bytes).unwrap();
            assert!(alike(leaf, &read), "{pointer}");
        });
        let read: Value = parsed.read().expect("any document is some value");
        prop_assert!(alike(&read, &whole));
    }
}

/// Equal, where `1` and `1.0` are one number.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| alike(a, b)))
        }
        _ => one == other,
    }
}

fn documents() -> Vec<Vec<u8>> {
    corpus::lines(include_str!("../corpus/json.txt"))
}

/// Appendix B of RFC 8785.
#[test]
fn the_numbers_of_the_rfc_come_out_as_there() {
    for (bits, expected) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x4340_0000_0000_0001, "9007199254740994"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
    ] {
        let value = f64::from_bits(bits);
        assert_eq!(es_number(value), expected);
        let fits = value.abs() <= NUMBER_MAX;
        assert_eq!(form(format!("{value:e}").as_bytes()).is_some(), fits, "{expected}");
    }
}
