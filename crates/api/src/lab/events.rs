//! The listener: hears the ordinary events of the servers and keeps those of a run.
//!
//! Whoever serves a press enters a span that holds the run's id; every event inside it, in spawned
//! tasks too, belongs to that run. Nothing else is looked at.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use tokio::sync::mpsc::UnboundedSender;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{LevelFilter, dynamic_filter_fn};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use crate::telemetry::Listener;

/// The target of everything that belongs into a diagram.
pub(super) const TARGET: &str = "payonce::flow";

/// Something that happened in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Microseconds since 1970, by this machine's clock, which all processes of a run share.
    pub at_us: i64,
    pub run: String,
    /// `A`, `B`, or empty for what happens outside of servers.
    pub server: String,
    /// Which press it serves, from 1.
    pub press: u32,
    /// Which customer, in a crowd.
    pub customer: u32,
    /// What happened: `charge`, `intent`, `answer`, …
    pub step: String,
    /// Everything else that was said about it.
    pub fields: BTreeMap<String, String>,
}

impl Event {
    /// Something that a client or the lab itself did.
    pub(super) fn outside(run: &str, press: u32, step: &str) -> Self {
        Self {
            at_us: now_us(),
            run: run.to_owned(),
            press,
            step: step.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.fields.insert(name.to_owned(), value.to_string());
        self
    }

    /// A field, or nothing.
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// This machine's clock: what several processes agree on without asking anybody.
#[expect(clippy::disallowed_methods, reason = "orders the events of processes on one machine")]
pub(super) fn now_us() -> i64 {
    let nanos = OffsetDateTime::now_utc().unix_timestamp_nanos();
    i64::try_from(nanos / 1000).unwrap_or_default()
}

type Wires = HashMap<String, UnboundedSender<Event>>;

/// Where the events of each run go; the empty name takes those of every run.
fn wires() -> MutexGuard<'static, Wires> {
    static WIRES: OnceLock<Mutex<Wires>> = OnceLock::new();
    WIRES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether anybody listens: while nobody does, nothing is said, and the shop pays nothing for its lab.
static LISTENED: AtomicBool = AtomicBool::new(false);

/// Events of this run go there from now on.
pub(super) fn connect(run: &str, wire: UnboundedSender<Event>) {
    let mut wires = wires();
    wires.insert(run.to_owned(), wire);
    LISTENED.store(true, Ordering::Relaxed);
}

/// Nobody listens to this run any more.
pub(super) fn disconnect(run: &str) {
    let mut wires = wires();
    wires.remove(run);
    LISTENED.store(!wires.is_empty(), Ordering::Relaxed);
}

/// Hands an event to whoever listens to its run.
pub(super) fn tell(event: Event) {
    let wires = wires();
    if let Some(wire) = wires.get(&event.run).or_else(|| wires.get("")) {
        // A run that has ended listens no more.
        let _ = wire.send(event);
    }
}

/// To be installed with the log.
pub fn listener() -> Listener {
    // Whoever only asks whether something would be logged, as drivers do for a notice, leaves the
    // answer behind for the next event of the thread, which is then lost, unless that event is
    // asked about itself. A dynamic filter is asked about every one.
    let concerns = |metadata: &Metadata<'_>, _: &Context<'_, Registry>| {
        LISTENED.load(Ordering::Relaxed)
            && metadata.target() == TARGET
            && *metadata.level() <= Level::INFO
    };
    let filter = dynamic_filter_fn(concerns).with_max_level_hint(LevelFilter::INFO);
    Flow.with_filter(filter).boxed()
}

struct Flow;

/// The run that a span belongs to; kept with the span.
struct OfRun(Event);

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Fields {
    fn take(&mut self, name: &str) -> String {
        self.0.remove(name).unwrap_or_default()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Flow {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let (Some(span), true) = (context.span(id), fields.0.contains_key("run")) else { return };
        let event = Event {
            run: fields.take("run"),
            server: fields.take("server"),
            press: fields.take("press").parse().unwrap_or_default(),
            customer: fields.take("customer").parse().unwrap_or_default(),
            ..Event::default()
        };
        span.extensions_mut().insert(OfRun(event));
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let Some(scope) = context.event_scope(event) else { return };
        for span in scope {
            let extensions = span.extensions();
            let Some(OfRun(of)) = extensions.get::<OfRun>() else { continue };
            let mut fields = Fields::default();
            event.record(&mut fields);
            let step = fields.take("step");
            fields.0.remove("message");
            tell(Event { at_us: now_us(), step, fields: fields.0, ..of.clone() });
            return;
        }
    }
}
