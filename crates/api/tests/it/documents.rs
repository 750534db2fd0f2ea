//! What the documents promise about the tests.

use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// In place of a test: the reason why there is none.
const NONE: &str = "Does not apply:";

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
    let cells = last_cells(&page);
    assert!(cells.len() > 40, "only {} rows", cells.len());
    for cell in cells {
        if cell.starts_with(NONE) {
            continue;
        }
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "neither a test nor a reason: {cell}");
        for name in names {
            assert!(code.contains(&format!("fn {name}(")), "no test is called {name}");
        }
    }
}
