//! One row, as it is kept and as users see it.

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::Value;

/// A row of a Table: what the server would show of an object, and the object. What objects of a
/// [`ListWatch::table`](crate::ListWatch::table) decode into.
///
/// ```
/// use kube_core::DynamicObject;
/// use watchkeeper::{Cached, TableRow};
///
/// fn shown(pod: &Cached<TableRow<DynamicObject>>) -> Result<String, watchkeeper::DecodeError> {
///     let row = pod.decode()?;
///     let cells: Vec<String> = row.cells.iter().map(ToString::to_string).collect();
///     Ok(format!("{}: {}", row.object.metadata.name.as_deref().unwrap_or_default(), cells.join(" ")))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TableRow<K> {
    /// A cell for each [column](super::TableColumns): texts, numbers, truth values, now and then something else. What they
    /// say of time was true when the object came. None, if the server has no Tables.
    pub cells: Vec<Value>,
    /// The object.
    pub object: K,
}

/// The cells of what did not come in a Table.
pub(in crate::source) const NO_CELLS: &str = "[]";

/// What is kept of a row, in an allocation of its own.
pub(in crate::source) fn body(cells: &str, object: &[u8]) -> Bytes {
    let parts = [br#"{"cells":"#.as_slice(), cells.as_bytes(), br#","object":"#, object, b"}"];
    let mut body = BytesMut::with_capacity(parts.iter().map(|part| part.len()).sum());
    parts.iter().for_each(|part| body.put_slice(part));
    body.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_row_is_a_row() {
        let body = body(r#"["web",7,null]"#, br#"{"kind":"Pod"}"#);
        assert_eq!(&body[..], br#"{"cells":["web",7,null],"object":{"kind":"Pod"}}"#);
        let row: TableRow<Value> = serde_json::from_slice(&body).expect("a row");
        assert_eq!(row.cells, [Value::from("web"), Value::from(7), Value::Null]);
        assert_eq!(row.object["kind"], "Pod");
    }
}
