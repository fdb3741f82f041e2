//! Events of a watch as they go over the wire: each in an HTTP chunk of its own.

use std::io::Write;
use std::ops::Range;

use crate::pods::Pods;
use crate::protobuf::{field, message, unknown, unknown_head};
use crate::templates::Format;

/// What the object of a JSON event begins with.
const KIND: &str = "\"kind\":\"Pod\",\"apiVersion\":\"v1\",";

/// What stands behind a pod in its chunk.
fn tail(format: Format) -> &'static [u8] {
    match format {
        Format::Json => b"}\n\r\n",
        Format::Protobuf => b"\x1a\0\"\0\r\n",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Added,
    Modified,
}

impl Event {
    fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
        }
    }
}

/// Appends the chunk of an event about a pod.
pub(crate) fn pod_event(
    pods: &Pods,
    format: Format,
    event: Event,
    number: u32,
    revision: u64,
    to: &mut Vec<u8>,
) -> Range<usize> {
    let start = to.len();
    let body = pods.body(number, format);
    match format {
        Format::Json => {
            let name = event.name();
            // The braces of the event and of the object, of which the body has the last.
            let length = "{\"type\":\"\",\"object\":{".len() + name.len() + KIND.len() + body.len() + "}\n".len();
            write!(to, "{length:x}\r\n{{\"type\":\"{name}\",\"object\":{{{KIND}").expect("memory takes all");
        }
        Format::Protobuf => {
            let head = unknown_head("Pod", body.len());
            let unknown = head.len() + body.len() + 4;
            write_protobuf_head(event.name(), unknown, to);
            to.extend_from_slice(&head);
        }
    }
    body.fill(number, revision, to);
    to.extend_from_slice(tail(format));
    start..to.len()
}

/// The pod in the chunk of an event, as a list has it. (JSON lacks the opening brace.)
pub(crate) fn pod_in<'a>(pods: &Pods, format: Format, number: u32, chunk: &'a [u8]) -> &'a [u8] {
    let end = chunk.len() - tail(format).len();
    &chunk[end - pods.body(number, format).len()..end]
}

/// The chunk of a bookmark; `initial` ends the first part of a streaming list.
pub(crate) fn bookmark(format: Format, version: u64, initial: bool) -> Vec<u8> {
    let version = version.to_string();
    match format {
        Format::Json => {
            let note = if initial { ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" } else { "" };
            json_chunk(&format!(
                "{{\"type\":\"BOOKMARK\",\"object\":{{{KIND}\"metadata\":{{\"resourceVersion\":\"{version}\"{note}}},\
                 \"spec\":{{\"containers\":null}},\"status\":{{}}}}}}\n"
            ))
        }
        Format::Protobuf => {
            let mut metadata = field(6, version.as_bytes());
            if initial {
                let note = [field(1, b"k8s.io/initial-events-end"), field(2, b"true")].concat();
                metadata.extend(field(12, &note));
            }
            let pod = [field(1, &metadata), field(2, b""), field(3, b"")].concat();
            protobuf_chunk("BOOKMARK", &unknown("Pod", &pod))
        }
    }
}

/// The chunk that tells a watch that its version is no longer known.
pub(crate) fn expired(format: Format) -> Vec<u8> {
    match format {
        Format::Json => json_chunk(&format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status(410, "Expired", TOO_OLD))),
        Format::Protobuf => {
            let status =
                [field(1, b""), field(2, b"Failure"), field(3, TOO_OLD.as_bytes()), field(4, b"Expired")].concat();
            // Field 6, a number: the code 410.
            let status = [&status[..], &[6 << 3, 0x9a, 0x03]].concat();
            protobuf_chunk("ERROR", &unknown("Status", &status))
        }
    }
}

pub(crate) const TOO_OLD: &str = "too old resource version";

/// A Status as JSON.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> String {
    format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\
         \"message\":\"{message}\",\"reason\":\"{reason}\",\"code\":{code}}}"
    )
}

fn json_chunk(event: &str) -> Vec<u8> {
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

fn protobuf_chunk(event: &str, object: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::new();
    write_protobuf_head(event, object.len(), &mut chunk);
    chunk.extend_from_slice(object);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// All that stands before the object of an event: the chunk's size, the frame's size, WatchEvent and RawExtension.
fn write_protobuf_head(event: &str, object_length: usize, to: &mut Vec<u8>) {
    let raw = message(1, object_length);
    let extension = message(2, raw.len() + object_length);
    let name = field(1, event.as_bytes());
    let length = name.len() + extension.len() + raw.len() + object_length;
    write!(to, "{:x}\r\n", length + 4).expect("memory takes all");
    to.extend_from_slice(&u32::try_from(length).expect("an event below 4 GiB").to_be_bytes());
    for part in [name, extension, raw] {
        to.extend_from_slice(&part);
    }
}
