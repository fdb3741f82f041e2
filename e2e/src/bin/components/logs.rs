//! What the components say: errors, and which of them are usual.

use std::collections::BTreeMap;
use std::fmt;

use crate::stage::Kind;

/// What components log as errors on a real API server too, by a name for it.
const USUAL: [(&str, &str); 5] = [
    ("deletions of what had changed", "does not match the ResourceVersion in record"),
    ("writers that met", "the object has been modified; please apply your changes to the latest version"),
    ("caches behind their controller's own writes", "is not as new as written version"),
    ("leases that two wanted", "Error initially creating lease lock"),
    // Of a file that nobody named.
    ("empty manifests", "The manifest file is empty, ignoring."),
];

/// What all logs of a stage say.
#[derive(Debug, Default)]
pub(super) struct Logs {
    logs: usize,
    lines: usize,
    usual: BTreeMap<&'static str, usize>,
    /// What should not be there.
    pub(super) problems: Vec<String>,
}

impl Logs {
    /// Reads the log of a component.
    pub(super) fn read(&mut self, name: &str, log: &str, kind: Kind) {
        self.logs += 1;
        self.lines += log.lines().count();
        for line in log.lines().filter(|line| is_error(line)) {
            match usual(line, kind) {
                Some(name) => *self.usual.entry(name).or_default() += 1,
                None => self.problems.push(format!("{name}: {line}")),
            }
        }
    }
}

/// `E1118 00:25:24.123456 ...`, or a panic of Go's or Rust's.
fn is_error(line: &str) -> bool {
    let day = line.as_bytes().get(1..5);
    let is_logged = line.starts_with(['E', 'F']) && day.is_some_and(|day| day.iter().all(u8::is_ascii_digit));
    is_logged || line.starts_with("panic:") || line.contains("panicked at")
}

fn usual(line: &str, kind: Kind) -> Option<&'static str> {
    let found = USUAL.iter().find(|(_, text)| line.contains(text)).map(|(name, _)| *name);
    // One of the controllers deletes what another is about to write. And if our server collects too, things are gone while any
    // of them still looks at them.
    let is_gone = line.contains("not found") && (kind == Kind::Both || is_failed_sync(line));
    found.or_else(|| is_gone.then_some("things that were gone already"))
}

/// `sync "namespace/name" failed with replicasets.apps "name" not found`: what was to be written is what has gone.
fn is_failed_sync(line: &str) -> bool {
    let Some((before, after)) = line.split_once("failed with ") else { return false };
    let synced = before.trim_end_matches([' ', '\\', '"']).rsplit('/').next().unwrap_or_default();
    !synced.is_empty() && after.contains(&format!("{synced}\\\" not found"))
}

impl fmt::Display for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} logs, {} lines, nothing unusual", self.logs, self.lines)?;
        let usual: Vec<String> = self.usual.iter().map(|(name, count)| format!("{count} {name}")).collect();
        if usual.is_empty() { Ok(()) } else { write!(f, " ({})", usual.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_while_it_is_synced_is_usual_and_what_it_needs_is_not() {
        let line = |gone: &str| {
            format!(
                "E1118 05:23:37.3 1 replica_set.go:640] \"Unhandled Error\" err=\"sync \\\"shop/web-6d9ccd7fc4\\\" failed with \
                 replicasets.apps \\\"{gone}\\\" not found\" logger=\"UnhandledError\""
            )
        };
        assert_eq!(usual(&line("web-6d9ccd7fc4"), Kind::Ours), Some("things that were gone already"));
        assert_eq!(usual(&line("other"), Kind::Ours), None);
    }

    #[test]
    fn errors_count_unless_they_are_usual() {
        let log = "I1118 01:07:20.1 1 a.go:1] \"Failed\"\nError: no line of a log\n\
                   E1118 01:07:20.1 1 b.go:1] read version: 1 is not as new as written version: 2\n\
                   E1118 01:07:20.1 1 c.go:1] pods \"a\" not found\npanic: runtime error\n";
        let mut logs = Logs::default();
        logs.read("one", log, Kind::Both);
        assert_eq!(logs.problems, ["one: panic: runtime error"]);
        logs.read("two", log, Kind::Ours);
        assert_eq!(logs.problems.len(), 3);
        assert_eq!(
            logs.to_string(),
            "2 logs, 10 lines, nothing unusual (2 caches behind their controller's own writes, 1 things that were gone already)"
        );
    }
}
