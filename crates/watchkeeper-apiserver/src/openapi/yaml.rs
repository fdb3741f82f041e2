//! JSON as YAML in blocks, for those who read nothing else.

use serde_json::Value;

/// The value as a document of YAML, in the form of Go's `yaml.v3`.
pub(super) fn block(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Array(_) | Value::Object(_) => write(&mut out, value, 0),
        scalar => {
            out.push_str(&plain(scalar));
            out.push('\n');
        }
    }
    out
}

/// A list or a map, each line indented; what is nested is indented by two more.
fn write(out: &mut String, value: &Value, indent: usize) {
    let pad = " ".repeat(indent);
    match value {
        Value::Array(values) if !values.is_empty() => {
            for value in values {
                out.push_str(&pad);
                out.push_str("- ");
                entry(out, value, indent + 2);
            }
        }
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                out.push_str(&pad);
                out.push_str(&plain(&Value::String(key.clone())));
                out.push(':');
                match is_nested(value) {
                    true => {
                        out.push('\n');
                        write(out, value, indent + 2);
                    }
                    false => {
                        out.push(' ');
                        out.push_str(&plain(value));
                        out.push('\n');
                    }
                }
            }
        }
        other => {
            out.push_str(&pad);
            out.push_str(&plain(other));
            out.push('\n');
        }
    }
}

/// What stands behind a dash: its first line is on the line of the dash.
fn entry(out: &mut String, value: &Value, indent: usize) {
    let mut inner = String::new();
    write(&mut inner, value, indent);
    out.push_str(inner.trim_start());
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Array(values) => !values.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => false,
    }
}

/// A value without parts. Texts that YAML could take for something else are quoted; JSON's way is one of YAML's.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan"];
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-' | b',' | b'+' | b' ');
    text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && text.bytes().all(inner)
        && !text.ends_with(' ')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_in_blocks_and_ambiguous_texts_in_quotes() {
        assert_eq!(block(&json!("list")), "list\n");
        assert_eq!(block(&json!("client auth")), "client auth\n");
        assert_eq!(block(&json!("")), "\"\"\n");
        assert_eq!(block(&json!("true")), "\"true\"\n");
        assert_eq!(block(&json!("a: b\n")), "\"a: b\\n\"\n");
        assert_eq!(block(&json!(true)), "true\n");
        assert_eq!(block(&json!(["a", 1])), "- a\n- 1\n");
        assert_eq!(block(&json!({"group": "", "kind": "Pod"})), "group: \"\"\nkind: Pod\n");
        let nested = json!([{"a": {"b": "c"}, "d": ["e"], "f": []}]);
        assert_eq!(block(&nested), "- a:\n    b: c\n  d:\n    - e\n  f: []\n");
    }
}
