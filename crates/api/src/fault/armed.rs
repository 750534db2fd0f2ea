//! What was armed: for the process by `PAYONCE_FAULT`, [`arm`] or the header `x-payonce-job-fault`
//! of any request, for one request by the header `x-payonce-fault`. All read
//! `point:action[:times]`, commas between.
//!
//! Actions: `error`, `panic`, `abort`, `kill`, `stop`, `delay-MS`, `serialization`, `deadlock`,
//! and `meet-PORT`: goes to that port of this machine, says where it is, and waits there until the
//! connection ends, so that a test can do what it likes at exactly this point.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use actix_web::http::header::HeaderMap;
use rustix::process::Signal;
use sqlx::error::{DatabaseError, ErrorKind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::operation::Stop;
use crate::problem::Problem;

const HEADER: &str = "x-payonce-fault";
/// What a request sets off goes on in jobs, which carry no request's faults.
const JOB_HEADER: &str = "x-payonce-job-fault";
/// A test that died must not leave a request waiting for it.
const MEETING_MAX: Duration = Duration::from_mins(1);

type List = Arc<Mutex<Vec<Armed>>>;

struct Armed {
    name: String,
    action: String,
    times: u32,
}

tokio::task_local! {
    static ASKED: List;
}

fn of_the_process() -> &'static List {
    static ARMED: OnceLock<List> = OnceLock::new();
    ARMED.get_or_init(|| list(&std::env::var("PAYONCE_FAULT").unwrap_or_default()))
}

fn list(faults: &str) -> List {
    Arc::new(Mutex::new(faults.split(',').filter_map(parse).collect()))
}

fn parse(fault: &str) -> Option<Armed> {
    let mut parts = fault.trim().split(':');
    let (name, action) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let times = parts.next().map_or(Some(1), |times| times.parse().ok())?;
    Some(Armed { name, action, times })
}

/// Arms points in this process, in place of those armed before.
pub fn arm(faults: &str) {
    let mut armed = of_the_process().lock().unwrap_or_else(PoisonError::into_inner);
    armed.clear();
    armed.extend(faults.split(',').filter_map(parse));
}

/// The request's own faults go off in its work, and in the tasks that it spawns.
pub fn for_request<F: Future>(headers: &HeaderMap, work: F) -> impl Future<Output = F::Output> {
    let read = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(faults) = read(JOB_HEADER) {
        arm(faults);
    }
    let asked = read(HEADER).unwrap_or_default();
    ASKED.scope(list(asked), work)
}

/// Takes the faults of the request that spawns this task along.
pub fn carried<F: Future>(task: F) -> impl Future<Output = F::Output> {
    ASKED.scope(ASKED.try_with(Arc::clone).unwrap_or_default(), task)
}

/// Whether a known mistake was planted in this process by `PAYONCE_DEFECT`.
pub fn defect(name: &str) -> bool {
    static PLANTED: OnceLock<String> = OnceLock::new();
    PLANTED.get_or_init(|| std::env::var("PAYONCE_DEFECT").unwrap_or_default()) == name
}

/// Does what was armed for this point.
///
/// # Errors
/// For the actions `error`, `serialization` and `deadlock`.
pub async fn point(name: &'static str) -> Result<(), Stop> {
    let asked = ASKED.try_with(|list| take(list, name)).ok().flatten();
    let Some(action) = asked.or_else(|| take(of_the_process(), name)) else { return Ok(()) };
    tracing::warn!(point = name, %action, "an armed fault goes off");
    match action.as_str() {
        "error" => return Err(Stop::Passing(Problem::internal(&"an injected fault"))),
        "serialization" => return Err(conflict("40001")),
        "deadlock" => return Err(conflict("40P01")),
        "panic" => panic!("an injected fault at {name}"),
        "abort" => std::process::abort(),
        "kill" => signal(Signal::KILL),
        "stop" => signal(Signal::STOP),
        other => match other.split_once('-') {
            Some(("delay", ms)) => pause(ms).await,
            Some(("meet", port)) => meet(port, name).await,
            _ => panic!("no such fault: {other}"),
        },
    }
    Ok(())
}

fn take(list: &List, name: &str) -> Option<String> {
    let mut armed = list.lock().unwrap_or_else(PoisonError::into_inner);
    let fault = armed.iter_mut().find(|fault| fault.name == name && fault.times > 0)?;
    fault.times -= 1;
    Some(fault.action.clone())
}

fn signal(signal: Signal) {
    let me = rustix::process::getpid();
    rustix::process::kill_process(me, signal).expect("a process may signal itself");
}

async fn pause(ms: &str) {
    tokio::time::sleep(Duration::from_millis(ms.parse().expect("milliseconds"))).await;
}

async fn meet(port: &str, name: &str) {
    let meeting = async {
        let port: u16 = port.parse().expect("a port");
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(name.as_bytes()).await?;
        stream.write_all(b"\n").await?;
        // Whatever ends it: a word, an orderly end, or a test that is gone.
        stream.read_u8().await
    };
    let _ = tokio::time::timeout(MEETING_MAX, meeting).await;
}

/// What Postgres says when it undoes one transaction for another's sake.
fn conflict(code: &'static str) -> Stop {
    Stop::Database(sqlx::Error::Database(Box::new(Conflict(code))))
}

#[derive(Debug)]
struct Conflict(&'static str);

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an injected conflict ({})", self.0)
    }
}

impl std::error::Error for Conflict {}

impl DatabaseError for Conflict {
    fn message(&self) -> &'static str {
        "an injected conflict"
    }

    fn code(&self) -> Option<std::borrow::Cow<'_, str>> {
        Some(self.0.into())
    }

    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }

    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }
}
