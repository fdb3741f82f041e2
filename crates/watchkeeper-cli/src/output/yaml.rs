//! How is an object written as YAML?
//!
//! As kubectl writes it: two spaces for each level, lists not indented under their field, text of several lines as a
//! block. A text is plain only where no reader could take it for something else, and in double quotes otherwise, with
//! everything escaped that could control a terminal.

use std::borrow::Cow;

use serde_json::Value;

use crate::terminal::{escape_json, is_unsafe};

/// A document, with a line feed at its end.
pub(super) fn document(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0, Place::Line);
    text
}

/// Where a value begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the beginning of a line that is indented already.
    Line,
    /// Behind a field's colon.
    Field,
    /// Behind a list's dash.
    Item,
}

fn write(text: &mut String, value: &Value, indent: usize, place: Place) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            if place == Place::Field {
                text.push('\n');
            }
            for (at, (name, value)) in fields.iter().enumerate() {
                // The first field stands behind the dash of its item.
                if at > 0 || place == Place::Field {
                    spaces(text, indent);
                }
                text.push_str(&scalar(name));
                text.push(':');
                // Items stand as deep as the field that has them.
                let deeper = if value.is_array() { indent } else { indent + 2 };
                write(text, value, deeper, Place::Field);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            if place == Place::Field {
                text.push('\n');
            }
            for (at, item) in items.iter().enumerate() {
                if at > 0 || place == Place::Field {
                    spaces(text, indent);
                }
                text.push_str("- ");
                write(text, item, indent + 2, Place::Item);
            }
        }
        scalar => {
            if place == Place::Field {
                text.push(' ');
            }
            write_scalar(text, scalar, indent);
            text.push('\n');
        }
    }
}

fn write_scalar(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(_) => text.push_str("{}"),
        Value::Array(_) => text.push_str("[]"),
        Value::String(string) if is_block(string) && indent > 0 => write_block(text, string, indent),
        Value::String(string) => text.push_str(&scalar(string)),
        other => text.push_str(&other.to_string()),
    }
}

/// Text with line feeds that can be written line by line: nothing to escape, no line that begins or ends with a space
/// where that would be lost or change the meaning.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && !text.chars().any(|character| is_unsafe(character) && character != '\n')
        && text.lines().all(|line| !line.ends_with([' ', '\t']) && !line.starts_with('\t'))
}

/// A block: `|` keeps one line feed at the end, `|-` none, `|+` all of them.
fn write_block(text: &mut String, block: &str, indent: usize) {
    let body = block.trim_end_matches('\n');
    text.push_str(match block.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n') {
        text.push('\n');
        if !line.is_empty() {
            spaces(text, indent);
            text.push_str(line);
        }
    }
    // The last line feed is the caller's.
    text.extend(std::iter::repeat_n('\n', (block.len() - body.len()).saturating_sub(1)));
}

/// A text on one line.
fn scalar(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let quoted = Value::from(text).to_string();
    Cow::Owned(escape_yaml(&quoted))
}

/// JSON's escapes are YAML's, apart from pairs of surrogates, which are one `\U`.
fn escape_yaml(quoted: &str) -> String {
    let mut escaped = String::with_capacity(quoted.len());
    for character in quoted.chars() {
        match u32::from(character) {
            code @ 0x1_0000.. if is_unsafe(character) => escaped.push_str(&format!("\\U{code:08x}")),
            _ => escaped.push_str(&escape_json(character.encode_utf8(&mut [0; 4]))),
        }
    }
    escaped
}

/// No reader of any version of YAML takes it for anything but this text. Rather too narrow than too wide.
fn is_plain(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_alphabetic() || first == '/');
    (begins && !is_word_of_yaml(text) || is_address(text) || is_amount(text))
        && !text.ends_with(' ')
        && text.chars().all(|character| character.is_alphanumeric() || PLAIN.contains(character))
        // Here begins a comment, or the value of a field.
        && !text.contains(" #")
        && !text.contains(": ")
        && !text.ends_with(':')
}

/// What a plain text may have besides letters and digits, behind its first character.
const PLAIN: &str = " _/.-=,()+%;$:@\"'[]{}<>|*&?!~\\^#";

/// An IPv4 address: too many dots for a number.
fn is_address(text: &str) -> bool {
    text.split('.').count() == 4
        && text.split('.').all(|part| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit()))
}

/// A quantity whose suffix no number has: `500m`, `10Gi`.
fn is_amount(text: &str) -> bool {
    let suffix = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    suffix.len() < text.len() && matches!(suffix, "m" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei")
}

/// Words that some reader takes for a truth, nothing, or a number.
fn is_word_of_yaml(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    matches!(lower.as_str(), "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "null" | "nan" | "inf")
}

fn spaces(text: &mut String, number: usize) {
    text.extend(std::iter::repeat_n(' ', number));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_look_as_kubectl_writes_them() {
        let value = json!({
            "spec": {"containers": [{"args": ["-v", "2", "--flag=x"], "image": "nginx:1.27", "env": []}], "empty": {}},
            "data": {"conf": "a: 1\n\n  b: 2\n", "tail": "x\ny", "kept": "x\ny\n\n", "odd": " x\ny"},
            "nested": [[1, 2], [], [{"a": null}]],
            "words": ["yes", "1e3", "0x1f", "12:30", "~", "- a", "a: b", "a #b", "", " a", "2026-11-16T06:50:12Z", "10Gi", "10.0.0.7", "1.5", "http://x/y?z=1#f", "line\n"],
        });
        insta::assert_snapshot!(document(&value));
    }

    #[test]
    fn hostile_text_is_escaped_and_stays_the_same_text() {
        let value = json!({"\u{202e}key": "\u{1b}[2J\u{9b}\u{7f}\u{2028}\u{e0001}\u{1f}", "lines": "a\nb\u{202e}\n"});
        let text = document(&value);
        assert!(!text.chars().any(|character| is_unsafe(character) && character != '\n'), "{text:?}");
        assert_eq!(serde_saphyr::from_str::<Value>(&text).ok(), Some(value));
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            r#"[ -~\n]{0,12}"#,
            "(a|b| |:|#|-|\n|\t|'|\"|yes|1|\\{|\\[|,|\\||>|&|\\*|!|%|@|`|\\?){0,6}"
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_the_same(value in json_value()) {
            let text = document(&value);
            let read = serde_saphyr::from_str::<Value>(&text);
            prop_assert_eq!(read.as_ref().ok(), Some(&value), "{}\n{:?}", text, read);
        }
    }
}
