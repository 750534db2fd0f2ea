//! The real binary as a process of its own, for tests in which death is the subject.
//!
//! Every process started here dies with its value, by its own pid.

mod database;
mod proxy;
mod redis;
mod shopper;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) use database::Database;
pub(crate) use proxy::Proxy;
pub(crate) use redis::Redis;
pub(crate) use shopper::{Answer, Meeting, Request};

/// A loaded machine starts slowly.
const START_TIME: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);
/// Signs in all processes that tests start.
pub(crate) const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
pub(crate) const WEBHOOK_SECRET: &str = "whsec_dGVzdHMtc2lnbi13aXRoLXRoaXMtc2VjcmV0LW9ubHk=";

/// A running `payonce`.
pub(crate) struct Payonce {
    child: Child,
    folder: TempDir,
    port: u16,
}

/// How to start one.
#[derive(Clone, Default)]
pub(crate) struct Launch {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Launch {
    /// `payonce serve` with demo data, or another command.
    pub(crate) fn new(command: &str, database_url: &str) -> Self {
        Self::on_nothing(command).flag(&format!("--database-url={database_url}"))
    }

    /// The same before it is known where its database is.
    pub(crate) fn on_nothing(command: &str) -> Self {
        Self::default()
            .flag(command)
            .flag(&format!("--secret={SECRET}"))
            .flag(&format!("--provider-webhook-secret={WEBHOOK_SECRET}"))
    }

    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.arguments.push(flag.to_owned());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a clock that is wrong by `skew`, such as `+1h`; durations stay right.
    pub(crate) fn with_clock(self, skew: &str) -> Self {
        let library = faketime().expect("libfaketime is not installed: scripts/test installs it");
        self.env("LD_PRELOAD", library.to_str().unwrap())
            .env("FAKETIME", skew)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }

    /// Only what is said here and what a program needs to run at all.
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_payonce"));
        command.env_clear().args(&self.arguments).stdin(Stdio::null());
        for name in ["PATH", "HOME", "TMPDIR", "LLVM_PROFILE_FILE"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts it and waits until it can be used.
    pub(crate) fn start(&self) -> Payonce {
        blocking(|| Payonce::start(self.command()))
    }

    /// Runs it to its end: exit code, standard output.
    pub(crate) fn run(&self) -> (i32, String) {
        let output = blocking(|| self.command().output()).unwrap();
        let code = output.status.code().unwrap_or(-1);
        let text = [output.stdout, output.stderr].concat();
        (code, String::from_utf8_lossy(&text).into_owned())
    }
}

impl Payonce {
    fn start(mut command: Command) -> Self {
        let folder = TempDir::new().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let mut process = Self { child, folder, port: 0 };
        process.port = process.wait_for_banner(&lines);
        process
    }

    fn wait_for_banner(&self, lines: &Receiver<String>) -> u16 {
        let until = Instant::now() + START_TIME;
        while let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            let address = line
                .strip_prefix("Payonce is at http://127.0.0.1:")
                .or_else(|| line.strip_prefix("Provider is at http://127.0.0.1:"));
            if let Some(port) = address {
                return port.trim().parse().unwrap();
            }
        }
        panic!("payonce did not start:\n{}", self.log());
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What it wrote to its standard error so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap()
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The most memory it ever had, in bytes. The kernel counts by the page only now and then: two
    /// readings of a process that did not grow may differ either way (`man 5 proc_pid_status`).
    #[cfg(target_os = "linux")]
    pub(crate) fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// SIGKILL, and the end of the process.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Ends when the process has ended; blocks.
    pub(crate) fn wait(&mut self, at_most: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + at_most;
        blocking(|| {
            while Instant::now() < until {
                if let Some(status) = self.child.try_wait().unwrap() {
                    return Some(status);
                }
                std::thread::sleep(POLL);
            }
            None
        })
    }
}

impl Drop for Payonce {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Debian keeps it below a folder of the architecture.
fn faketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let libraries = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    libraries.chain(["/usr/lib/faketime/libfaketimeMT.so.1".into()]).find(|path| path.exists())
}

/// Reads on to the end, so that the pipe never fills.
fn lines_of(stdout: ChildStdout) -> Receiver<String> {
    let (told, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = told.send(line);
        }
    });
    lines
}

/// Waiting for a process must not hold up the tasks of the test, which may serve it.
fn blocking<T>(wait: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        _ => wait(),
    }
}

/// A port that nobody listens on right now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
