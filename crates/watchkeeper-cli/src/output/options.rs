//! What do the flags say about the output?

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Format, SortBy};

/// How a [`Printer`](super::Printer) prints.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrintOptions {
    /// The form.
    pub(crate) format: Format,
    /// No header above rows.
    pub(crate) no_headers: bool,
    /// Names with their kind, for several kinds at once.
    pub(crate) show_kind: bool,
    /// A column for the namespace (`-A`).
    pub(crate) show_namespace: bool,
    /// A column with all labels.
    pub(crate) show_labels: bool,
    /// A column for each of these labels (`-L`).
    pub(crate) label_columns: Vec<String>,
    /// What a listing, and the first objects of a watch, are sorted by; otherwise by namespace and name.
    pub(crate) sort_by: Option<SortBy>,
    /// How the time of a change is written for people.
    pub(crate) times: Times,
    /// JSON and YAML of a watch have `type` and `object`, as kubectl's `--output-watch-events`.
    pub(crate) output_watch_events: bool,
    /// Show every change, also those of which nobody sees anything: versions, managed fields, heartbeats.
    pub(crate) all_changes: bool,
    /// JSON and YAML have `metadata.managedFields`, which are left out otherwise, as in kubectl. Lines of JSON, and what
    /// jsonpaths look at, have them in any case.
    pub(crate) show_managed_fields: bool,
    /// Show the values of secrets.
    pub(crate) show_secrets: bool,
    /// Paint.
    pub(crate) color: bool,
    /// The output is a terminal: what a jsonpath finds is escaped there, and exact elsewhere.
    pub(crate) terminal: bool,
    /// The columns of the terminal, if there is one: long values in a diff are cut to it.
    pub(crate) width: Option<usize>,
}

/// How the time of a change is written for people. In lines of JSON it is UTC in any case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Times {
    /// The time of day in this zone: `12:03:04.123`.
    In(TimeZone),
    /// Date and time in UTC: `2026-11-16T11:03:04.123Z`.
    Utc,
    /// Not at all.
    Hidden,
}

impl Default for Times {
    /// The zone of this machine.
    fn default() -> Self {
        Self::In(TimeZone::system())
    }
}

impl Times {
    /// The header of the times; it is as wide as they are.
    pub(super) fn header(&self) -> &'static str {
        match self {
            Self::In(_) => "TIME         ",
            Self::Utc => "TIME                     ",
            Self::Hidden => "",
        }
    }

    /// A time, with the space behind it.
    pub(super) fn show(&self, time: Timestamp) -> String {
        match self {
            Self::In(zone) => format!("{} ", time.to_zoned(zone.clone()).strftime("%H:%M:%S.%3f")),
            Self::Utc => format!("{time:.3} "),
            Self::Hidden => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_as_wide_as_times() -> Result<(), jiff::Error> {
        let time: Timestamp = "2026-11-16T11:03:04.1239Z".parse()?;
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        assert_eq!(Times::In(zone.clone()).show(time), "12:03:04.123 ");
        assert_eq!(Times::Utc.show(time), "2026-11-16T11:03:04.123Z ");
        for times in [Times::In(zone), Times::Utc, Times::Hidden] {
            assert_eq!(times.header().len(), times.show(time).len());
        }
        Ok(())
    }
}
