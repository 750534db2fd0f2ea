//! Named points at which a test may make this process fail. Compiled in with the feature `faults`
//! only; otherwise every point is nothing.

use crate::operation::Stop;

/// Passes, unless a test has armed this point.
///
/// # Errors
/// What was injected.
#[cfg(not(feature = "faults"))]
#[expect(clippy::unused_async, reason = "the same signature as with faults")]
pub async fn point(_name: &'static str) -> Result<(), Stop> {
    Ok(())
}

#[cfg(feature = "faults")]
pub use armed::{arm, point};

#[cfg(feature = "faults")]
mod armed {
    //! `PAYONCE_FAULT=name:action[:times]`, or [`arm`], decides what happens at a point.

    use std::sync::{Mutex, OnceLock};
    use std::time::Duration;

    use super::Stop;
    use crate::problem::Problem;

    struct Armed {
        name: String,
        action: String,
        times: u32,
    }

    fn armed() -> &'static Mutex<Vec<Armed>> {
        static ARMED: OnceLock<Mutex<Vec<Armed>>> = OnceLock::new();
        ARMED.get_or_init(|| {
            let faults = std::env::var("PAYONCE_FAULT").unwrap_or_default();
            Mutex::new(faults.split(',').filter_map(parse).collect())
        })
    }

    fn parse(fault: &str) -> Option<Armed> {
        let mut parts = fault.trim().split(':');
        let (name, action) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let times = parts.next().map_or(Some(1), |times| times.parse().ok())?;
        Some(Armed { name, action, times })
    }

    /// Arms points in this process: `name:action[:times]`, commas between. Actions: `error`,
    /// `panic`, `delay-MS`, `abort`, `kill`, `stop`.
    pub fn arm(faults: &str) {
        let mut armed = armed().lock().expect("no point panics while it holds the list");
        armed.clear();
        armed.extend(faults.split(',').filter_map(parse));
    }

    fn take(name: &str) -> Option<String> {
        let mut armed = armed().lock().expect("no point panics while it holds the list");
        let fault = armed.iter_mut().find(|fault| fault.name == name && fault.times > 0)?;
        fault.times -= 1;
        Some(fault.action.clone())
    }

    /// Does what was armed for this point.
    ///
    /// # Errors
    /// For the action `error`.
    pub async fn point(name: &'static str) -> Result<(), Stop> {
        let Some(action) = take(name) else { return Ok(()) };
        tracing::warn!(point = name, %action, "an armed fault goes off");
        match action.as_str() {
            "error" => return Err(Stop::Passing(Problem::internal(&"an injected fault"))),
            "panic" => panic!("an injected fault at {name}"),
            "abort" => std::process::abort(),
            "kill" => signal(rustix::process::Signal::KILL),
            "stop" => signal(rustix::process::Signal::STOP),
            other => {
                let ms = other.strip_prefix("delay-").and_then(|ms| ms.parse().ok());
                tokio::time::sleep(Duration::from_millis(ms.unwrap_or_default())).await;
            }
        }
        Ok(())
    }

    fn signal(signal: rustix::process::Signal) {
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, signal).expect("a process may signal itself");
    }
}
