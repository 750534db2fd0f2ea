//! Whom the servers run as: Postgres refuses root, so root hands them to somebody else.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail};
use tokio::process::Command;

/// The user and group of every server process and of the folders they write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) uid: u32,
    gid: u32,
    /// Only root can, and must, become somebody else.
    switch: bool,
}

impl Account {
    /// Ourselves; for root the owner of the cluster that is there, else `postgres`, else `nobody`.
    pub(super) fn of_servers(cluster: &Path) -> anyhow::Result<Self> {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        if !uid.is_root() {
            return Ok(Self { uid: uid.as_raw(), gid: gid.as_raw(), switch: false });
        }
        let owner = fs::metadata(cluster).ok().map(|found| (found.uid(), found.gid()));
        let (uid, gid) = match owner.filter(|(uid, _)| *uid != 0) {
            Some(ids) => ids,
            None => unprivileged()?,
        };
        Ok(Self { uid, gid, switch: true })
    }

    /// A server program: its own process group, so that Ctrl-C reaches the application first,
    /// and none of the `PG…` variables that would point it to another server.
    pub(super) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"PG") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").current_dir("/").process_group(0).stdin(Stdio::null());
        if self.switch {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// A folder that only this account may enter.
    pub(super) fn make_folder(self, folder: &Path) -> anyhow::Result<()> {
        self.make_folder_io(folder)
            .with_context(|| format!("The folder {} cannot be made", folder.display()))
    }

    fn make_folder_io(self, folder: &Path) -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        if self.switch {
            chown(folder, Some(self.uid), Some(self.gid))?;
        }
        Ok(())
    }

    /// Fails with the way out when a folder above, such as a closed home, bars this account.
    pub(super) fn must_reach(self, folder: &Path) -> anyhow::Result<()> {
        let barred = folder.ancestors().skip(1).find(|above| self.is_barred_by(above));
        if let Some(above) = barred.filter(|_| self.switch) {
            bail!(
                "Started as root, the embedded Postgres runs as user {}, who may not enter {}; \
                 choose another place with --data-dir, for example /var/lib/payonce",
                self.uid,
                above.display()
            );
        }
        Ok(())
    }

    fn is_barred_by(self, folder: &Path) -> bool {
        fs::metadata(folder).is_ok_and(|found| {
            let enter = match (found.uid() == self.uid, found.gid() == self.gid) {
                (true, _) => 0o100,
                (false, true) => 0o010,
                (false, false) => 0o001,
            };
            found.mode() & enter == 0
        })
    }
}

fn unprivileged() -> anyhow::Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    ["postgres", "nobody"].iter().find_map(|name| ids_of(&users, name)).context(
        "Postgres refuses to run as root, and there is neither a user postgres nor a user \
         nobody; start payonce as an ordinary user or set DATABASE_URL",
    )
}

fn ids_of(users: &str, name: &str) -> Option<(u32, u32)> {
    let mut fields = users
        .lines()
        .map(|line| line.split(':'))
        .find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
    let (uid, gid) = (fields.nth(1)?, fields.next()?);
    Some((uid.parse().ok()?, gid.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::ids_of;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let users = "postgresql:x:1:1::/:/bin/sh\npostgres:x:105:113:,,,:/var:/bin/bash\n";
        assert_eq!(ids_of(users, "postgres"), Some((105, 113)));
        assert_eq!(ids_of(users, "nobody"), None);
    }
}
