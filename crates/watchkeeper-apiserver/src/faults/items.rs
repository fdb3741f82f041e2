//! The items of a list, as they should not be.

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::{Fault, objects};

/// The document with its faults. Only the objects that a fault names are touched.
pub(super) fn inject(parts: Vec<Bytes>, faults: &[Fault]) -> Vec<Bytes> {
    let document = Bytes::from(parts.concat());
    let Some((head, mut items, tail)) = split(&document) else { return vec![document] };
    for fault in faults {
        match fault {
            Fault::DropEvent { nth } => change(&mut items, *nth, |_| Vec::new()),
            Fault::DuplicateEvent { nth } => change(&mut items, *nth, |item| vec![item.clone(), item.clone()]),
            Fault::WrongKind { nth } => change(&mut items, *nth, |item| vec![objects::wrong_kind(item)]),
            Fault::Oversize { nth, bytes } => change(&mut items, *nth, |item| vec![objects::oversize(item, *bytes)]),
            _ => {}
        }
    }
    let items = items.into_iter().flatten().enumerate();
    let items = items.flat_map(|(i, item)| [if i > 0 { Bytes::from_static(b",") } else { Bytes::new() }, item]);
    std::iter::once(head).chain(items).chain([tail]).collect()
}

/// Whether a fault is about single objects.
pub(super) fn is_meant(fault: &Fault) -> bool {
    use Fault::{DropEvent, DuplicateEvent, Oversize, WrongKind};
    matches!(fault, DropEvent { .. } | DuplicateEvent { .. } | WrongKind { .. } | Oversize { .. })
}

/// In each item's place stands what comes there.
fn change(items: &mut [Vec<Bytes>], nth: usize, make: impl Fn(&Bytes) -> Vec<Bytes>) {
    if let Some(place) = nth.checked_sub(1).and_then(|i| items.get_mut(i)) {
        *place = place.iter().flat_map(make).collect();
    }
}

/// A list's bytes before its items, or a table's before its rows, each of these, and what is behind them; none, if it is
/// neither.
fn split(document: &Bytes) -> Option<(Bytes, Vec<Vec<Bytes>>, Bytes)> {
    let is_table = document.starts_with(b"{\"kind\":\"Table\",");
    let name: &[u8] = if is_table { b"\"rows\":[" } else { b"\"items\":[" };
    let mut at = document.windows(name.len()).position(|window| window == name)? + name.len();
    let head = document.slice(..at);
    let mut items = Vec::new();
    while document.get(at) != Some(&b']') {
        let mut values = serde_json::Deserializer::from_slice(document.get(at..)?).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        let end = at + values.byte_offset();
        items.push(vec![document.slice(at..end)]);
        at = if document.get(end) == Some(&b',') { end + 1 } else { end };
    }
    Some((head, items, document.slice(at..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_item_is_touched() {
        let list = br#"{"kind":"PodList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#;
        let changed = |faults: &[Fault]| inject(vec![Bytes::from_static(list)], faults).concat();
        assert_eq!(changed(&[]), list);
        let dropped = changed(&[Fault::DropEvent { nth: 1 }]);
        assert_eq!(dropped, br#"{"kind":"PodList","items":[{"metadata":{"name":"b"}}]}"#);
        let twice = changed(&[Fault::DuplicateEvent { nth: 2 }, Fault::WrongKind { nth: 9 }]);
        assert_eq!(String::from_utf8_lossy(&twice).matches("\"b\"").count(), 2);
    }

    #[test]
    fn what_is_no_list_stays_as_it_is() {
        assert_eq!(inject(vec![Bytes::from_static(b"{}")], &[Fault::DropEvent { nth: 1 }]).concat(), b"{}");
        let cut_off = b"{\"items\":[{\"metadata\"";
        assert_eq!(inject(vec![Bytes::from_static(cut_off)], &[]).concat(), cut_off);
    }
}
