//! Switches and a call log for tests. Only loopback may use them.
//!
//! `POST /_control {"down": bool, "latency_ms": n, "hold_webhooks": bool}` sets what it names
//! and leaves the rest; the answer says what holds now. While down, everything else is 503 and
//! nothing is recorded. Latency lies between recording a charge and answering it.
//! `GET /_log?provider_key=…` lists the latest calls, oldest first, lost answers included.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::web::{Data, Json, Query};
use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Mock;
use super::refusal::Refusal;

/// More than any test makes; old calls fall out.
const CALLS_MAX: usize = 10_000;
const LATENCY_MAX: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(super) struct Control {
    switches: Mutex<Switches>,
    calls: Mutex<VecDeque<Call>>,
}

#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct Switches {
    pub(super) down: bool,
    pub(super) latency_ms: u64,
    pub(super) hold_webhooks: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    down: Option<bool>,
    latency_ms: Option<u64>,
    hold_webhooks: Option<bool>,
}

#[derive(Debug, Clone, Serialize)]
struct Call {
    method: &'static str,
    path: &'static str,
    provider_key: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LogFilter {
    provider_key: Option<String>,
}

impl Control {
    /// Every call passes here first: it is logged, and refused while the provider is down.
    pub(super) fn admit(
        &self,
        method: &'static str,
        path: &'static str,
        provider_key: Option<&str>,
    ) -> Result<(), Refusal> {
        let mut calls = locked(&self.calls);
        if calls.len() == CALLS_MAX {
            calls.pop_front();
        }
        calls.push_back(Call { method, path, provider_key: provider_key.map(str::to_owned) });
        if self.switches().down { Err(Refusal::Unavailable) } else { Ok(()) }
    }

    pub(super) fn switches(&self) -> Switches {
        *locked(&self.switches)
    }

    pub(super) async fn latency(&self) {
        let latency = Duration::from_millis(self.switches().latency_ms);
        tokio::time::sleep(latency.min(LATENCY_MAX)).await;
    }

    fn change(&self, change: &Change) -> Switches {
        let mut switches = locked(&self.switches);
        switches.down = change.down.unwrap_or(switches.down);
        switches.latency_ms = change.latency_ms.unwrap_or(switches.latency_ms);
        switches.hold_webhooks = change.hold_webhooks.unwrap_or(switches.hold_webhooks);
        *switches
    }

    fn calls(&self, provider_key: Option<&str>) -> Vec<Call> {
        let wanted =
            |call: &&Call| provider_key.is_none() || call.provider_key.as_deref() == provider_key;
        locked(&self.calls).iter().filter(wanted).cloned().collect()
    }
}

pub(super) async fn change(
    mock: Data<Mock>,
    request: HttpRequest,
    change: Json<Change>,
) -> Result<HttpResponse, Refusal> {
    only_loopback(&request)?;
    let switches = mock.control.change(&change);
    mock.wake_deliveries();
    Ok(HttpResponse::Ok().json(switches))
}

pub(super) async fn log(
    mock: Data<Mock>,
    request: HttpRequest,
    filter: Query<LogFilter>,
) -> Result<HttpResponse, Refusal> {
    only_loopback(&request)?;
    let calls = mock.control.calls(filter.provider_key.as_deref());
    Ok(HttpResponse::Ok().json(json!({ "data": calls })))
}

fn only_loopback(request: &HttpRequest) -> Result<(), Refusal> {
    match request.peer_addr() {
        Some(peer) if peer.ip().to_canonical().is_loopback() => Ok(()),
        Some(_) | None => Err(Refusal::NotFound),
    }
}

/// Nothing panics while holding these, and a half-made change would do no harm.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
