//! A point in time as the pages write it: UTC, and only as exact as the reader needs.

use time::OffsetDateTime;
use time::UtcOffset;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// A time that knows the few ways in which a page writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(OffsetDateTime);

impl Moment {
    /// `2026-11-29T10:42:07Z`, for `datetime="…"`.
    pub(super) fn iso(self) -> String {
        self.0.format(&Rfc3339).expect("a UTC time of our era")
    }

    /// `10:42`
    pub(super) fn minute(self) -> String {
        self.write(format_description!("[hour]:[minute]"))
    }

    /// `10:42:07`
    pub(super) fn clock(self) -> String {
        self.write(format_description!("[hour]:[minute]:[second]"))
    }

    /// `10:42:07.006`
    pub(super) fn millis(self) -> String {
        self.write(format_description!("[hour]:[minute]:[second].[subsecond digits:3]"))
    }

    /// `29 Nov 2026, 10:42`
    pub(super) fn day_minute(self) -> String {
        self.write(format_description!(
            "[day padding:none] [month repr:short] [year], [hour]:[minute]"
        ))
    }

    fn write(self, form: &[time::format_description::BorrowedFormatItem<'_>]) -> String {
        self.0.format(form).expect("the parts of a date and time")
    }
}

impl From<OffsetDateTime> for Moment {
    fn from(time: OffsetDateTime) -> Self {
        Self(time.to_offset(UtcOffset::UTC))
    }
}
