//! What drivers print, and what several runs of one say together.

use std::collections::BTreeMap;

use serde_json::Value;

/// The figures of one run, by their path: `sync.wall_s`, `reads.busy.get_ns`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) version: String,
    numbers: BTreeMap<String, f64>,
}

impl Figures {
    /// Reads the line that a driver prints.
    pub(crate) fn parse(output: &str) -> Result<Self, String> {
        let line = output.lines().rev().find(|line| !line.trim().is_empty());
        let line = line.ok_or("it printed nothing")?;
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("it printed no JSON ({error}): {line}"))?;
        match value.get("check").and_then(Value::as_str) {
            Some("ok") => {}
            // A queue has nothing to check.
            None if value.get("queue").is_some() => {}
            other => return Err(format!("its check says {}", other.unwrap_or("nothing"))),
        }
        let mut figures = Self::default();
        figures.version.push_str(value.get("version").and_then(Value::as_str).unwrap_or_default());
        figures.collect("", &value);
        Ok(figures)
    }

    fn collect(&mut self, path: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.collect(&path, value);
                }
            }
            Value::Number(number) => {
                self.numbers.extend(number.as_f64().map(|number| (path.to_owned(), number)));
            }
            _ => {}
        }
    }

    pub(crate) fn get(&self, path: &str) -> Option<f64> {
        self.numbers.get(path).copied()
    }

    pub(crate) fn insert(&mut self, path: &str, number: f64) {
        self.numbers.insert(path.to_owned(), number);
    }
}

/// One figure of several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Measured {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) };
        Some(Self { median, least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"driver":"client-go","version":"v0.36.4","mode":"json-list","handler":"keys","handlers":1,
        "sync":{"wall_s":1.5,"rss_after":1000},"reads":{"get_ns":90,"busy":{"get_ns":120.5}},"check":"ok"}"#;

    #[test]
    fn a_line_is_read_by_path() {
        let figures = Figures::parse(&format!("{}\n", LINE.replace('\n', ""))).unwrap();
        assert_eq!(figures.version, "v0.36.4");
        assert_eq!(figures.get("sync.wall_s"), Some(1.5));
        assert_eq!(figures.get("reads.busy.get_ns"), Some(120.5));
        assert_eq!(figures.get("events.per_s"), None);
    }

    #[test]
    fn what_failed_has_no_figures() {
        let line = LINE.replace('\n', "");
        assert!(Figures::parse("").unwrap_err().contains("nothing"));
        assert!(Figures::parse("panicked").unwrap_err().contains("no JSON"));
        assert!(Figures::parse(&line.replace("\"ok\"", "\"3 objects less\"")).unwrap_err().contains("3 objects less"));
        assert!(Figures::parse(&line.replace("\"check\"", "\"other\"")).is_err(), "nothing was checked");
        assert!(Figures::parse(r#"{"driver":"client-go","queue":{"cycle_ns":700}}"#).is_ok());
    }

    #[test]
    fn medians_are_of_the_middle() {
        assert_eq!(Measured::of([3.0, 1.0, 2.0]), Some(Measured { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(Measured::of([4.0, 1.0]).map(|measured| measured.median), Some(2.5));
        assert_eq!(Measured::of([]), None);
    }
}
