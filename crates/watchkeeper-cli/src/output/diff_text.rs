//! How are changed fields shown?
//!
//! A line for each, under the line that names the object:
//!
//! ```text
//! 12:03:04.123 MODIFIED deployment.apps/web
//!   ~ spec.replicas: 3 -> 5
//!   + metadata.labels.tier: "web"
//!   - spec.paused: true
//! ```

use serde_json::Value;

use super::diff::{Difference, Segment, differences};
use super::documents::compact;
use super::{Resource, noise};
use crate::terminal::{cut, escape_text, styles, width};

/// So much of a value is shown on the narrowest terminal.
const NARROWEST: usize = 20;

/// The lines of what changed between two states, without those that say nothing, unless all are asked for.
pub(super) fn lines(
    resource: &Resource,
    old: &Value,
    new: &Value,
    all: bool,
    columns: Option<usize>,
    color: bool,
) -> Vec<String> {
    let noise = noise::paths(resource);
    let shown = |difference: &Difference<'_>| all || !is_noise(&difference.path, &noise);
    differences(old, new)
        .iter()
        .filter(|difference| shown(difference))
        .map(|difference| line(difference, columns, color))
        .collect()
}

/// A path as a person reads it, and jsonpath nearly does: `spec.containers[name=web].image`.
pub(super) fn path_text(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Index(at) => text.push_str(&format!("[{at}]")),
            Segment::Named(names) => {
                let names: Vec<String> = names.iter().map(|(field, value)| format!("{field}={value}")).collect();
                text.push_str(&format!("[{}]", names.join(",")));
            }
            Segment::Field(name) if is_word(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Segment::Field(name) => text.push_str(&format!("['{name}']")),
        }
    }
    escape_text(&text).into_owned()
}

fn line(difference: &Difference<'_>, columns: Option<usize>, color: bool) -> String {
    let path = path_text(&difference.path);
    let (sign, style) = match (difference.old, difference.new) {
        (None, _) => ('+', styles::ADDED),
        (_, None) => ('-', styles::DELETED),
        _ => ('~', styles::MODIFIED),
    };
    // What servers keep about who wrote what is long, and never read.
    let values = if difference.path.get(1) == Some(&Segment::Field("managedFields".to_owned())) {
        String::new()
    } else {
        let room = columns.map(|columns| columns.saturating_sub(width(&path) + 6));
        format!(": {}", values(difference.old, difference.new, room))
    };
    match color {
        true => format!("  {style}{sign}{style:#} {path}{values}"),
        false => format!("  {sign} {path}{values}"),
    }
}

fn values(old: Option<&Value>, new: Option<&Value>, room: Option<usize>) -> String {
    match (old.map(compact), new.map(compact)) {
        (Some(old), Some(new)) => {
            // Four columns are the arrow's.
            let room = room.map(|room| (room.saturating_sub(4) / 2).max(NARROWEST));
            let (old, new) = apart(&old, &new, room);
            format!("{old} -> {new}")
        }
        (one, other) => {
            let text = one.or(other).unwrap_or_default();
            room.map_or(text.clone(), |room| cut(&text, room.max(NARROWEST)).into_owned())
        }
    }
}

/// Two texts cut to the room that each has. Where both begin alike, what they share is cut first, so that the difference
/// is in what is shown.
fn apart(old: &str, new: &str, room: Option<usize>) -> (String, String) {
    let Some(room) = room else { return (old.to_owned(), new.to_owned()) };
    let same = old.char_indices().zip(new.chars()).find(|((_, old), new)| old != new);
    let same = same.map_or(old.len().min(new.len()), |((at, _), _)| at);
    let skip = if same + 4 > room && width(old).max(width(new)) > room {
        // A little of what is shared stays, to be recognised by.
        old.char_indices().map(|(at, _)| at).take_while(|at| at + 8 <= same).last().unwrap_or(0)
    } else {
        0
    };
    let show = |text: &str| match skip {
        0 => cut(text, room).into_owned(),
        skip => format!("…{}", cut(text.get(skip..).unwrap_or_default(), room.saturating_sub(1))),
    };
    (show(old), show(new))
}

/// Paths that are noise, and counters that only say that something else changed.
fn is_noise(path: &[Segment], noise: &[&[&str]]) -> bool {
    let begins = |expected: &[&str]| {
        path.len() >= expected.len()
            && expected
                .iter()
                .zip(path)
                .all(|(name, segment)| matches!(segment, Segment::Field(field) if field == name))
    };
    let last = matches!(path.last(), Some(Segment::Field(field)) if field == "observedGeneration");
    noise.iter().any(|expected| begins(expected)) || begins(&["metadata", "generation"]) || begins(&["status"]) && last
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|character| character.is_alphanumeric() || matches!(character, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::samples;
    use super::*;

    fn shown(old: Value, new: Value, columns: Option<usize>) -> Vec<String> {
        lines(&samples::deployments(), &old, &new, false, columns, false)
    }

    #[test]
    fn counters_and_managers_are_left_out_unless_asked_for() {
        let old = json!({"metadata": {"generation": 1, "resourceVersion": "1", "managedFields": [1]}, "status": {"observedGeneration": 1}});
        let new = json!({"metadata": {"generation": 2, "resourceVersion": "2", "managedFields": [2]}, "status": {"observedGeneration": 2}});
        assert!(shown(old.clone(), new.clone(), None).is_empty());
        let all = lines(&samples::deployments(), &old, &new, true, None, false);
        let expected = [
            "  ~ metadata.generation: 1 -> 2",
            "  ~ metadata.managedFields[0]",
            "  ~ metadata.resourceVersion: \"1\" -> \"2\"",
            "  ~ status.observedGeneration: 1 -> 2",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn long_values_are_cut_on_a_terminal_only() {
        let long = |end: &str| json!({"data": format!("{}{end}", "x".repeat(200))});
        let cut = shown(long("one"), long("two"), Some(60));
        assert_eq!(cut, ["  ~ data: …xxxxxxxxone\" -> …xxxxxxxxtwo\""]);
        let whole = shown(long("one"), long("two"), None);
        assert!(whole.first().is_some_and(|line| line.len() > 400 && !line.contains('…')));
        let added = shown(json!({}), long("one"), Some(40));
        assert_eq!(added.first().map(|line| width(line)), Some(40));
    }

    #[test]
    fn hostile_names_and_values_are_escaped() {
        let lines = shown(json!({}), json!({"\x1b[2J": "\u{202e}\u{9b}", "list": []}), None);
        assert_eq!(lines, ["  + ['^[[2J']: \"\\u202e\\u009b\"", "  + list: []"]);
    }
}
