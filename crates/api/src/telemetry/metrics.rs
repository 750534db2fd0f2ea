//! Every metric on one page: its name, what it says, and all the label values it can have.
//!
//! All of them exist from the first scrape on, at zero, so that an alert never waits for the
//! first fault to be able to see it. Labels are bounded: routes are patterns, and no key, account
//! or id is ever one.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::app::App;
use Kind::{Counter, Gauge, Histogram};

/// How long samples may wait to be sorted.
const KEEP_UP_EVERY: Duration = Duration::from_secs(5);
/// Why a record was not needed, or how it was used.
pub const OUTCOMES: &[&str] = &[
    "executed",
    "joined",
    "replayed_memory",
    "replayed_redis",
    "replayed_postgres",
    "in_progress",
    "reused",
    "unknown",
    "refused",
    "missing",
    "invalid",
];
/// What runs once in a while.
pub const JOBS: &[&str] = &["recover", "expire", "clock", "observe", "presses", "sweep"];
/// What a sweep removes.
pub const SWEPT: &[&str] =
    &["records", "provider_events", "deliveries", "mails", "sessions", "presses", "guests"];
/// What must never be anything but zero.
pub const INVARIANTS: &[&str] = &["double_capture", "ledger_sum", "capture_without_ledger"];
/// What waits to leave.
pub const OUTBOXES: &[&str] = &["mail", "delivery"];

enum Kind {
    Counter,
    Gauge,
    Histogram,
}

struct Metric {
    kind: Kind,
    name: &'static str,
    help: &'static str,
    /// Label and values; every combination exists from the start.
    labels: &'static [(&'static str, &'static [&'static str])],
}

const fn metric(
    kind: Kind,
    name: &'static str,
    help: &'static str,
    labels: &'static [(&'static str, &'static [&'static str])],
) -> Metric {
    Metric { kind, name, help, labels }
}

/// Upper bounds of the latency buckets, in seconds.
const BUCKETS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0];

#[rustfmt::skip]
const METRICS: &[Metric] = &[
    metric(Counter, "payonce_requests_total", "Requests answered, by route pattern and status", &[("route", &["none"]), ("status", &["404", "500"])]),
    metric(Histogram, "payonce_request_duration_seconds", "Time to the head of the answer, by route pattern", &[("route", &["none"])]),
    metric(Counter, "payonce_records_total", "Requests under a key, by what became of them", &[("outcome", OUTCOMES)]),
    metric(Counter, "payonce_answers_lost_total", "Calls of the provider whose answer was lost", &[]),
    metric(Counter, "payonce_unresolved_refused_total", "Claims refused because too many outcomes of the account were open", &[]),
    metric(Histogram, "payonce_claim_duration_seconds", "From the start of an operation to its committed intent", &[]),
    metric(Histogram, "payonce_settle_duration_seconds", "The transaction that commits outcome and reply together", &[]),
    metric(Counter, "payonce_transaction_retries_total", "Transactions run again after a conflict", &[]),
    metric(Gauge, "payonce_flights", "Keys that are executing in this process", &[]),
    metric(Counter, "payonce_presses_forgotten_total", "Repeats of a flood of keys that no page will tell of", &[]),
    metric(Counter, "payonce_cache_lookups_total", "Look-ups of finished replies", &[("cache", &["memory", "redis"]), ("result", &["hit", "miss"])]),
    metric(Counter, "payonce_cache_errors_total", "Look-ups and writes that Redis did not answer", &[]),
    metric(Gauge, "payonce_pool_connections", "Database connections of this process", &[("state", &["in_use", "open", "max"])]),
    metric(Counter, "payonce_job_rounds_total", "Rounds of the periodic jobs", &[("job", JOBS)]),
    metric(Counter, "payonce_job_failures_total", "Rounds that failed", &[("job", JOBS)]),
    metric(Gauge, "payonce_job_last_success_timestamp_seconds", "When a round last succeeded; the start of the process before the first", &[("job", JOBS)]),
    metric(Counter, "payonce_recovered_total", "Unfinished records that recovery settled", &[]),
    metric(Counter, "payonce_unknown_outcome_alarms_total", "Outcomes that stayed unknown for too many attempts", &[]),
    metric(Counter, "payonce_misdirected_payments_total", "Payments sent back because their order could not take them", &[]),
    metric(Counter, "payonce_refunds_failed_total", "Refunds that the provider refused", &[]),
    metric(Gauge, "payonce_unknown_outcomes", "Payments and refunds whose outcome is not known", &[]),
    metric(Gauge, "payonce_unknown_outcome_oldest_seconds", "Age of the oldest of them; 0 if there is none", &[]),
    metric(Gauge, "payonce_unfinished_records", "Records without a reply, running ones included", &[]),
    metric(Counter, "payonce_sweep_runs_total", "Sweeps that came to their end", &[]),
    metric(Counter, "payonce_sweep_failures_total", "Sweeps that did not", &[]),
    metric(Counter, "payonce_sweep_rows_total", "Rows removed, by what they were", &[("kind", SWEPT)]),
    metric(Histogram, "payonce_sweep_duration_seconds", "How long a sweep took", &[]),
    metric(Gauge, "payonce_sweep_lag_seconds", "How long ago the oldest record still there expired; 0 if none has", &[]),
    metric(Gauge, "payonce_table_bytes", "Size with indexes", &[("table", &["idempotency_record"])]),
    metric(Gauge, "payonce_table_rows", "Rows as the statistics have them", &[("table", &["idempotency_record"])]),
    metric(Counter, "payonce_provider_events_total", "Events of the provider, by what was made of them", &[("outcome", &["applied", "repeated", "ignored", "anomaly", "untrusted"])]),
    metric(Counter, "payonce_anomalies_total", "Events and answers of the provider that contradict what we know, and money that did not go back by itself; somebody has to look", &[]),
    metric(Gauge, "payonce_outbox_pending", "What waits to be sent", &[("outbox", OUTBOXES)]),
    metric(Gauge, "payonce_outbox_oldest_seconds", "Age of the oldest that waits; 0 if none does", &[("outbox", OUTBOXES)]),
    metric(Gauge, "payonce_outbox_dead", "What was given up", &[("outbox", OUTBOXES)]),
    metric(Gauge, "payonce_invariant_violations", "Recent money that breaks a rule that nothing may break", &[("invariant", INVARIANTS)]),
];

