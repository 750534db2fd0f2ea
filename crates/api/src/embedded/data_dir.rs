//! The one folder below which everything embedded lives.
//!
//! `postgres/` is the cluster, `run/` holds the sockets, `*.log` what the servers said, `secret`
//! what signs cookies and caches, `lock` says which application owns all of it.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

/// Tries, 10 ms apart.
const PATIENCE: u32 = 50;

/// A data directory, held by the application that owns it or joined by a command beside it.
#[derive(Debug)]
pub struct DataDir {
    root: PathBuf,
    /// Held for the life of the process; servers do not inherit it.
    lock: Option<File>,
}

impl DataDir {
    /// For the one application that runs on it. One that was just killed gets a moment to go.
    pub fn claim(root: &Path) -> anyhow::Result<Self> {
        for _ in 0..PATIENCE {
            let dir = Self::join(root)?;
            if dir.is_owned() {
                return Ok(dir);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        bail!(
            "Another payonce runs on the data directory {}: stop it, or give this one its own \
             with --data-dir",
            root.display()
        )
    }

    /// For a command that may find an application running, and then uses its servers.
    pub fn join(root: &Path) -> anyhow::Result<Self> {
        Self::open(root).map_err(|error| {
            anyhow!(
                "The data directory {} cannot be used ({error}): choose another with --data-dir",
                root.display()
            )
        })
    }

    fn open(root: &Path) -> io::Result<Self> {
        if !root.exists() {
            fs::create_dir_all(root)?;
            fs::set_permissions(root, Permissions::from_mode(0o711))?;
        }
        let root = fs::canonicalize(root)?;
        let file = private().create(true).truncate(false).open(root.join("lock"))?;
        let lock = match file.try_lock() {
            Ok(()) => Some(file),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        Ok(Self { root, lock })
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Whether this process starts and stops the servers.
    pub fn is_owned(&self) -> bool {
        self.lock.is_some()
    }

    /// The 32 bytes under this name, made on first use and the same for ever after.
    pub fn secret(&self, name: &str) -> anyhow::Result<[u8; 32]> {
        let file = self.root.join(name);
        if !file.exists() {
            self.keep_new_secret(&file)
                .with_context(|| format!("The file {} cannot be written", file.display()))?;
        }
        let text = fs::read_to_string(&file)
            .with_context(|| format!("The file {} cannot be read", file.display()))?;
        let mut secret = [0; 32];
        hex::decode_to_slice(text.trim(), &mut secret).map_err(|_| {
            anyhow!("The file {} must hold 64 hex digits: restore it or remove it", file.display())
        })?;
        Ok(secret)
    }

    /// Written under another name and linked into place: never half there, never replaced.
    fn keep_new_secret(&self, file: &Path) -> io::Result<()> {
        let draft = self.root.join(format!("secret-{:08x}", rand::random::<u32>()));
        let mut written = private().create_new(true).open(&draft)?;
        writeln!(written, "{}", hex::encode(rand::random::<[u8; 32]>()))?;
        written.sync_all()?;
        let linked = fs::hard_link(&draft, file);
        fs::remove_file(&draft)?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    /// Where a server writes what it says; the log of the start before is kept beside it.
    pub(super) fn log(&self, name: &str) -> anyhow::Result<File> {
        let file = self.root.join(name);
        let _ = fs::rename(&file, file.with_extension("log.1"));
        private()
            .create(true)
            .append(true)
            .open(&file)
            .with_context(|| format!("The file {} cannot be written", file.display()))
    }
}

fn private() -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::DataDir;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_second_application_is_refused_and_a_command_joins() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataDir::claim(folder.path()).unwrap();
        let refusal = DataDir::claim(folder.path()).unwrap_err().to_string();
        assert!(refusal.contains("--data-dir"), "{refusal}");
        assert!(!DataDir::join(folder.path()).unwrap().is_owned());
        drop(first);
        assert!(DataDir::claim(folder.path()).unwrap().is_owned());
    }

    #[test]
    fn a_secret_is_made_once_and_kept_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let made = DataDir::claim(folder.path()).unwrap().secret("secret").unwrap();
        assert_eq!(made, DataDir::claim(folder.path()).unwrap().secret("secret").unwrap());
        let mode = std::fs::metadata(folder.path().join("secret")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "lock and secret only");
    }

    #[test]
    fn a_damaged_secret_stops_the_start_instead_of_being_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::claim(folder.path()).unwrap();
        std::fs::write(folder.path().join("secret"), "abc").unwrap();
        assert!(dir.secret("secret").unwrap_err().to_string().contains("64 hex digits"));
    }
}
