//! From the JSON of one object to its handle.

use bytes::{BufMut, Bytes, BytesMut};
use kube_core::ApiResource;

use super::intake::{Intake, Row};
use super::table::{self, RawRow};
use super::{BadObject, TableColumns};
use crate::object::header::{self, RawHeader};
use crate::{Error, ErrorKind, Object, ObjectKey, ResourceVersion};

/// What is wrong with an object above the limit.
pub(super) const TOO_LARGE: &str = "it is larger than the limit";

/// What is wrong with an object of a wrong kind that is no bookmark.
pub(crate) const WRONG_KIND: &str = "it is of another kind than was asked for";

/// The kind that the objects of a source must have.
#[derive(Debug, Clone)]
pub(super) struct ExpectedKind {
    kind: Box<str>,
    api_version: Box<str>,
    /// `"kind":"Pod",` and `"apiVersion":"v1",`: what an object that lacks them gets in front.
    kind_field: Box<str>,
    api_version_field: Box<str>,
    /// Objects are kept as rows of a Table, of which these are the columns.
    columns: Option<TableColumns>,
}

/// What became of one object's JSON.
pub(super) enum Decoded {
    Object(Object),
    Bad(BadObject),
    WrongKind(BadObject),
}

impl ExpectedKind {
    /// Whole objects of `resource`. A resource that was given by name alone has no kind; then any will do.
    pub(super) fn of(resource: &ApiResource) -> Self {
        Self::new(&resource.kind, &resource.api_version)
    }

    /// Metadata alone, of any kind.
    pub(super) fn metadata() -> Self {
        Self::new("PartialObjectMetadata", "meta.k8s.io/v1")
    }

    fn new(kind: &str, api_version: &str) -> Self {
        let field = |name: &str, value: &str| match value {
            "" => Box::default(),
            value => format!("{}:{},", json_string(name), json_string(value)).into_boxed_str(),
        };
        Self {
            kind: kind.into(),
            api_version: api_version.into(),
            kind_field: field("kind", kind),
            api_version_field: field("apiVersion", api_version),
            columns: None,
        }
    }

    /// The same kind, in the rows of a Table, if the server has one.
    pub(super) fn in_rows(self, columns: TableColumns) -> Self {
        Self { columns: Some(columns), ..self }
    }

    /// A Table will do: this is who wants to know its columns.
    pub(super) fn columns(&self) -> Option<&TableColumns> {
        self.columns.as_ref()
    }

    /// A source that knows no kind learns it from its lists.
    pub(super) fn or_from_list(&self, list_kind: Option<&str>) -> Self {
        match list_kind.and_then(|kind| kind.strip_suffix("List")) {
            Some(kind) if self.kind.is_empty() => {
                Self { columns: self.columns.clone(), ..Self::new(kind, &self.api_version) }
            }
            _ => self.clone(),
        }
    }

    /// A list of this kind is named after its items, and of their version.
    pub(super) fn is_listed_by(&self, list_kind: &str, list_api_version: Option<&str>) -> bool {
        let item_kind = list_kind.strip_suffix("List");
        item_kind.is_some_and(|kind| self.kind.is_empty() || kind == &*self.kind)
            && list_api_version.is_none_or(|version| version == &*self.api_version)
    }

    /// Lists of custom resources may have any name. Their groups have a dot, which those of most built-in kinds lack.
    pub(super) fn may_be_custom(&self) -> bool {
        self.api_version.split_once('/').is_some_and(|(group, _)| group.contains('.'))
    }

    /// Makes a handle of an object's JSON, `json`, whose header has been read. The header says nothing of the object's
    /// kind in lists of built-in kinds; such objects get it in front, so that one object has one form.
    pub(super) fn decode(&self, header: &RawHeader<'_>, json: &[u8], intake: &Intake) -> Decoded {
        self.decode_with_cells(header, json, || self.body(header, json), table::NO_CELLS, intake)
    }

    /// The same, of an object that is a part of what was read, `whole`. If its body will be packed soon, it stays there until
    /// then, and is not copied.
    pub(super) fn decode_part(&self, header: &RawHeader<'_>, whole: &Bytes, json: &[u8], intake: &Intake) -> Decoded {
        let is_complete = header.kind.is_some() && header.api_version.is_some();
        let body = || if is_complete && intake.packs() { whole.slice_ref(json) } else { self.body(header, json) };
        self.decode_with_cells(header, json, body, table::NO_CELLS, intake)
    }

    /// The same, of the object of a row. What belongs to the row and to neither cells nor object is not kept.
    pub(super) fn decode_row(&self, row: &RawRow<'_>, intake: &Intake) -> Decoded {
        let Some(object) = row.object else {
            return Decoded::Bad(bad(&RawHeader::default(), "its row has no object"));
        };
        let json = object.get().as_bytes();
        let Ok((header, _)) = header::read_prefix(json) else { return self.decode_broken(json) };
        let cells = row.cells.map_or(table::NO_CELLS, |cells| cells.get());
        if !cells.starts_with('[') {
            return Decoded::Bad(bad(&header, "the cells of its row are no array"));
        }
        if let Err(problem) = header::check(cells.as_bytes()) {
            return Decoded::Bad(bad(&header, problem));
        }
        self.decode_with_cells(&header, json, || self.body(&header, json), cells, intake)
    }

