//! Tells a server that lives from the pid files of one that died.
//!
//! After a restart of the machine or container the number in them often belongs to somebody
//! else, and Postgres then refuses to start. Every process of a server works in its cluster
//! folder, so /proc tells for sure; where there is no /proc, Postgres decides.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Whether any process of a server, or of one that is dying, still works in this cluster.
pub(super) fn is_in_use(cluster: &Path) -> Option<bool> {
    workers(cluster).map(|mut workers| workers.next().is_some())
}

/// Lets a server that was halted, as a debugger does, go on. No other takes notice.
pub(super) fn wake(cluster: &Path) {
    for pid in workers(cluster).into_iter().flatten() {
        let _ = kill_process(pid, Signal::CONT);
    }
}

fn workers(cluster: &Path) -> Option<impl Iterator<Item = Pid>> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    Some(processes.filter_map(move |entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let folder = fs::read_link(entry.path().join("cwd")).ok()?;
        (folder == cluster).then(|| Pid::from_raw(pid)).flatten()
    }))
}

/// Removes the pid files, beside the data and beside the socket, of a cluster in which provably
/// nobody works.
pub(super) fn clear(cluster: &Path, sockets: &Path) {
    if is_in_use(cluster) == Some(false) {
        let _ = fs::remove_file(cluster.join("postmaster.pid"));
        let _ = fs::remove_file(sockets.join(".s.PGSQL.5432.lock"));
    }
}
