//! Events, of both groups: they have the same columns, and other names for their fields.
//!
//! Counterpart: `printEvent`.

use serde_json::Value;

use super::age;
use super::subject::Subject;

const FIRST: [&str; 2] = ["/firstTimestamp", "/deprecatedFirstTimestamp"];
const LAST: [&str; 2] = ["/lastTimestamp", "/deprecatedLastTimestamp"];

pub(super) fn first_seen(event: Subject<'_>) -> Value {
    first(event).into()
}

pub(super) fn last_seen(event: Subject<'_>) -> Value {
    if event.at("/series").is_some() {
        return event.since("/series/lastObservedTime").into();
    }
    match known(event, &LAST) {
        Some(time) => age::since(Some(time), event.now()).into(),
        None => first(event).into(),
    }
}

/// `pod/web-1`: what it is about.
pub(super) fn about(event: Subject<'_>) -> Value {
    let kind = event.first_text(&["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    match event.first_text(&["/involvedObject/name", "/regarding/name"]) {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

/// Which part of the object it is about.
pub(super) fn field(event: Subject<'_>) -> Value {
    event.first_text(&["/involvedObject/fieldPath", "/regarding/fieldPath"]).into()
}

/// Who reported it, and from where.
pub(super) fn source(event: Subject<'_>) -> Value {
    let reporters = ["/source/component", "/deprecatedSource/component", "/reportingComponent", "/reportingController"];
    let reporter = event.first_text(&reporters);
    match event.first_text(&["/source/host", "/deprecatedSource/host", "/reportingInstance"]) {
        "" => reporter.into(),
        host => format!("{reporter}, {host}").into(),
    }
}

pub(super) fn message(event: Subject<'_>) -> Value {
    event.first_text(&["/message", "/note"]).trim().into()
}

/// How often it was seen. Who counts nothing has seen it once.
pub(super) fn count(event: Subject<'_>) -> Value {
    if event.at("/series").is_some() {
        return event.integer("/series/count").into();
    }
    let counted = ["/count", "/deprecatedCount"].iter().map(|pointer| event.integer(pointer)).find(|count| *count != 0);
    counted.unwrap_or(1).into()
}

fn first(event: Subject<'_>) -> String {
    age::since(known(event, &FIRST).or_else(|| event.given("/eventTime")), event.now())
}

/// The first of some times that is one.
fn known<'a>(event: Subject<'a>, pointers: &[&str]) -> Option<&'a str> {
    pointers.iter().filter_map(|pointer| event.given(pointer)).find(|time| age::moment(time).is_some())
}
