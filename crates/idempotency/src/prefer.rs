//! How long a duplicate is willing to wait: `Prefer: wait=N` (RFC 7240).

use std::time::Duration;

/// What a duplicate waits for a running request when it does not say.
pub const WAIT_DEFAULT: Duration = Duration::from_secs(10);
/// The longest wait that is granted; a larger wish is cut to this.
pub const WAIT_MAX: Duration = Duration::from_secs(30);

/// The wait asked for by the `Prefer` lines of one request, in whole seconds.
///
/// `None` where there is no `wait` preference or it is malformed: RFC 7240 has
/// such preferences ignored. The first `wait` wins, as section 2 says.
pub fn wait_seconds<'v>(lines: impl IntoIterator<Item = &'v str>) -> Option<u64> {
    let preference = lines
        .into_iter()
        .flat_map(|line| line.split(','))
        .map(|item| item.split(';').next().unwrap_or_default().trim())
        .find_map(wait_value)?;
    let digits = preference.trim_matches('"');
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // More digits than a u64 holds is still "more than the most".
    Some(digits.parse::<u64>().unwrap_or(u64::MAX).min(WAIT_MAX.as_secs()))
}

fn wait_value(item: &str) -> Option<&str> {
    let (name, value) = item.split_once('=')?;
    name.trim().eq_ignore_ascii_case("wait").then(|| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_capped_or_ignored() {
        for (line, expected) in [
            ("wait=5", Some(5)),
            ("respond-async, wait=0", Some(0)),
            ("Wait = 7; x=1", Some(7)),
            ("wait=\"3\"", Some(3)),
            ("wait=31", Some(30)),
            ("wait=99999999999999999999999", Some(30)),
            ("wait=-1", None),
            ("wait=1.5", None),
            ("wait=", None),
            ("wait", None),
            ("return=minimal", None),
        ] {
            assert_eq!(wait_seconds([line]), expected, "{line}");
        }
        assert_eq!(wait_seconds(["return=minimal", "wait=2"]), Some(2));
    }
}
