//! One object, or one line of a watch, as it should not be.

use bytes::Bytes;
use serde_json::Value;

/// The parts of a watch's line: `ADDED`, and the object's bytes.
pub(super) fn split(line: &[u8]) -> Option<(&str, &[u8])> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    let (event, rest) = rest.split_at(end);
    let object = rest.strip_prefix(b"\",\"object\":")?.strip_suffix(b"}\n")?;
    Some((std::str::from_utf8(event).ok()?, object))
}

/// A line of a watch.
pub(super) fn joined(event: &str, object: &[u8]) -> Bytes {
    [b"{\"type\":\"", event.as_bytes(), b"\",\"object\":", object, b"}\n"].concat().into()
}

/// The end of a watch that says why.
pub(super) fn error_line(code: u16, reason: &str) -> Bytes {
    joined("ERROR", status(code, reason, None).to_string().as_bytes())
}

/// A `Status`.
pub(super) fn status(code: u16, reason: &str, retry_after: Option<u32>) -> Value {
    let mut status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": "this failure was injected",
    });
    if let Some(seconds) = retry_after {
        status["details"] = serde_json::json!({ "retryAfterSeconds": seconds });
    }
    status
}

/// A Lease that has the object's metadata. In a table, and in a row of one, it stands in the object's place.
pub(super) fn wrong_kind(object: &[u8]) -> Bytes {
    let place = match object {
        _ if object.starts_with(br#"{"cells":"#) => "/object",
        _ if object.starts_with(br#"{"kind":"Table","apiVersion":"meta.k8s.io/"#) => "/rows/0/object",
        _ => "",
    };
    let mut whole: Value = serde_json::from_slice(object).unwrap_or_default();
    if let Some(object) = whole.pointer_mut(place) {
        let metadata = object.get("metadata").cloned();
        *object = serde_json::json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata});
    }
    whole.to_string().into()
}

/// The object with a field behind all others that makes it as long as this.
pub(super) fn oversize(object: &[u8], bytes: usize) -> Bytes {
    let Some(open) = object.strip_suffix(b"}") else { return Bytes::copy_from_slice(object) };
    let padding = bytes.saturating_sub(object.len() + r#","padding":"""#.len());
    [open, b",\"padding\":\"", "x".repeat(padding).as_bytes(), b"\"}"].concat().into()
}

/// A bookmark's line with another version.
pub(super) fn moved_bookmark(line: &[u8], ahead: u64) -> Option<Bytes> {
    let text = std::str::from_utf8(line).ok()?;
    let name = r#""resourceVersion":""#;
    let start = text.find(name)? + name.len();
    let end = start + text[start..].find('"')?;
    let version: u64 = text[start..end].parse().ok()?;
    // A row of a table says it once more.
    let moved = format!("{name}{}\"", version.saturating_add(ahead));
    Some(text.replace(&format!("{name}{version}\""), &moved).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart_and_put_together() {
        let line = joined("ADDED", br#"{"kind":"Pod"}"#);
        assert_eq!(split(&line), Some(("ADDED", br#"{"kind":"Pod"}"#.as_slice())));
        assert_eq!(split(b"{}"), None);
    }

    #[test]
    fn an_object_of_a_wrong_kind_stands_where_the_object_stood() {
        let object = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{}}"#;
        let row = format!(r#"{{"cells":["a"],"object":{object}}}"#);
        let table =
            format!(r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":null,"rows":[{row}]}}"#);
        for (whole, place) in [(object, ""), (&row, "/object"), (&table, "/rows/0/object")] {
            let changed: Value = serde_json::from_slice(&wrong_kind(whole.as_bytes())).unwrap();
            let lease = changed.pointer(place).unwrap();
            assert_eq!((&lease["kind"], &lease["metadata"]["name"]), (&"Lease".into(), &"a".into()), "{whole}");
            assert!(lease.get("spec").is_none(), "{whole}");
        }
    }

    #[test]
    fn an_oversized_object_is_as_long_as_was_asked_for_and_still_an_object() {
        let object = oversize(br#"{"metadata":{"name":"a"}}"#, 5000);
        assert_eq!(object.len(), 5000);
        assert_eq!(serde_json::from_slice::<Value>(&object).unwrap()["metadata"]["name"], "a");
    }

    #[test]
    fn a_bookmark_lies_by_as_much_as_was_asked_for() {
        let line = joined("BOOKMARK", br#"{"kind":"Pod","metadata":{"resourceVersion":"98"}}"#);
        let moved = moved_bookmark(&line, 3).unwrap();
        assert!(moved.windows(25).any(|window| window == br#""resourceVersion":"101"}}"#), "{moved:?}");
    }
}
