//! What the documents promise about the tests.

use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// In place of a test: the reason why there is none.
const NONE: &str = "Does not apply:";
/// A longer run that stands for a test.
const SOAK: &str = "scripts/soak ";

/// The last cell of each row of each table.
fn last_cells(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with('|') && line.ends_with('|'));
    let cells = rows.filter_map(|row| row.trim_matches('|').split('|').next_back());
    cells.map(str::trim).filter(|cell| *cell != "test" && !cell.starts_with("--")).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_fault_has_a_test_that_is_there() {
    let page = std::fs::read_to_string(Path::new(ROOT).join("docs/faults.md")).unwrap();
    let mut files = Vec::new();
    sources(&Path::new(ROOT).join("crates"), &mut files);
    let code: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let soak = std::fs::read_to_string(Path::new(ROOT).join("scripts/soak")).unwrap();
    let runs: Vec<&str> = soak
        .lines()
        .filter_map(|line| line.trim().strip_suffix(')'))
        .flat_map(|names| names.split(" | "))
        .collect();
    let cells = last_cells(&page);
    assert!(cells.len() > 40, "only {} rows", cells.len());
    for cell in cells {
        if cell.starts_with(NONE) {
            continue;
        }
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "neither a test nor a reason: {cell}");
        for name in names {
            let there = match name.strip_prefix(SOAK) {
                Some(run) => runs.contains(&run),
                None => code.contains(&format!("fn {name}(")),
            };
            assert!(there, "no test is called {name}");
        }
    }
}

/// The page is made by a longer run, so a point that is new must not be missing from it.
#[test]
fn the_crash_matrix_on_file_has_every_point_and_every_cell_held() {
    let page = std::fs::read_to_string(Path::new(ROOT).join("docs/crash-matrix.md")).unwrap();
    for row in crate::crash::rows() {
        let found = page.lines().find(|line| line.starts_with(&row));
        let cells = found.unwrap_or_else(|| panic!("no row {row}: run scripts/soak crash"));
        for cell in cells.trim_matches('|').split('|').skip(2).map(str::trim) {
            let held = cell.split(',').next().and_then(|counts| counts.split_once('/'));
            assert!(held.map_or(cell == "–", |(held, of)| held == of), "{row} {cell}");
        }
    }
}

/// `` `module::a_sentence` `` in a page.
fn named(page: &str) -> Vec<&str> {
    let is_path = |word: &&str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        word.contains("::") && word.bytes().all(|byte| plain(byte) || byte == b':')
    };
    page.split('`').skip(1).step_by(2).filter(is_path).collect()
}

#[test]
fn every_test_that_a_page_names_is_there() {
    let mut files = Vec::new();
    sources(&Path::new(ROOT).join("crates"), &mut files);
    let code: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    for page in ["docs/threats.md", "docs/attack.md"] {
        let page = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
        let names = named(&page);
        assert!(names.len() > 5, "only {} tests", names.len());
        for path in names {
            let name = path.rsplit("::").next().unwrap();
            assert!(code.contains(&format!("fn {name}(")), "no test is called {path}");
        }
    }
}
