//! When the periodic sweep runs: a cron expression, and hours in which it rests.

use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Timelike as _, Utc};
use croner::Cron;
use time::OffsetDateTime;

/// A schedule in UTC.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    quiet: Option<Quiet>,
}

/// Hours of the day: from the first to before the second, over midnight if that is earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet {
    from: u32,
    until: u32,
}

impl FromStr for Quiet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hours = text.split_once('-').and_then(|(from, until)| {
            Some((from.trim().parse().ok()?, until.trim().parse().ok()?))
        });
        match hours {
            Some((from @ 0..=23, until @ 0..=23)) if from != until => Ok(Self { from, until }),
            _ => Err("write two different hours from 0 to 23, as in 11-14".to_owned()),
        }
    }
}

impl Quiet {
    fn holds(self, hour: u32) -> bool {
        match self.from < self.until {
            true => (self.from..self.until).contains(&hour),
            false => hour >= self.from || hour < self.until,
        }
    }
}

impl Schedule {
    /// From a cron expression of five fields, in UTC.
    ///
    /// # Errors
    /// A sentence that says how to write one.
    pub fn new(cron: &str, quiet: Option<Quiet>) -> Result<Self, String> {
        let cron = Cron::from_str(cron).map_err(|error| {
            format!("{cron:?} is no cron expression ({error}): write it as `0 * * * *`")
        })?;
        Ok(Self { cron, quiet })
    }

    /// How long until the next run; `None` if there is none, ever.
    pub fn wait(&self, now: OffsetDateTime) -> Option<Duration> {
        let now = DateTime::<Utc>::from_timestamp(now.unix_timestamp(), now.nanosecond())?;
        let mut at = now;
        // As many tries as a week has minutes: an expression that meets quiet hours only ends here.
        for _ in 0..10_080 {
            at = self.cron.find_next_occurrence(&at, false).ok()?;
            if self.quiet.is_none_or(|quiet| !quiet.holds(at.hour())) {
                return (at - now).to_std().ok();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn minutes(cron: &str, quiet: Option<&str>) -> Option<u64> {
        let quiet = quiet.map(|hours| hours.parse().unwrap());
        let wait = Schedule::new(cron, quiet).unwrap().wait(datetime!(2026-01-01 10:30 UTC));
        wait.map(|wait| wait.as_secs() / 60)
    }

    #[test]
    fn an_hourly_sweep_waits_for_the_hour_and_rests_in_quiet_ones() {
        assert_eq!(minutes("0 * * * *", None), Some(30));
        assert_eq!(minutes("0 * * * *", Some("11-14")), Some(3 * 60 + 30));
        assert_eq!(minutes("0 * * * *", Some("22-12")), Some(90));
        assert_eq!(minutes("0 12 * * *", Some("11-14")), None);
    }

    #[test]
    fn what_is_no_schedule_says_how_to_write_one() {
        assert!(Schedule::new("every hour", None).unwrap_err().contains("0 * * * *"));
        for hours in ["", "11", "11-24", "5-5", "a-b"] {
            assert!(hours.parse::<Quiet>().is_err(), "{hours}");
        }
    }
}
