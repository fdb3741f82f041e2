//! How do objects become rows? What `kubectl get` shows: columns for each kind, and the cells in them.
//!
//! A client asks for a [`Table`] in its `Accept` header (`as=Table`), and says with `includeObject` what is to come with the
//! cells: the object's metadata, the whole object or nothing. The parts, from the inside out:
//!
//! - `subject`: an object that may be anything; `age`, `quantity`, `labels`: how values are written.
//! - `cells`: how a cell is made of an object. `pods`, `nodes`, `workloads`, `networking`, `volumes`, `events` and
//!   `policies` have the ones that are more than a path.
//! - `layout`: which cells a kind's rows have; `columns`: what stands above them; `filled`: what is not in the object, and
//!   would be on a real server.
//!
//! ```
//! use http_body_util::{BodyExt, Empty};
//! use tower::ServiceExt;
//! use watchkeeper_apiserver::ApiServer;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let request = http::Request::get("/api/v1/namespaces/default?includeObject=None")
//!     .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
//!     .body(Empty::<bytes::Bytes>::new())?;
//! let response = ApiServer::new().service().oneshot(request).await?;
//! let body = response.into_body().collect().await?.to_bytes();
//! let table: serde_json::Value = serde_json::from_slice(&body)?;
//! assert_eq!(table["columnDefinitions"][1]["name"], "Status");
//! assert_eq!(table["rows"][0]["cells"][1], "Active");
//! # Ok(()) }
//! ```
//!
//! Counterparts: `asTable` in `k8s.io/apiserver/pkg/endpoints/handlers/response.go`, and the printers of
//! `k8s.io/kubernetes/pkg/printers`.

mod age;
mod cells;
mod columns;
mod events;
mod filled;
mod json_path;
mod labels;
mod layout;
mod networking;
mod nodes;
mod pods;
mod policies;
mod printer;
pub(crate) mod quantity;
mod subject;
mod volumes;
mod workloads;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use self::cells::Cell;
pub(crate) use self::printer::Printer;
use self::subject::Subject;
use crate::failure::{Cause, Failure};
use crate::kinds::{Kind, Version};
use crate::storage::{EventType, Shape, Stored};
use crate::validation::quoted;

const NONE: &str = "<none>";
const UNSET: &str = "<unset>";

/// The annotation of the bookmark behind the initial events. Whoever waits for it sees it in any case.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// A request for objects as rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// The version in which whole objects are shown.
    shape: Shape,
    include: Include,
    /// Of the older `meta.k8s.io/v1beta1`, which differs in nothing but its name.
    beta: bool,
}

/// What a watch that shows rows must know of a bookmark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bookmark<'a> {
    pub(crate) revision: u64,
    /// Its metadata as JSON.
    pub(crate) metadata: &'a str,
    /// The whole of it as JSON.
    pub(crate) object: &'a str,
}

/// What comes with the cells of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Include {
    Nothing,
    Metadata,
    Object,
}

/// One row while it is made.
struct Row<'a> {
    object: &'a Value,
    /// The columns of a custom kind.
    printer: Option<&'a Printer>,
    cells: &'static [Cell],
    subject: Subject<'a>,
    is_pod: bool,
}

impl Table {
    /// `include` is the value of `includeObject`.
    pub(crate) fn new(version: &str, include: &str, beta: bool) -> Result<Self, Failure> {
        let include = match include {
            "None" => Include::Nothing,
            "" | "Metadata" => Include::Metadata,
            "Object" => Include::Object,
            _ => {
                let text = "must be 'Metadata', 'Object', 'None', or empty";
                let cause = Cause::invalid("includeObject", quoted(include), text);
                return Err(Failure::bad_request(format!(
                    "Unable to convert to Table as requested: {}: {}",
                    cause.field, cause.message
                )));
            }
        };
        Ok(Self { shape: Shape { version: version.to_owned(), partial: false }, include, beta })
    }

    /// The parts of the table of a list whose metadata is given as JSON. Metadata and objects are not copied.
    pub(crate) fn list(&self, kind: &Arc<Kind>, metadata: &str, items: &[Arc<Stored>], now: Timestamp) -> Vec<Bytes> {
        let mut parts = vec![self.head(metadata), self.columns(kind)];
        if items.is_empty() && layout::is_plain(layout::cells(kind)) {
            parts.push(Bytes::from_static(b",\"rows\":null}\n"));
            return parts;
        }
        parts.push(Bytes::from_static(b",\"rows\":["));
        for (i, object) in items.iter().enumerate() {
            if i > 0 {
                parts.push(Bytes::from_static(b","));
            }
            self.row(kind, object, now, &mut parts);
        }
        parts.push(Bytes::from_static(b"]}\n"));
        parts
    }

    /// The table of one object.
    pub(crate) fn one(&self, kind: &Arc<Kind>, object: &Stored, now: Timestamp) -> Bytes {
        self.single(kind, object, now, true)
    }

    /// The line of a watch that shows an object. Only the first line of a watch has columns.
    pub(crate) fn event(
        &self,
        event: EventType,
        kind: &Arc<Kind>,
        object: &Stored,
        now: Timestamp,
        columns: bool,
    ) -> Bytes {
        line(event.name(), &self.single(kind, object, now, columns))
    }

