//! RESULTS.md.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::bounds::bounds;
use crate::configuration::{Driver, thousands};
use crate::plan::{DECODE_PODS, PODS, Peer};
use crate::results::Results;
use crate::rows::{Row, main_rows, rows_ahead};
use crate::tables::tables;

/// What people write stands between two of these, and stays.
const NOTES: &str = "<!-- notes -->";

const FIRST_NOTES: &str = "

## Why a floor was lowered

None was.

";

/// The whole file. `before` is what it was.
pub(crate) fn report(results: &Results, rounds: usize, before: &str) -> String {
    let mut text = String::from("# watchkeeper, kube-rs and client-go side by side\n\n");
    text.push_str("Written by `cargo xtask bench`. What stands between the marks for notes stays from run to run.\n\n");
    let _ = writeln!(text, "- {}\n- {}\n- {}, {rounds} rounds", versions(results), machine(), date());
    text.push_str(HOW_TO_READ);
    targets(&mut text, results);
    alone(&mut text, results);
    let notes = before.split(NOTES).nth(1).unwrap_or(FIRST_NOTES);
    let _ = writeln!(text, "\n{NOTES}{notes}{NOTES}");
    let _ = writeln!(
        text,
        "\n## All that was measured\n\n100,000 pods, if nothing else is said. `reads` has an index by a field, besides that by namespace."
    );
    text.push_str(&tables(results, PODS, DECODE_PODS));
    let failures: Vec<_> = results.failures().collect();
    if !failures.is_empty() {
        text.push_str("\n### What failed\n\n");
        for (configuration, times, of, error) in failures {
            let _ = writeln!(text, "- {configuration}: {times} of {of} times. The last time: `{error}`");
        }
    }
    text
}

const HOW_TO_READ: &str = "
A figure is the median of all rounds, with the least and the most behind it. Rounds are interleaved: each configuration
runs once, then each again. A ratio says how many times better watchkeeper is than the better of a peer's modes; absolute
times depend on the machine, ratios hardly. Pods have 7.7 KB of JSON and keep their managedFields, if nothing else is said.
Events are MODIFIED over 10,000 pods: 100,000 of them, but 20,000 for kube-rs and 5,000 for client-go with JSON, which take long;
what is compared is the time of one.
What each driver does is said in [README.md](README.md).

![Resident memory by number of pods](plots/memory.svg)
![Time to sync by number of pods](plots/sync.svg)
";

fn targets(text: &mut String, results: &Results) {
    text.push_str("\n## Against the peers\n\n| | watchkeeper |");
    for peer in Peer::ALL {
        let _ = write!(text, " {} |", peer.name());
    }
    let _ = writeln!(text, "\n|---|---|{}", "---|".repeat(Peer::ALL.len()));
    for row in main_rows(PODS, DECODE_PODS).into_iter().chain(rows_ahead(PODS)) {
        target(text, results, &row);
    }
}

/// A line: ours, and for each peer its figure, the ratio, and whether the target is reached.
fn target(text: &mut String, results: &Results, row: &Row) {
    let Some((ours, compared)) = row.compare(results) else {
        let _ = writeln!(text, "| {} | not measured |{}", row.title, " |".repeat(Peer::ALL.len()));
        return;
    };
    let _ = write!(text, "| {} | {} |", row.title, row.unit.with_spread(ours));
    for peer in Peer::ALL {
        let Some(one) = compared.iter().find(|one| one.peer == peer) else {
            text.push_str(" |");
            continue;
        };
        let reached = if one.ratio >= one.target { "reached" } else { "**not reached**" };
        let (mode, theirs) = (one.configuration.mode(), row.unit.with_spread(one.theirs));
        let _ = write!(text, " {theirs}, {mode}: **{:.1}x**, target {}x {reached} |", one.ratio, one.target);
    }
    text.push('\n');
}

fn alone(text: &mut String, results: &Results) {
    text.push_str("\n## By itself\n\n| | value | at most | |\n|---|---|---|---|\n");
    for bound in bounds(results) {
        let kept = match bound.kept() {
            Some(true) => "reached",
            Some(false) => "**not reached**",
            None => "",
        };
        let (value, most) = (bound.text(bound.value), bound.text(bound.at_most));
        let _ = writeln!(text, "| {} | {value} | {most} | {kept} |", bound.title);
    }
}

fn versions(results: &Results) -> String {
    let version = |driver: Driver| {
        let known = results.configurations().filter(|one| one.driver == driver);
        let version = known.filter_map(|one| results.version(one)).find(|version| !version.is_empty());
        version.map(|version| format!("{driver} {version}"))
    };
    let drivers = [Driver::Watchkeeper, Driver::KubeRs, Driver::ClientGo].into_iter().filter_map(version);
    let compilers = [("rustc", "--version"), ("go", "version")].into_iter().filter_map(|(program, argument)| {
        let output = std::process::Command::new(program).arg(argument).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    });
    drivers.chain(compilers).collect::<Vec<_>>().join("; ")
}

fn machine() -> String {
    let field = |path: &str, name: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = field("/proc/meminfo", "MemTotal").and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok());
    let memory = memory.map_or_else(String::new, |kilobytes| format!(", {} MB of memory", thousands(kilobytes / 1024)));
    format!("{processor}, {cores} cores{memory}, {}", std::env::consts::OS)
}

/// Today, in UTC.
fn date() -> String {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
    let (year, month, day) = civil(days);
    format!("{year}-{month:02}-{day:02}")
}

/// The date so many days after 1970-01-01.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::plan::ours;

    fn results() -> Results {
        let mut results = Results::default();
        let mut add = |configuration, seconds| {
            let mut figures = Figures::default();
            figures.insert("sync.wall_s", seconds);
            results.add(configuration, Ok(figures));
        };
        add(ours(PODS), 2.0);
        add(Peer::KubeRs.keys(PODS)[1], 18.0);
        add(Peer::ClientGoJson.keys(PODS)[0], 24.0);
        results.add(Peer::KubeRs.keys(PODS)[0], Err("it broke".to_owned()));
        results
    }

    #[test]
    fn targets_are_reached_or_not() {
        let report = report(&results(), 1, "");
        assert!(report.contains("18.0 s, stream: **9.0x**, target 10x **not reached**"), "{report}");
        assert!(report.contains("24.0 s, json-list: **12.0x**, target 10x reached"), "{report}");
        assert!(report.contains("1 of 1 times. The last time: `it broke`"), "{report}");
    }

    #[test]
    fn notes_stay() {
        let first = report(&results(), 1, "");
        assert!(first.contains("Why a floor was lowered"));
        let edited = first.replace("None was.", "Pods have become larger.");
        let second = report(&Results::default(), 3, &edited);
        assert!(second.contains("## Why a floor was lowered\n\nPods have become larger.\n"), "{second}");
        assert_eq!(second.matches(NOTES).count(), 2);
    }

    #[test]
    fn days_are_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(20_512), (2026, 2, 28));
        assert_eq!(civil(20_513), (2026, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
    }
}
