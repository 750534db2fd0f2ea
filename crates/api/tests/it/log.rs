//! What the tests' servers log, with the request it belongs to.
//!
//! One listener for the whole process: tests run side by side, so a line is told apart by the
//! request id that its client sent.

use std::fmt::{Debug, Write};
use std::sync::{Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

/// One event, with the fields of the spans around it.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) text: String,
}

/// Begins to listen; later calls change nothing.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let targets = Targets::new()
            .with_default(LevelFilter::INFO)
            .with_targets(["api", "payonce", "idempotency"].map(|name| (name, Level::DEBUG)));
        let listeners = vec![Listener.with_filter(targets).boxed(), api::lab::listener()];
        Registry::default().with(listeners).try_init().unwrap();
    });
}

/// All lines so far that contain `text`.
pub(crate) fn with(text: &str) -> Vec<Line> {
    let lines = LINES.lock().unwrap();
    lines.iter().filter(|line| line.text.contains(text)).cloned().collect()
}

struct Listener;

/// The fields of a span, kept with it.
struct Fields(String);

struct Writer<'a>(&'a mut String);

impl Visit for Writer<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Listener {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut text = format!("{}: ", attributes.metadata().name());
        attributes.record(&mut Writer(&mut text));
        let span = context.span(id).unwrap();
        span.extensions_mut().insert(Fields(text));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        if let Some(Fields(fields)) = span.extensions_mut().get_mut() {
            values.record(&mut Writer(fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut text = String::new();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(Fields(fields)) = span.extensions().get() {
                text.push_str(fields);
            }
        }
        event.record(&mut Writer(&mut text));
        LINES.lock().unwrap().push(Line { level: *event.metadata().level(), text });
    }
}
