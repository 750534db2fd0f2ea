//! Tells a server that lives from the pid file of one that died.
//!
//! After a restart of the machine or container the number in `postmaster.pid` often belongs to
//! somebody else, and Postgres then refuses to start. Every process of a server works in its
//! cluster folder, so /proc tells for sure; where there is no /proc, Postgres decides.

use std::fs;
use std::path::Path;

/// Whether any process of a server, or of one that is dying, still works in this cluster.
pub(super) fn is_in_use(cluster: &Path) -> Option<bool> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    Some(
        processes.into_iter().any(|entry| {
            fs::read_link(entry.path().join("cwd")).is_ok_and(|folder| folder == cluster)
        }),
    )
}

/// Removes the pid file of a cluster in which provably nobody works.
pub(super) fn clear(cluster: &Path) {
    if is_in_use(cluster) == Some(false) {
        let _ = fs::remove_file(cluster.join("postmaster.pid"));
    }
}
