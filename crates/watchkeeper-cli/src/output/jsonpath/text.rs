//! How is a value that a path found written?

use std::borrow::Cow;

use serde_json::Value;

/// A value as kubectl prints it: strings as they are, lists and maps as JSON on one line, null as `<nil>`.
pub(crate) fn value_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed("<nil>"),
        other => Cow::Owned(other.to_string()),
    }
}
