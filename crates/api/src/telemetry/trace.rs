//! W3C trace context: taken from the request, written on its span, passed on to the provider.

use std::future::Future;

use actix_web::http::header::HeaderMap;

/// The header, in and out.
pub const TRACEPARENT: &str = "traceparent";

tokio::task_local! {
    static CURRENT: Trace;
}

/// One trace: an id that every part of a distributed request shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    id: [u8; 16],
    sampled: bool,
}

impl Trace {
    /// The caller's trace, or a new one. A malformed header is no header.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut given = headers.get_all(TRACEPARENT);
        match (given.next().and_then(|value| value.to_str().ok()).and_then(parse), given.next()) {
            (Some(trace), None) => trace,
            _ => Self { id: rand::random(), sampled: false },
        }
    }

    /// The id in hex, as logs have it.
    pub fn id(self) -> String {
        hex::encode(self.id)
    }

    /// Runs `work` as a part of this trace.
    pub async fn cover<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }

    /// The trace of the running work, if it has one.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|trace| *trace).ok()
    }

    /// The header for a call that is a step of its own in this trace.
    pub fn header(self) -> String {
        let step = hex::encode(rand::random::<[u8; 8]>());
        format!("00-{}-{step}-{:02x}", self.id(), u8::from(self.sampled))
    }
}

/// `00-<trace id>-<parent id>-<flags>`; later versions may have more behind it.
fn parse(value: &str) -> Option<Trace> {
    let mut parts = value.trim().split('-');
    let (version, id) = (bytes::<1>(parts.next()?)?, bytes::<16>(parts.next()?)?);
    let (parent, flags) = (bytes::<8>(parts.next()?)?, bytes::<1>(parts.next()?)?);
    let ends = version != [0] || parts.next().is_none();
    let valid = version != [0xff] && id != [0; 16] && parent != [0; 8] && ends;
    valid.then_some(Trace { id, sampled: flags[0] & 1 == 1 })
}

/// Lower case only, as the standard has it.
fn bytes<const N: usize>(hex_digits: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let lower = !hex_digits.bytes().any(|digit| digit.is_ascii_uppercase());
    (lower && hex::decode_to_slice(hex_digits, &mut bytes).is_ok()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_trace_goes_on_under_its_id_with_a_step_of_its_own() {
        let trace = parse(&format!("00-{ID}-00f067aa0ba902b7-01")).unwrap();
        let passed_on = trace.header();
        assert_eq!(parse(&passed_on), Some(trace));
        assert!(!passed_on.contains("00f067aa0ba902b7"));
        assert_ne!(passed_on, trace.header());
    }

    #[test]
    fn what_the_standard_forbids_is_no_trace() {
        for value in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parse(value), None, "{value}");
        }
        assert!(parse(&format!("01-{ID}-00f067aa0ba902b7-00-more")).is_some());
    }
}