/// The names of all metrics.
pub fn names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|metric| metric.name)
}

/// Starts to count, once per process; later calls find the same counters.
///
/// # Errors
/// When something else in this process already takes the metrics.
pub fn install() -> anyhow::Result<&'static PrometheusHandle> {
    static HANDLE: OnceLock<Result<PrometheusHandle, BuildError>> = OnceLock::new();
    let handle = HANDLE.get_or_init(|| {
        let seconds = Matcher::Suffix("_seconds".to_owned());
        let builder = PrometheusBuilder::new().set_buckets_for_metric(seconds, BUCKETS)?;
        let handle = builder.install_recorder()?;
        METRICS.iter().for_each(Metric::register);
        keep_up(handle.clone());
        Ok(handle)
    });
    handle.as_ref().map_err(|error| anyhow::anyhow!("Metrics cannot be taken: {error}"))
}

/// Sorts samples into their buckets: they pile up until then, also where nobody reads the page.
fn keep_up(handle: PrometheusHandle) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(KEEP_UP_EVERY);
            handle.run_upkeep();
        }
    });
}

/// The page that Prometheus reads.
///
/// # Errors
/// As [`install`].
pub fn page(app: &App) -> anyhow::Result<String> {
    let handle = install()?;
    let (in_use, open, most) = app.db.usage();
    for (state, count) in [("in_use", in_use), ("open", open), ("max", most)] {
        ::metrics::gauge!("payonce_pool_connections", "state" => state).set(number(count));
    }
    ::metrics::gauge!("payonce_flights").set(number(app.flights.len()));
    handle.run_upkeep();
    Ok(handle.render())
}

/// A count as a gauge has it; exact up to nine quadrillion.
#[expect(clippy::cast_precision_loss, reason = "nothing here is that large")]
pub fn float(count: i64) -> f64 {
    count as f64
}

fn number(count: usize) -> f64 {
    float(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Adds one measured time.
pub fn took(histogram: &'static str, time: Duration) {
    ::metrics::histogram!(histogram).record(time);
}

/// A memory or Redis look-up.
pub fn looked_up(cache: &'static str, hit: bool) {
    let result = if hit { "hit" } else { "miss" };
    ::metrics::counter!("payonce_cache_lookups_total", "cache" => cache, "result" => result)
        .increment(1);
}

impl Metric {
    fn register(&self) {
        match self.kind {
            Counter => ::metrics::describe_counter!(self.name, self.help),
            Gauge => ::metrics::describe_gauge!(self.name, self.help),
            Histogram => ::metrics::describe_histogram!(self.name, self.help),
        }
        self.zero(Vec::new(), self.labels);
    }

    /// One series for every combination of the labels that are left.
    fn zero(
        &self,
        labels: Vec<::metrics::Label>,
        left: &[(&'static str, &'static [&'static str])],
    ) {
        let Some(((label, values), left)) = left.split_first() else {
            match self.kind {
                Counter => ::metrics::counter!(self.name, labels).absolute(0),
                Gauge => ::metrics::gauge!(self.name, labels).set(0.0),
                // Registered is enough: an empty histogram shows no buckets.
                Histogram => drop(::metrics::histogram!(self.name, labels)),
            }
            return;
        };
        for value in *values {
            let more = ::metrics::Label::from_static_parts(label, value);
            self.zero([labels.clone(), vec![more]].concat(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own_and_a_bounded_number_of_series() {
        let mut seen = std::collections::BTreeSet::new();
        for metric in METRICS {
            assert!(seen.insert(metric.name), "{} is there twice", metric.name);
            assert!(metric.name.starts_with("payonce_"));
            let series: usize = metric.labels.iter().map(|(_, values)| values.len()).product();
            assert!(series <= 16, "{} has {series} series", metric.name);
        }
    }
}
