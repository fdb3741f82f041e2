//! What does a jsonpath template find in an object?
//!
//! The dialect is kubectl's: text with actions in braces, `{range .items[*]}{.metadata.name}{"\n"}{end}`. An action is
//! a path (`.a.b`, `['a']`, `[0]`, `[1:3]`, `[*]`, `[?(@.type=="Ready")]`, `..name`, `['a','b']`), a quoted text, a
//! number, `range` or `end`. A dot in a name is written `\.`.
//!
//! As with kubectl's default, a path that is not there finds nothing. Beyond kubectl, an index past the end of a list
//! finds nothing too, so that one object with a shorter list does not end a watch; a filter may hold a comma or a
//! bracket; names in brackets may have double quotes; a comparison of things that cannot be compared is false, not an
//! error; and `{.}` is the whole object.

mod compare;
mod evaluate;
mod parse;
mod text;
mod tree;

use serde_json::Value;

pub(super) use compare::order_numbers;
pub(crate) use evaluate::EvaluationError;
pub(crate) use parse::SyntaxError;
pub(crate) use text::value_text;

/// A template, ready to be used on many objects.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    parts: Vec<tree::Part>,
}

impl Template {
    /// Reads a template.
    pub(crate) fn parse(template: &str) -> Result<Self, SyntaxError> {
        parse::parse(template).map(|parts| Self { parts })
    }

    /// Reads one path, as `--sort-by` and custom columns have it: braces and the first dot may be missing.
    pub(crate) fn path(path: &str) -> Result<Self, SyntaxError> {
        let inner = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path);
        let inner = inner.strip_prefix('.').unwrap_or(inner);
        Self::parse(&format!("{{.{inner}}}"))
    }

    /// What the template finds: a group of values for each of its parts, and for each round of a range.
    pub(crate) fn find<'a>(&'a self, object: &'a Value) -> Result<Vec<Vec<&'a Value>>, EvaluationError> {
        evaluate::find(&self.parts, object)
    }

    /// The text that the template makes of an object. Values of one part stand apart by a space; lists and maps are
    /// JSON.
    pub(crate) fn print(&self, object: &Value) -> Result<String, EvaluationError> {
        let mut printed = String::new();
        for group in self.find(object)? {
            for (at, value) in group.into_iter().enumerate() {
                if at > 0 {
                    printed.push(' ');
                }
                printed.push_str(&value_text(value));
            }
        }
        Ok(printed)
    }
}

#[cfg(test)]
mod tests;
