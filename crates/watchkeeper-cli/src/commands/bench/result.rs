//! What was measured, in words and as JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::child::{Done, Sync};
use crate::terminal::{bytes, count, escape_text, seconds};

/// One run.
pub(super) struct Measured {
    pub(super) sync: Sync,
    pub(super) done: Done,
    /// How long it took to make the changes, if all were made.
    pub(super) changed: Option<Duration>,
}

/// What was measured, and where.
pub(super) struct Setting {
    pub(super) kind: String,
    pub(super) place: String,
    pub(super) keep: String,
    pub(super) handlers: u16,
    /// How many changes were made, if they were made here.
    pub(super) made: Option<u32>,
    pub(super) rate: u32,
    pub(super) observed: Duration,
}

/// For people. Nothing is told that was not measured.
pub(super) fn text(setting: &Setting, runs: &[Measured]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let mut lines = Vec::new();
    let handlers = if setting.handlers == 1 { "1 handler".into() } else { format!("{} handlers", setting.handlers) };
    let times = match runs.len() {
        1 => "measured once, in a process of its own".to_owned(),
        number => format!("{number} runs, each in a process of its own"),
    };
    lines.push(format!("{} of {}, kept {}, with {handlers}; {times}", setting.kind, setting.place, setting.keep));
    if cfg!(debug_assertions) {
        lines.push("This is a debug build: its times mean little.".to_owned());
    }
    let objects = middle(runs, |run| Some(run.sync.objects)).unwrap_or(0);
    let json = middle(runs, |run| run.done.json.checked_div(run.done.objects));
    let each = json.map(|json| format!(", {} of JSON each", bytes(json))).unwrap_or_default();
    lines.push(format!("objects          {}{each}", count(objects)));
    lines.push(format!("time to sync     {}", sync_time(first, runs, objects)));
    if let Some(cpu) = middle(runs, |run| run.sync.cpu) {
        lines.push(format!("CPU of the sync  {}, packing included", seconds(cpu)));
    }
    lines.push(format!("resident memory  {}", memory(runs, objects)));
    if let Some(kept) = middle(runs, |run| run.done.kept.checked_div(run.done.objects)) {
        // It counts bodies, packed or raw; nobody can count what a decoded object takes.
        let without = if setting.keep == "decoded" { ", without what is decoded" } else { "" };
        lines.push(format!("kept             {} for each object by the library's own count{without}", bytes(kept)));
    }
    lines.extend(events(setting, runs));
    if runs.len() > 1 {
        lines.push(format!("Where one number stands for {} runs, it is the median.", runs.len()));
    }
    lines.iter().map(|line| format!("{}\n", escape_text(line))).collect()
}

/// For machines: each run by itself.
pub(super) fn json(setting: &Setting, runs: &[Measured]) -> String {
    let time = |time: Duration| time.as_secs_f64();
    let run = |run: &Measured| {
        json!({
            "objects": run.sync.objects,
            "syncSeconds": time(run.sync.time),
            "syncCpuSeconds": run.sync.cpu.map(time),
            "residentBytesBefore": run.sync.resident_before,
            "residentBytes": run.sync.resident,
            "peakResidentBytes": run.sync.peak,
            "jsonBytes": run.done.json,
            "keptBytes": run.done.kept,
            "eventsHeard": run.done.events,
            "changesSeconds": run.changed.map(time),
            "eventsSeconds": time(run.done.time),
            "eventsCpuSeconds": run.done.cpu.map(time),
            "latencyP50Seconds": run.done.latency.map(|(p50, _)| time(p50)),
            "latencyP99Seconds": run.done.latency.map(|(_, p99)| time(p99)),
        })
    };
    let document = json!({
        "kind": setting.kind, "cluster": setting.place, "keep": setting.keep, "handlers": setting.handlers,
        "eventsMade": setting.made, "debugBuild": cfg!(debug_assertions),
        "runs": runs.iter().map(run).collect::<Vec<Value>>(),
    });
    format!("{}\n", crate::terminal::escape_json(&format!("{document:#}")))
}

fn sync_time(first: &Measured, runs: &[Measured], objects: u64) -> String {
    let middle = middle(runs, |run| Some(run.sync.time)).unwrap_or_default();
    let per_second = objects as f64 / middle.as_secs_f64().max(1e-9);
    let per_second = format!("{} objects a second", count(per_second as u64));
    let (least, most) = runs
        .iter()
        .map(|run| run.sync.time)
        .fold((Duration::MAX, Duration::ZERO), |(least, most), time| (least.min(time), most.max(time)));
    match runs.len() {
        1 => format!("{}; {per_second}", seconds(middle)),
        _ => format!(
            "{} ({} the first time, {} to {} in all); {per_second}",
            seconds(middle),
            seconds(first.sync.time),
            seconds(least),
            seconds(most)
        ),
    }
}