    /// The line of a watch that says how far it has come.
    pub(crate) fn bookmark(&self, kind: &Arc<Kind>, bookmark: Bookmark<'_>, now: Timestamp, columns: bool) -> Bytes {
        let tree: Value = serde_json::from_str(bookmark.object).unwrap_or_default();
        let row = Row::new(kind, self.shape.version_of(kind), &tree, now);
        let (head, tail) = match self.include {
            Include::Nothing if !row.is_initial_end() => (Bytes::new(), "null".to_owned()),
            Include::Object => (Bytes::new(), bookmark.object.to_owned()),
            _ => (self.partial_head(), format!("{}}}", bookmark.metadata)),
        };
        let mut parts = self.start(kind, bookmark.revision, columns);
        parts.push(format!("{{{},\"object\":", row.members()).into());
        parts.extend([head, tail.into(), Bytes::from_static(b"}]}")]);
        line("BOOKMARK", &parts.concat())
    }

    fn single(&self, kind: &Arc<Kind>, object: &Stored, now: Timestamp, columns: bool) -> Bytes {
        let mut parts = self.start(kind, object.revision(), columns);
        self.row(kind, object, now, &mut parts);
        parts.push(Bytes::from_static(b"]}"));
        parts.concat().into()
    }

    /// Everything before the only row of a table.
    fn start(&self, kind: &Kind, revision: u64, columns: bool) -> Vec<Bytes> {
        // What nobody wrote has no version.
        let metadata = match revision {
            0 => "{}".to_owned(),
            revision => format!(r#"{{"resourceVersion":"{revision}"}}"#),
        };
        let columns = match columns || always_has_columns(kind) {
            true => self.columns(kind),
            false => Bytes::from_static(b"null"),
        };
        vec![self.head(&metadata), columns, Bytes::from_static(b",\"rows\":[")]
    }

    /// Everything before the columns.
    fn head(&self, metadata: &str) -> Bytes {
        let version = self.meta_version();
        format!(r#"{{"kind":"Table","apiVersion":"{version}","metadata":{metadata},"columnDefinitions":"#).into()
    }

    fn columns(&self, kind: &Kind) -> Bytes {
        columns::columns(kind, self.shape.version_of(kind))
    }

    fn row(&self, kind: &Arc<Kind>, object: &Stored, now: Timestamp, parts: &mut Vec<Bytes>) {
        let tree = match kind.custom {
            // Versions of a custom kind may show different fields.
            true => serde_json::from_slice(&self.shape.apply(kind, object)).unwrap_or_default(),
            false => {
                let mut tree = object.document_as(kind).into_value();
                filled::fill(&kind.group, &kind.plural, &mut tree);
                tree
            }
        };
        let row = Row::new(kind, self.shape.version_of(kind), &tree, now);
        parts.push(format!("{{{},\"object\":", row.members()).into());
        match self.include {
            Include::Nothing if !row.is_initial_end() => parts.push(Bytes::from_static(b"null}")),
            Include::Object => {
                parts.push(self.shape.apply(kind, object));
                parts.push(Bytes::from_static(b"}"));
            }
            _ => {
                parts.push(self.partial_head());
                parts.push(object.metadata(kind));
                parts.push(Bytes::from_static(b"}}"));
            }
        }
    }

    /// How an object's metadata begins.
    fn partial_head(&self) -> Bytes {
        let version = self.meta_version();
        format!(r#"{{"kind":"PartialObjectMetadata","apiVersion":"{version}","metadata":"#).into()
    }

    fn meta_version(&self) -> &'static str {
        if self.beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" }
    }
}

impl<'a> Row<'a> {
    fn new(kind: &Kind, version: &'a Version, object: &'a Value, now: Timestamp) -> Self {
        let is_pod = kind.group.is_empty() && kind.plural == "pods";
        let printer = printer::of(version.served.as_deref());
        Self { object, printer, cells: layout::cells(kind), subject: Subject::new(object, now), is_pod }
    }

    /// The members of the row but the object.
    fn members(&self) -> String {
        let cells: Vec<Value> = match self.printer {
            Some(printer) => printer.cells(self.object, self.subject),
            None => self.cells.iter().map(|cell| cell.of(self.subject)).collect(),
        };
        let conditions = match self.is_pod.then(|| pods::conditions(self.subject)).flatten() {
            Some(conditions) => format!(",\"conditions\":{conditions}"),
            None => String::new(),
        };
        format!("\"cells\":{}{conditions}", Value::Array(cells))
    }

    fn is_initial_end(&self) -> bool {
        self.subject.annotation(INITIAL_END) == Some("true")
    }
}

/// A label selector in one line, as a `Scale` has it; none, if it is not valid.
pub(crate) fn label_selector(selector: &Value) -> Option<String> {
    labels::requirements(Subject::new(selector, Timestamp::UNIX_EPOCH), "")
}

/// Every line of a watch has them where a kube-apiserver's aggregator prints the rows.
fn always_has_columns(kind: &Kind) -> bool {
    kind.group == "apiregistration.k8s.io" && !kind.custom
}

fn line(event: &str, table: &[u8]) -> Bytes {
    [b"{\"type\":\"", event.as_bytes(), b"\",\"object\":", table, b"}\n"].concat().into()
}
