//! What stands in a cell.

use serde_json::Value;

use super::subject::Subject;
use super::{age, labels, quantity};

/// How a cell is made of an object: what is where, or a function. Paths are JSON pointers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell {
    Name,
    /// How long the object has been there.
    Age,
    /// The second in which it was made.
    Created,
    /// A text; empty, if it is not there.
    Text(&'static str),
    /// A text, or another if it is missing.
    TextOr(&'static str, &'static str),
    /// A text, or another if it is missing or empty.
    FullTextOr(&'static str, &'static str),
    /// The texts of a list, with commas.
    Joined(&'static str),
    /// A number; 0, if it is not there.
    Integer(&'static str),
    /// A number, or a text if it is missing.
    IntegerOr(&'static str, &'static str),
    /// A truth; the given one, if it is missing.
    Boolean(&'static str, bool),
    /// How many entries lists or maps have together.
    Count(&'static [&'static str]),
    /// An amount.
    Quantity(&'static str),
    /// Labels.
    Labels(&'static str),
    /// A label selector.
    Selector(&'static str),
    /// How long ago a time is, or a text if there is none.
    SinceOr(&'static str, &'static str),
    /// The names or the images of the containers of a pod's spec.
    Containers(&'static str, &'static str),
    /// Anything else.
    Made(fn(Subject<'_>) -> Value),
}

impl Cell {
    /// The cell of an object.
    pub(super) fn of(&self, subject: Subject<'_>) -> Value {
        match *self {
            Self::Name => subject.text("/metadata/name").into(),
            Self::Age => subject.since("/metadata/creationTimestamp").into(),
            Self::Created => age::seconds(subject.given("/metadata/creationTimestamp")).into(),
            Self::Text(path) => subject.text(path).into(),
            Self::TextOr(path, other) => subject.given(path).unwrap_or(other).into(),
            Self::FullTextOr(path, other) => {
                subject.given(path).filter(|text| !text.is_empty()).unwrap_or(other).into()
            }
            Self::Joined(path) => subject.texts(path).join(",").into(),
            Self::Integer(path) => subject.integer(path).into(),
            Self::IntegerOr(path, other) => subject.given_integer(path).map_or_else(|| other.into(), Value::from),
            Self::Boolean(path, other) => subject.given_boolean(path).unwrap_or(other).into(),
            Self::Count(paths) => paths.iter().map(|path| subject.count(path)).sum::<usize>().into(),
            Self::Quantity(path) => quantity::shown(subject.at(path)).into(),
            Self::Labels(path) => labels::shown(subject.map(path)).into(),
            Self::Selector(path) => labels::selector(subject, path).into(),
            Self::SinceOr(path, other) => match subject.at(path) {
                Some(_) => subject.since(path).into(),
                None => other.into(),
            },
            Self::Containers(path, field) => {
                let fields: Vec<&str> = subject.list(path).map(|container| container.text(field)).collect();
                fields.join(",").into()
            }
            Self::Made(make) => make(subject),
        }
    }
}

/// Up to `most` entries, and how many there are beyond.
pub(super) fn shortened(entries: &[String], most: usize, count: usize) -> String {
    let shown = entries.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(",");
    match count > most {
        true => format!("{shown} + {} more...", count - most),
        false => shown,
    }
}
