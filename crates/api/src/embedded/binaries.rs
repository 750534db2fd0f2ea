//! Where the programs of Postgres and Redis are on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

/// Folders that hold one Postgres per version: (above the version, below it).
const VERSIONED: [(&str, &str); 5] = [
    ("/usr/lib/postgresql", "bin"),
    ("/usr", "bin"),
    ("/opt/homebrew/opt", "bin"),
    ("/usr/local/opt", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "bin"),
];
const PROGRAMS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// The folder that holds `initdb`, `pg_ctl` and `postgres`.
#[derive(Clone, Debug)]
pub(super) struct Binaries(PathBuf);

impl Binaries {
    /// `PG_BIN`, else the `PATH`, else the newest in the usual places. A cluster that exists
    /// already needs the major version it was made by.
    pub(super) fn find(made_by: Option<&str>) -> anyhow::Result<Self> {
        let candidates = candidates()?;
        if candidates.is_empty() {
            bail!(
                "No Postgres is installed here: run scripts/demo, which installs it, or install \
                 the package postgresql, or set PG_BIN to the folder of its programs, or set \
                 DATABASE_URL, or run docker compose up"
            );
        }
        let Some(major) = made_by else {
            return Ok(Self(candidates[0].clone()));
        };
        match candidates.iter().find(|folder| major_of(folder).as_deref() == Some(major)) {
            Some(folder) => Ok(Self(folder.clone())),
            None => bail!(
                "The embedded data was made by PostgreSQL {major}, which is not installed here: \
                 install it, or choose another --data-dir"
            ),
        }
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// `redis-server`, in the `PATH` or where packages put it.
pub(crate) fn redis_server() -> Option<PathBuf> {
    let usual = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map(PathBuf::from);
    path().chain(usual).map(|folder| folder.join("redis-server")).find(|program| program.is_file())
}

fn candidates() -> anyhow::Result<Vec<PathBuf>> {
    if let Some(chosen) = std::env::var_os("PG_BIN").map(PathBuf::from) {
        return match complete(&chosen) {
            Some(folder) => Ok(vec![folder]),
            None => bail!(
                "PG_BIN is {}, but initdb, pg_ctl and postgres are not all in that folder; \
                 correct it or unset it",
                chosen.display()
            ),
        };
    }
    Ok(path().chain(versioned()).filter_map(|folder| complete(&folder)).collect())
}

fn path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect::<Vec<_>>().into_iter()
}

fn versioned() -> impl Iterator<Item = PathBuf> {
    VERSIONED.iter().flat_map(|(above, below)| {
        let entries = fs::read_dir(above).into_iter().flatten().flatten();
        let mut found: Vec<(u32, PathBuf)> = entries
            .filter_map(|entry| {
                Some((version_in(entry.file_name().to_str()?)?, entry.path().join(below)))
            })
            .collect();
        found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
        found.into_iter().map(|(_, folder)| folder)
    })
}

/// `16`, `postgresql@16`, `pgsql-16`: the version that ends a folder's name.
fn version_in(name: &str) -> Option<u32> {
    let known = ["postgresql@", "pgsql-", ""];
    known.iter().find_map(|prefix| name.strip_prefix(prefix)?.parse().ok())
}

/// The real folder behind a link, where all programs are.
fn complete(folder: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(folder.join("initdb")).ok()?;
    let folder = real.parent()?;
    PROGRAMS.iter().all(|name| folder.join(name).is_file()).then(|| folder.to_owned())
}

fn major_of(folder: &Path) -> Option<String> {
    let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.split_whitespace().find(|word| word.starts_with(char::is_numeric))?;
    Some(version.split('.').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn a_folder_is_known_by_the_version_that_ends_its_name() {
        assert_eq!(version_in("16"), Some(16));
        assert_eq!(version_in("postgresql@14"), Some(14));
        assert_eq!(version_in("pgsql-15"), Some(15));
        assert_eq!(version_in("lib64"), None);
    }
}
