//! A folder for the unix sockets, with a path short enough for the kernel.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::bail;
use sha2::{Digest, Sha256};

use super::account::Account;
use super::data_dir::DataDir;

/// The kernel takes 104 to 108 bytes; this leaves room for `/.s.PGSQL.5432`.
const LONGEST: usize = 85;

/// `run` in the data directory, or a stable folder in /tmp where that path is too long.
pub(super) fn folder(dir: &DataDir, account: Account) -> anyhow::Result<PathBuf> {
    let near = dir.path().join("run");
    if near.as_os_str().len() <= LONGEST {
        account.make_folder(&near)?;
        return Ok(near);
    }
    let far = Path::new("/tmp").join(short_name(dir.path()));
    if DirBuilder::new().mode(0o700).create(&far).is_ok() {
        account.make_folder(&far)?;
    }
    must_be_ours(&far, account)?;
    Ok(far)
}

fn short_name(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    format!("payonce-{}", hex::encode(&digest[..8]))
}

/// Anybody can make a folder in /tmp, so one that is there already has to prove itself.
fn must_be_ours(folder: &Path, account: Account) -> anyhow::Result<()> {
    match fs::symlink_metadata(folder) {
        Ok(found)
            if found.is_dir() && found.uid() == account.uid && found.mode() & 0o777 == 0o700 =>
        {
            Ok(())
        }
        _ => bail!(
            "The folder {} belongs to somebody else: remove it, or choose a shorter --data-dir",
            folder.display()
        ),
    }
}
