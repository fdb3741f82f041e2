//! Events of a watch that have Tables in the place of objects.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::super::decode::{ExpectedKind, bad};
use super::super::intake::Intake;
use super::super::watch_reader::{bad_event, bookmark, change};
use super::super::{BadObject, WatchEvent};
use super::read::{RawRow, RawTable, first_row_of, is_table};
use crate::ResourceVersion;
use crate::object::header::{self, RawHeader};

/// What the event of a Table with this header tells: a change for each row. None if it is no Table, or if its type has
/// nothing to do with rows.
pub(in crate::source) fn events(
    expected: &ExpectedKind,
    intake: &Intake,
    event_type: &str,
    header: &RawHeader<'_>,
    json: &[u8],
) -> Option<VecDeque<WatchEvent>> {
    let columns = expected.columns().filter(|_| is_table(header))?;
    let is_change = matches!(event_type, "ADDED" | "MODIFIED" | "DELETED");
    if !is_change && event_type != "BOOKMARK" {
        return None;
    }
    let unusable = |problem| {
        let object = BadObject { key: None, ..bad(header, problem) };
        if is_change { bad_event(Some(event_type), object) } else { WatchEvent::WrongKind(object) }
    };
    // What is not text in one row is no fault of the others.
    let text = String::from_utf8_lossy(json);
    let is_broken = |row: &str| matches!(text, Cow::Owned(_)) && row.contains(char::REPLACEMENT_CHARACTER);
    let Some(table) = RawTable::read(&text) else {
        return Some([unusable("the Table that it came in cannot be read")].into());
    };
    if let Some(definitions) = table.columns {
        columns.learn(definitions.get().as_bytes());
    }
    if !is_change {
        return Some([bookmark(expected, &bookmark_header(header, &table))].into());
    }
    let decode = |json: &str| match RawRow::read_prefix(json.as_bytes()) {
        Ok((row, _)) if !is_broken(json) => expected.decode_row(&row, intake),
        _ => expected.decode_broken_row(json.as_bytes()),
    };
    let mut events: VecDeque<WatchEvent> = table.rows().map(|row| change(event_type, decode(row))).collect();
    if events.is_empty() {
        events.push_back(match header.resource_version.as_deref() {
            None | Some("") => WatchEvent::Unknown(ResourceVersion::unset()),
            // Something has changed, and we are not told what.
            Some(_) => unusable("the Table that it came in has no rows"),
        });
    }
    Some(events)
}

/// What can be read of an event that is cut off or broken: its type, and the header of its object, or of the object in the
/// first row of its Table. (There is no second row, in events of any server that is known.)
pub(in crate::source) fn read_event_start<'a>(
    expected: &ExpectedKind,
    start: &'a [u8],
) -> (Option<Cow<'a, str>>, RawHeader<'a>) {
    let (event_type, header) = header::read_event_start(start);
    if expected.columns().is_none() || !is_table(&header) {
        return (event_type, header);
    }
    (event_type, first_row_of(start).map(RawRow::read_start).unwrap_or_default())
}

/// What a bookmark says stands in the object of its row; its version is the Table's, too.
fn bookmark_header<'a>(header: &RawHeader<'a>, table: &RawTable<'a>) -> RawHeader<'a> {
    let row = table.rows().next().and_then(|json| RawRow::read_prefix(json.as_bytes()).ok());
    let object = row.and_then(|(row, _)| row.object).map(|object| object.get().as_bytes());
    let (mut bookmark, _) = object.and_then(|json| header::read_prefix(json).ok()).unwrap_or_default();
    if bookmark.resource_version.as_deref().unwrap_or_default().is_empty() {
        bookmark.resource_version.clone_from(&header.resource_version);
    }
    bookmark
}