    fn decode_with_cells(
        &self,
        header: &RawHeader<'_>,
        json: &[u8],
        body: impl FnOnce() -> Bytes,
        cells: &str,
        intake: &Intake,
    ) -> Decoded {
        if let Err(problem) = header.check(json) {
            return Decoded::Bad(bad(header, problem));
        }
        if !self.matches(header) {
            return Decoded::WrongKind(bad(header, WRONG_KIND));
        }
        match header.problem() {
            Some(problem) => Decoded::Bad(bad(header, problem)),
            None => match intake.make(header, body(), self.row(cells)) {
                Ok(object) => Decoded::Object(object),
                Err(problem) => Decoded::Bad(bad(header, problem)),
            },
        }
    }

    /// How an object with these cells is kept, if not by itself.
    fn row<'a>(&self, cells: &'a str) -> Option<Row<'a>> {
        self.columns.as_ref().map(|columns| Row { cells, layout: columns.layout_of(cells) })
    }

    /// An object whose JSON could not be read as it stands: not UTF-8, or escapes that mean nothing.
    pub(super) fn decode_broken(&self, json: &[u8]) -> Decoded {
        let text = String::from_utf8_lossy(json);
        self.decode_broken_header(&header::read_start(text.as_bytes()), json)
    }

    /// The same, of a row.
    pub(super) fn decode_broken_row(&self, json: &[u8]) -> Decoded {
        let text = String::from_utf8_lossy(json);
        self.decode_broken_header(&RawRow::read_start(text.as_bytes()), json)
    }

    fn decode_broken_header(&self, header: &RawHeader<'_>, json: &[u8]) -> Decoded {
        let problem = header::check(json).err().unwrap_or("it holds text that cannot be read");
        if self.matches(header) {
            Decoded::Bad(bad_from_lossy(header, problem))
        } else {
            Decoded::WrongKind(bad_from_lossy(header, WRONG_KIND))
        }
    }

    /// What a bookmark's object says: whether it ends the initial events. It has a kind and a version, and little else.
    pub(super) fn decode_bookmark(&self, header: &RawHeader<'_>) -> Result<bool, BadObject> {
        if !self.matches(header) {
            Err(bad(header, "the bookmark is of another kind than was asked for"))
        } else if header.resource_version.as_deref().unwrap_or_default().is_empty() {
            Err(bad(header, "the bookmark has no version"))
        } else {
            Ok(header.initial_events_end)
        }
    }

    fn matches(&self, header: &RawHeader<'_>) -> bool {
        let is = |expected: &str, found: Option<&str>| {
            expected.is_empty() || found.is_none_or(|found| found.is_empty() || found == expected)
        };
        is(&self.kind, header.kind.as_deref()) && is(&self.api_version, header.api_version.as_deref())
    }

    /// The object's bytes, in an allocation of their own: a part would keep alive all that was read with it.
    fn body(&self, header: &RawHeader<'_>, json: &[u8]) -> Bytes {
        let kind = if header.kind.is_none() { &*self.kind_field } else { "" };
        let api_version = if header.api_version.is_none() { &*self.api_version_field } else { "" };
        let mut body = BytesMut::with_capacity(json.len() + kind.len() + api_version.len());
        body.put_u8(b'{');
        body.put_slice(kind.as_bytes());
        body.put_slice(api_version.as_bytes());
        // What was read as an object begins with its bracket, and is not empty: it has a name.
        body.put_slice(json.strip_prefix(b"{").unwrap_or(json));
        body.freeze()
    }
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn bad(header: &RawHeader<'_>, problem: &'static str) -> BadObject {
    let version = header.resource_version.as_deref().unwrap_or_default();
    BadObject { key: header.key(), resource_version: ResourceVersion::from(version), problem }
}

/// As [`bad`], for a header that was read from text in which what is not UTF-8 was replaced. A key with a replacement in
/// it is another object's key, if anybody's.
pub(super) fn bad_from_lossy(header: &RawHeader<'_>, problem: &'static str) -> BadObject {
    let object = bad(header, problem);
    let is_whole = |key: &ObjectKey| !key.to_string().contains(char::REPLACEMENT_CHARACTER);
    BadObject { key: object.key.filter(is_whole), ..object }
}

/// Something else than JSON came where JSON was asked for.
pub(super) fn not_json() -> Error {
    Error::new(
        ErrorKind::Malformed,
        "the answer is no JSON object; check for a proxy in between that answers in the server's place",
    )
}
