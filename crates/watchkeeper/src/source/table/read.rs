//! Tables and their rows, in JSON.
//!
//! kube-apiserver writes `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":..,"columnDefinitions":..,"rows":[..]}`, in
//! watches with one row, and with columns in the first event alone. A bookmark has a row too, whose object has a version
//! and annotations but no name. A list of Tables is read by [`ListReader`](super::super::list_reader), row by row.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::object::header::{self, RawHeader};

/// An event is of one object. Nobody sends this many rows in one, and each takes memory until its turn comes.
const MOST_ROWS: usize = 1_000;

/// A row, borrowed from its JSON.
#[derive(Default, Deserialize)]
pub(in crate::source) struct RawRow<'a> {
    #[serde(borrow, default)]
    pub(in crate::source) cells: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(in crate::source) object: Option<&'a RawValue>,
}

impl<'a> RawRow<'a> {
    /// Reads the row that `json` begins with, and says where it ends. An error whose `is_eof()` is true asks for more bytes.
    pub(in crate::source) fn read_prefix(json: &'a [u8]) -> Result<(Self, usize), serde_json::Error> {
        // An array would do for the fields in their order, and is no row.
        if !json.starts_with(b"{") {
            let mut stream = serde_json::Deserializer::from_slice(json).into_iter::<IgnoredAny>();
            stream.next().transpose()?;
            return Ok((Self::default(), stream.byte_offset()));
        }
        let mut stream = serde_json::Deserializer::from_slice(json).into_iter();
        let row = stream.next().transpose()?.unwrap_or_default();
        Ok((row, stream.byte_offset()))
    }

    /// What can be read of the header of a row's object, of a row that is cut off or broken.
    pub(in crate::source) fn read_start(json: &[u8]) -> RawHeader<'_> {
        // Like an event, it has its object under that name.
        header::read_event_start(json).1
    }
}

/// A Table with few rows, borrowed from its JSON.
#[derive(Deserialize)]
pub(super) struct RawTable<'a> {
    #[serde(borrow, default, rename = "columnDefinitions")]
    pub(super) columns: Option<&'a RawValue>,
    #[serde(borrow, default)]
    rows: Option<Rows<'a>>,
}

impl<'a> RawTable<'a> {
    /// None if it is not what a Table should be.
    pub(super) fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// The JSON of each row.
    pub(super) fn rows(&self) -> impl Iterator<Item = &'a str> {
        self.rows.iter().flat_map(|Rows(rows)| rows).map(|row| row.get())
    }
}

/// It is a Table of the server's, and no object of a kind that somebody has called so.
pub(super) fn is_table(header: &RawHeader<'_>) -> bool {
    is_table_kind(header.kind.as_deref(), header.api_version.as_deref())
}

/// Likewise.
pub(in crate::source) fn is_table_kind(kind: Option<&str>, api_version: Option<&str>) -> bool {
    kind == Some("Table") && api_version == Some("meta.k8s.io/v1")
}

/// What begins with the first row, of an event with a Table that is cut off or broken. The quotes that stand for themselves
/// in JSON begin and end strings, so this is the key of a field. No field of that name stands before a Table's rows.
pub(super) fn first_row_of(event: &[u8]) -> Option<&[u8]> {
    const ROWS: &[u8] = br#""rows":["#;
    memchr::memmem::find(event, ROWS).map(|at| &event[at + ROWS.len()..])
}

struct Rows<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Rows<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Few;
        impl<'de> Visitor<'de> for Few {
            type Value = Rows<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {MOST_ROWS} rows")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Rows<'de>, A::Error> {
                let mut rows = Vec::new();
                while rows.len() < MOST_ROWS {
                    match seq.next_element()? {
                        Some(row) => rows.push(row),
                        None => return Ok(Rows(rows)),
                    }
                }
                match seq.next_element::<IgnoredAny>()? {
                    Some(_) => Err(serde::de::Error::invalid_length(MOST_ROWS + 1, &self)),
                    None => Ok(Rows(rows)),
                }
            }
        }
        deserializer.deserialize_seq(Few)
    }
}
