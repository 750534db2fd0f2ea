//! One private Postgres per test run, however many processes the run has.
//!
//! `cargo test` runs every test in one process, nextest each in its own. A run is named by
//! `NEXTEST_RUN_ID` or else by this process; the first process of a run starts the server
//! under a file lock, the others find it. A small shell process outlives the tests: it waits
//! for the run to end, in whatever way, then stops the server and removes its directory.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// First start, with initdb, takes well under a second; a loaded machine may need longer.
const START_TIME: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(20);

const SUPERVISOR: &str = r#"
while kill -0 "$1" 2>/dev/null && kill -0 "$2" 2>/dev/null; do sleep 0.2; done
kill -0 "$1" 2>/dev/null && exit
kill -INT "$2"
tries=0
while kill -0 "$2" 2>/dev/null && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
rm -rf "$3"
"#;

/// Where the maintenance database of the test server answers.
pub(super) fn url() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| match std::env::var("TEST_DATABASE_URL") {
        Ok(url) => url,
        Err(_) => Run::current().server_url().expect("a private Postgres should start"),
    })
}

/// The test run this process belongs to.
struct Run {
    directory: PathBuf,
    /// The run is over when this process is gone.
    watched: u32,
}

impl Run {
    fn current() -> Self {
        let (name, watched) = match std::env::var("NEXTEST_RUN_ID") {
            Ok(id) => (id, parent_id()),
            Err(_) => (std::process::id().to_string(), std::process::id()),
        };
        Self { directory: std::env::temp_dir().join(format!("payonce-pg-{name}")), watched }
    }

    fn server_url(&self) -> io::Result<String> {
        let owner = Owner::of_the_server()?;
        make_directory(&self.directory, &owner)?;
        let lock = File::create(self.directory.join("lock"))?;
        lock.lock()?;
        let known = self.directory.join("url");
        if !known.exists() {
            fs::write(&known, self.start(&owner)?)?;
        }
        fs::read_to_string(known)
    }

    fn start(&self, owner: &Owner) -> io::Result<String> {
        let binaries = find_binaries()?;
        let data = self.directory.join("data");
        init(&binaries, &data, owner)?;
        let port = free_port()?;
        let server = spawn(&binaries, &data, port, owner)?;
        supervise(self.watched, server.id(), &self.directory)?;
        wait_until_ready(&data)?;
        Ok(format!("postgres://postgres@127.0.0.1:{port}/postgres"))
    }
}

/// Stops `server` and removes its directory once the process `watched` is gone, in whatever way.
/// Ends with the server: one that was stopped before is its stopper's business. It is nobody's
/// child, and its output goes nowhere, so that a pipe from the test run closes when the run ends.
pub(crate) fn supervise(watched: u32, server: u32, directory: &Path) -> io::Result<()> {
    Command::new("/bin/sh")
        .args(["-c", &format!("({SUPERVISOR}) &"), "supervisor"])
        .args([watched.to_string(), server.to_string()])
        .arg(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .status()?;
    Ok(())
}

/// Postgres refuses root, so root hands its server to somebody else.
pub(crate) struct Owner(Option<(u32, u32)>);

impl Owner {
    pub(crate) fn of_the_server() -> io::Result<Self> {
        let us = fs::metadata("/proc/self").or_else(|_| fs::metadata("."))?;
        if std::os::unix::fs::MetadataExt::uid(&us) != 0 {
            return Ok(Self(None));
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let found = ["postgres", "nobody"].iter().find_map(|name| ids(&users, name));
        found
            .map(|ids| Self(Some(ids)))
            .ok_or_else(|| io::Error::other("no user to run Postgres as"))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }
}

fn ids(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let fields: Vec<&str> = passwd
        .lines()
        .map(|line| line.split(':').collect())
        .find(|fields: &Vec<&str>| fields.first() == Some(&name))?;
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

pub(crate) fn make_directory(directory: &Path, owner: &Owner) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    match owner.0 {
        Some((user, group)) => chown(directory, Some(user), Some(group)),
        None => Ok(()),
    }
}

pub(crate) fn find_binaries() -> io::Result<PathBuf> {
    let chosen = std::env::var_os("PG_BIN").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = chosen
        .into_iter()
        .chain(std::env::split_paths(&path))
        .chain(packaged_binaries())
        .find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists());
    found.ok_or_else(|| {
        io::Error::other("no Postgres here: install it, or set PG_BIN or TEST_DATABASE_URL")
    })
}

/// Debian keeps one folder per version, out of the PATH.
fn packaged_binaries() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        versions.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.iter().map(|n| PathBuf::from(format!("/usr/lib/postgresql/{n}/bin"))).collect()
}

pub(crate) fn init(binaries: &Path, data: &Path, owner: &Owner) -> io::Result<()> {
    let output = owner
        .command(&binaries.join("initdb"))
        .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync"])
        .arg(data)
        .current_dir("/")
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// A group of its own, so that Ctrl-C reaches the tests first and the server last.
pub(crate) fn spawn(binaries: &Path, data: &Path, port: u16, owner: &Owner) -> io::Result<Child> {
    let log = File::create(data.with_file_name("log"))?;
    let settings = [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "max_connections=300",
        "shared_buffers=64MB",
    ];
    owner
        .command(&binaries.join("postgres"))
        .arg("-D")
        .arg(data)
        .args(["-p", &port.to_string()])
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The server writes its state into the last line of its pid file.
pub(crate) fn wait_until_ready(data: &Path) -> io::Result<()> {
    let started = Instant::now();
    while started.elapsed() < START_TIME {
        let state = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        if state.lines().nth(7).is_some_and(|line| line.trim() == "ready") {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
    Err(io::Error::other(fs::read_to_string(data.with_file_name("log")).unwrap_or_default()))
}