fn memory(runs: &[Measured], objects: u64) -> String {
    let before = middle(runs, |run| run.sync.resident_before);
    let (Some(before), Some(after)) = (before, middle(runs, |run| run.sync.resident)) else {
        return "not measured on this system".to_owned();
    };
    let peak = match middle(runs, |run| run.sync.peak) {
        Some(peak) => format!("; at most {}", bytes(peak)),
        None => "; its peak is not measured on this system".to_owned(),
    };
    let each = after.saturating_sub(before).checked_div(objects);
    let each = each.map(|each| format!(", {} more for each object", bytes(each))).unwrap_or_default();
    format!("{} before, {} after{each}{peak}", bytes(before), bytes(after))
}

fn events(setting: &Setting, runs: &[Measured]) -> Vec<String> {
    let heard = middle(runs, |run| Some(run.done.events)).unwrap_or(0);
    let mut lines = vec![match (setting.handlers, setting.made) {
        (0, _) => "events           nobody listened".to_owned(),
        (_, Some(made)) => format!(
            "events           {} made, {} a second; {} heard",
            count(made.into()),
            count(rate(setting, runs, made)),
            count(heard)
        ),
        (_, None) => format!("events           {} heard in {}", count(heard), seconds(setting.observed)),
    }];
    if heard == 0 {
        return lines;
    }
    lines.push(match middle(runs, |run| run.done.cpu) {
        Some(cpu) => {
            let each = cpu.as_secs_f64() * 1e6 / heard as f64;
            format!(
                "CPU of an event  {each:.0} µs: {} for all, program and kernel, to a hundredth of a second",
                seconds(cpu)
            )
        }
        None => "CPU of an event  not measured on this system".to_owned(),
    });
    let p50 = middle(runs, |run| run.done.latency.map(|(p50, _)| p50));
    let p99 = middle(runs, |run| run.done.latency.map(|(_, p99)| p99));
    if let (Some(p50), Some(p99)) = (p50, p99) {
        let millis = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
        lines.push(format!("latency          {} p50, {} p99, from the write to the handler", millis(p50), millis(p99)));
    }
    lines
}

/// How many changes were made in a second: what was asked for, or as many as this machine could make.
fn rate(setting: &Setting, runs: &[Measured], made: u32) -> u64 {
    let asked = f64::from(setting.rate);
    let took = middle(runs, |run| run.changed).unwrap_or_default().as_secs_f64();
    (f64::from(made) / took.max(1e-9)).min(asked).round() as u64
}

/// The median of what was measured.
fn middle<T: Ord>(runs: &[Measured], of: impl Fn(&Measured) -> Option<T>) -> Option<T> {
    let mut all: Vec<T> = runs.iter().filter_map(of).collect();
    all.sort_unstable();
    let at = all.len() / 2;
    all.into_iter().nth(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(millis: u64, cpu: Option<Duration>) -> Measured {
        let time = Duration::from_millis(millis);
        let sync = Sync { objects: 100, time, cpu, resident_before: Some(10_000), resident: Some(110_000), peak: None };
        let latency = cpu.map(|_| (Duration::from_micros(200), Duration::from_micros(900)));
        let done = Done { events: 10, time, cpu, latency, json: 500_000, kept: 70_000, objects: 100 };
        Measured { sync, done, changed: Some(Duration::from_secs(5)) }
    }

    fn setting(made: Option<u32>) -> Setting {
        let place = "here\x1b[2J".to_owned();
        let (kind, keep) = ("pods".to_owned(), "packed".to_owned());
        Setting { kind, place, keep, handlers: 1, made, rate: 5, observed: Duration::from_secs(10) }
    }

    #[test]
    fn the_median_the_first_and_the_range_are_told() {
        let runs = [run(300, None), run(100, None), run(200, None)];
        let text = text(&setting(Some(10)), &runs);
        assert!(
            text.contains("200 ms (300 ms the first time, 100 ms to 300 ms in all); 500 objects a second"),
            "{text}"
        );
        assert!(text.contains("3 runs") && text.contains("median"), "{text}");
        assert!(text.contains("1.0 kB more for each object") && text.contains("5.0 kB of JSON each"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_not_told() {
        let without = text(&setting(None), &[run(100, None)]);
        assert!(
            without.contains("CPU of an event  not measured") && without.contains("peak is not measured"),
            "{without}"
        );
        assert!(
            !without.contains("latency") && !without.contains("median") && without.contains("heard in 10.0 s"),
            "{without}"
        );
        let with = text(&setting(Some(10)), &[run(100, Some(Duration::from_millis(1)))]);
        assert!(with.contains("10 made, 2 a second"), "five were asked for, and two were made: {with}");
        assert!(with.contains("100 µs") && with.contains("0.20 ms p50, 0.90 ms p99"), "{with}");
    }
}
