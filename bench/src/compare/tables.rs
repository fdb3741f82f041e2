//! Tables of all that was measured.

use std::fmt::Write as _;

use crate::configuration::{Configuration, Driver, Work, thousands};
use crate::figures::{Figures, Measured};
use crate::results::Results;
use crate::rows::Unit;

impl Unit {
    fn number(self, value: f64) -> String {
        let shown = match self {
            Self::Bytes => value / 1e6,
            Self::KiloBytes => value / 1e3,
            _ => value,
        };
        match shown {
            _ if shown >= 1000.0 => thousands(shown.round() as u64),
            _ if shown >= 100.0 => format!("{shown:.0}"),
            _ if shown >= 10.0 => format!("{shown:.1}"),
            _ => format!("{shown:.2}"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Seconds => " s",
            Self::Bytes => " MB",
            Self::KiloBytes => " KB",
            Self::Microseconds => " µs",
            Self::Nanoseconds => " ns",
            Self::PerSecond => "/s",
        }
    }

    pub(crate) fn text(self, value: f64) -> String {
        format!("{}{}", self.number(value), self.name())
    }

    /// The median, with the least and the most that was seen.
    pub(crate) fn with_spread(self, measured: Measured) -> String {
        let (least, most) = (self.number(measured.least), self.number(measured.most));
        let median = self.text(measured.median);
        if least == most { median } else { format!("{median} ({least}..{most})") }
    }
}

/// What a column shows.
struct Column {
    title: &'static str,
    unit: Unit,
    value: fn(&Figures) -> Option<f64>,
}

const fn column(title: &'static str, unit: Unit, value: fn(&Figures) -> Option<f64>) -> Column {
    Column { title, unit, value }
}

/// Bytes that an object takes of what the process has grown by.
fn bytes_for_each(figures: &Figures) -> Option<f64> {
    Some((figures.get("sync.rss_after")? - figures.get("sync.rss_base")?) / figures.get("sync.objects")?)
}

/// Microseconds of a sync for each object.
pub(crate) fn sync_for_each(figures: &Figures) -> Option<f64> {
    Some(figures.get("sync.wall_s")? * 1e6 / figures.get("sync.objects")?)
}

/// Microseconds of CPU of a relist for each object.
pub(crate) fn relist_cpu_for_each(figures: &Figures) -> Option<f64> {
    Some(figures.get("relist.cpu_s")? * 1e6 / figures.get("sync.objects")?)
}

const SYNC: &[Column] = &[
    column("time to sync", Unit::Seconds, |figures| figures.get("sync.wall_s")),
    column("CPU", Unit::Seconds, |figures| figures.get("sync.cpu_s")),
    column("peak resident", Unit::Bytes, |figures| figures.get("sync.rss_peak")),
    column("resident after", Unit::Bytes, |figures| figures.get("sync.rss_after")),
];

const EVENTS: &[Column] = &[
    column("events", Unit::PerSecond, |figures| figures.get("events.per_s")),
    column("CPU per event", Unit::Microseconds, |figures| figures.get("events.cpu_us")),
    column("CPU of the server, whole run", Unit::Seconds, |figures| figures.get("server.cpu_s")),
];

const RELIST: &[Column] = &[
    column("time", Unit::Seconds, |figures| figures.get("relist.wall_s")),
    column("CPU", Unit::Seconds, |figures| figures.get("relist.cpu_s")),
    column("resident before", Unit::Bytes, |figures| figures.get("relist.rss_before")),
    column("peak", Unit::Bytes, |figures| figures.get("relist.rss_peak")),
    column("after", Unit::Bytes, |figures| figures.get("relist.rss_after")),
];

const LATENCY: &[Column] = &[
    column("p50", Unit::Microseconds, |figures| figures.get("latency.p50_us")),
    column("p99", Unit::Microseconds, |figures| figures.get("latency.p99_us")),
    column("longest", Unit::Microseconds, |figures| figures.get("latency.max_us")),
    column("CPU per event", Unit::Microseconds, |figures| figures.get("latency.cpu_us")),
];

const READS: &[Column] = &[
    column("get", Unit::Nanoseconds, |figures| figures.get("reads.get_ns")),
    column("namespace", Unit::Microseconds, |figures| figures.get("reads.namespace_us")),
    column("index", Unit::Microseconds, |figures| figures.get("reads.index_us")),
    column("selector", Unit::Microseconds, |figures| figures.get("reads.selector_us")),
];

const BUSY_READS: &[Column] = &[
    column("get", Unit::Nanoseconds, |figures| figures.get("reads.busy.get_ns")),
    column("namespace", Unit::Microseconds, |figures| figures.get("reads.busy.namespace_us")),
    column("index", Unit::Microseconds, |figures| figures.get("reads.busy.index_us")),
    column("selector", Unit::Microseconds, |figures| figures.get("reads.busy.selector_us")),
    column("events meanwhile", Unit::PerSecond, |figures| figures.get("reads.busy.events_per_s")),
];

const QUEUE: &[Column] = &[
    column("cycle of an item", Unit::Nanoseconds, |figures| figures.get("queue.cycle_ns")),
    column("time", Unit::Seconds, |figures| figures.get("queue.wall_s")),
    column("CPU", Unit::Seconds, |figures| figures.get("queue.cpu_s")),
];

const GROWTH: &[Column] = &[
    column("time to sync", Unit::Seconds, |figures| figures.get("sync.wall_s")),
    column("for each pod", Unit::Microseconds, sync_for_each),
    column("resident after", Unit::Bytes, |figures| figures.get("sync.rss_after")),
    column("for each pod", Unit::KiloBytes, bytes_for_each),
    column("CPU per event", Unit::Microseconds, |figures| figures.get("events.cpu_us")),
    column("CPU of a relist for each pod", Unit::Microseconds, relist_cpu_for_each),
];

const WAYS: &[Column] = &[
    column("time to sync", Unit::Seconds, |figures| figures.get("sync.wall_s")),
    column("resident after", Unit::Bytes, |figures| figures.get("sync.rss_after")),
    column("events", Unit::PerSecond, |figures| figures.get("events.per_s")),
    column("CPU per event", Unit::Microseconds, |figures| figures.get("events.cpu_us")),
];

/// All tables. `pods` is the size that most of them are about, `few` that of other ways to keep and to hear of pods.
pub(crate) fn tables(results: &Results, pods: u32, few: u32) -> String {
    let mut text = String::new();
    let at_size = |one: &Configuration| one.pods() == Some(pods);
    let ways = |one: &Configuration| one.pods() == Some(few);
    let of_queue = |one: &Configuration| matches!(one.work, Work::Queue { .. });
    let plain = |one: &Configuration| match one.work {
        Work::Informer { handler, handlers, .. } => handler == "keys" && handlers == 1 && !ways(one),
        Work::Reads { .. } => one.driver == Driver::Watchkeeper,
        Work::Queue { .. } => false,
    };
    table(&mut text, results, "Sync", SYNC, at_size);
    table(&mut text, results, "Events at full speed", EVENTS, at_size);
    table(&mut text, results, "Relist of unchanged pods", RELIST, at_size);
    table(&mut text, results, "Latency at 1,000 events a second", LATENCY, at_size);
    table(&mut text, results, "Reads, for each call", READS, at_size);
    table(&mut text, results, "Reads while events come at full speed", BUSY_READS, at_size);
    table(&mut text, results, "Work queue", QUEUE, of_queue);
    table(&mut text, results, "Other ways to keep pods, and to hear of them", WAYS, ways);
    table(&mut text, results, "Growth", GROWTH, plain);
    text
}

/// One line for each configuration that has figures for the first column.
fn table(
    text: &mut String,
    results: &Results,
    title: &str,
    columns: &[Column],
    belongs: impl Fn(&Configuration) -> bool,
) {
    let cells = |one: &Configuration| -> Vec<String> {
        let cell = |column: &Column| {
            results.computed(one, column.value).map_or_else(String::new, |measured| column.unit.with_spread(measured))
        };
        columns.iter().map(cell).collect()
    };
    let lines: Vec<_> = results.configurations().filter(|one| belongs(one)).map(|one| (one, cells(one))).collect();
    if lines.iter().all(|(_, cells)| cells[0].is_empty()) {
        return;
    }
    let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
    let _ = writeln!(text, "\n### {title}\n\n| | {} |\n|---|{}", titles.join(" | "), "---|".repeat(titles.len()));
    for (one, cells) in lines.iter().filter(|(_, cells)| !cells[0].is_empty()) {
        let _ = writeln!(text, "| {one} | {} |", cells.join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_have_their_unit() {
        let spread = |unit: Unit, least, median, most| unit.with_spread(Measured { median, least, most });
        assert_eq!(spread(Unit::Seconds, 1.6, 1.668, 1.8), "1.67 s (1.60..1.80)");
        assert_eq!(spread(Unit::Bytes, 5_691e6, 5_691e6, 5_691e6), "5,691 MB");
        assert_eq!(spread(Unit::PerSecond, 99.9, 23_600.4, 24_000.0), "23,600/s (99.9..24,000)");
    }
}
