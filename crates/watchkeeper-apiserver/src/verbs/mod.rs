//! What can be done with objects?
//!
//! One file for each verb, all of one shape: `run` takes a [`Call`] and answers it. What the writing verbs have in
//! common is in `write`, what they refuse in `validate`, and what a new object gets in `initial`.
//!
//! ```
//! use k8s_openapi::api::core::v1::Node;
//! use kube_client::{Api, api::{DeleteParams, Patch, PatchParams}};
//! use serde_json::json;
//! use watchkeeper_apiserver::ApiServer;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::new();
//! let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "finalizers": ["example.com/hold"]}});
//! server.create(node)?;
//!
//! let nodes: Api<Node> = Api::all(server.client());
//! nodes.delete("n1", &DeleteParams::default()).await?;
//! assert!(nodes.get("n1").await?.metadata.deletion_timestamp.is_some());
//! let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
//! nodes.patch("n1", &PatchParams::default(), &patch).await?;
//! assert!(nodes.get_opt("n1").await?.is_none());
//! # Ok(()) }
//! ```

mod addresses;
pub(crate) mod admit;
mod apply;
pub(crate) mod binding;
mod continue_token;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod delete_collection;
pub(crate) mod eviction;
pub(crate) mod get;
mod initial;
pub(crate) mod list;
mod operations;
mod owner_references;
pub(crate) mod patch;
mod priorities;
pub(crate) mod reviews;
pub(crate) mod scale;
mod specs;
mod strategic;
pub(crate) mod update;
mod validate;
pub(crate) mod watch;
mod watch_stream;
mod write;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

pub(crate) use validate::validate;
pub(crate) use write::{is_finished, place};

use crate::access::User;
use crate::crds::objects;
use crate::defaults::VERSION_WAIT;
use crate::failure::Failure;
use crate::http::accept::Representation;
use crate::http::answer::Answer;
use crate::http::options::Options;
use crate::http::warnings::Warnings;
use crate::kinds::{Kind, Version};
use crate::selectors::{FieldSelector, LabelSelector};
use crate::server::Inner;
use crate::storage::{Document, Filter, Shape, Stored};
use crate::tables::Table;

/// A request for a resource, with everything read that it brought along.
pub(crate) struct Call {
    pub(crate) server: Arc<Inner>,
    pub(crate) kind: Arc<Kind>,
    /// One of the kind's versions.
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    /// `status`, `scale` or the like, or nothing.
    pub(crate) subresource: Option<String>,
    pub(crate) options: Options,
    pub(crate) representation: Representation,
    pub(crate) media_type: String,
    /// What the client calls itself.
    pub(crate) user_agent: String,
    pub(crate) body: Bytes,
    /// What the client is told beside the answer.
    pub(crate) warnings: Warnings,
    /// Who asks.
    pub(crate) user: Arc<User>,
}

impl Call {
    pub(crate) fn version(&self) -> &Version {
        self.kind.version(&self.version).unwrap_or_else(|| self.kind.storage_version())
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Whether status is written apart from the rest.
    pub(crate) fn has_status(&self) -> bool {
        if self.kind.custom { self.version().subresource("status").is_some() } else { self.kind.has_status() }
    }

    /// The object as it is stored: versions of a custom kind may have fields that the stored one has not.
    pub(crate) fn to_storage<'a>(&self, document: &'a Document) -> Cow<'a, Document> {
        if self.version().served.is_none() {
            return Cow::Borrowed(document);
        }
        let mut stored = document.clone();
        objects::to_storage(&self.kind, self.version(), &mut stored);
        Cow::Owned(stored)
    }

    /// A stored object in the version that was asked for.
    pub(crate) fn shown_version<'a>(&self, document: &'a Document) -> Cow<'a, Document> {
        if !objects::shows_less(&self.kind, self.version()) {
            return Cow::Borrowed(document);
        }
        let mut shown = document.clone();
        objects::to_version(self.version(), &mut shown);
        Cow::Owned(shown)
    }

    pub(crate) fn is_status(&self) -> bool {
        self.subresource.as_deref() == Some("status")
    }

    /// The key of the object of this name here.
    pub(crate) fn key_of(&self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }

    pub(crate) fn key(&self) -> String {
        self.key_of(self.name())
    }

    /// What all keys here begin with.
    pub(crate) fn prefix(&self) -> String {
        prefix(self.namespace.as_deref())
    }

    /// Which objects are meant.
    pub(crate) fn filter(&self) -> Result<Filter, Failure> {
        filter(&self.kind, self.namespace.as_deref(), self.name.as_deref(), &self.options)
    }

    /// How one object is shown.
    pub(crate) fn shape(&self) -> Shape {
        Shape { version: self.version.clone(), partial: matches!(self.representation, Representation::Metadata { .. }) }
    }

    /// How objects become rows, if that is asked for.
    pub(crate) fn table(&self) -> Result<Option<Table>, Failure> {
        match self.representation {
            Representation::Table { beta } => Table::new(&self.version, &self.options.include_object, beta).map(Some),
            _ => Ok(None),
        }
    }

    /// What Go calls an object of the kind, or a list of them.
    pub(crate) fn go_type(&self, name: &str) -> String {
        let is_list = name == self.kind.list_kind;
        match self.kind.group.split('.').next().unwrap_or_default() {
            _ if self.kind.custom => format!("unstructured.Unstructured{}", if is_list { "List" } else { "" }),
            "" | "events" => format!("core.{name}"),
            package => format!("{package}.{name}"),
        }
    }

    /// An answer with one object.
    pub(crate) fn shown(&self, status: StatusCode, object: &Stored) -> Result<Answer, Failure> {
        if self.representation == (Representation::Metadata { list: true }) {
            return Err(Failure::wrong_representation(format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list (*{})",
                self.go_type(&self.kind.kind)
            )));
        }
        Ok(match self.table()? {
            Some(table) => Answer::json(status, table.one(&self.kind, object, self.server.clock.timestamp())),
            None => Answer::json(status, self.shape().apply(&self.kind, object)),
        })
    }
}

/// Which objects a request means.
pub(crate) fn filter(
    kind: &Arc<Kind>,
    namespace: Option<&str>,
    name: Option<&str>,
    options: &Options,
) -> Result<Filter, Failure> {
    let bad = |text: String| Failure::bad_request(text);
    let labels: LabelSelector = options.label_selector.parse().map_err(|error| bad(format!("{error}")))?;
    // The old path of a watch on one object.
    let one = name.map(|name| format!("metadata.name={name}"));
    let fields = one.as_ref().unwrap_or(&options.field_selector);
    let fields: FieldSelector = fields.parse().map_err(|error| bad(format!("{error}")))?;
    let fields = fields.renamed(|name| kind.fields.resolve(name)).map_err(bad)?;
    Ok(Filter { kind: kind.clone(), prefix: prefix(namespace), labels, fields })
}

/// What all keys in a namespace begin with.
fn prefix(namespace: Option<&str>) -> String {
    namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default()
}

/// Waits for a version that a read must not be older than.
async fn reach(server: &Inner, revision: u64) -> Result<(), Failure> {
    match tokio::time::timeout(VERSION_WAIT, server.storage.reached(revision)).await {
        Ok(()) => Ok(()),
        Err(_) => Err(Failure::too_large_version(revision, server.storage.revision())),
    }
}
