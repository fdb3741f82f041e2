//! Which kinds does the server have?
//!
//! All built-in kinds of Kubernetes 1.36, read from discovery documents of a real server, and the custom ones that a program
//! registered or a CustomResourceDefinition made. A [`Kind`] is what is stored; it is served in one or more [`Version`]s,
//! which differ in the `apiVersion` of their objects, and in the fields that their schemas have: there is no conversion.
//!
//! ```
//! use watchkeeper_apiserver::{ApiServer, CustomResource};
//!
//! let server = ApiServer::new();
//! server.register(CustomResource::namespaced("shop.example.com", "v1", "Order", "orders"))?;
//! let kind = server.kind("shop.example.com", "orders").ok_or("no such kind")?;
//! assert_eq!(kind.list_kind, "OrderList");
//! assert!(server.kind("", "pods").is_some_and(|pods| pods.namespaced));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod built_in;
mod custom;
pub(crate) mod events;
mod fields;
mod groups;
mod registry;
mod rules;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use built_in::server_version;
pub use custom::{CustomResource, InvalidResource};
pub(crate) use fields::FieldLabels;
pub(crate) use groups::{Group, GroupVersion, by_preference};
pub(crate) use registry::Registry;
pub(crate) use rules::{NameRule, Rules};

use crate::crds::Served;
use crate::schema::SchemaRef;

/// A kind of object, and how it is served.
#[derive(Debug, Clone, PartialEq)]
pub struct Kind {
    /// The API group; the core group is empty.
    pub group: String,
    /// `Pod`
    pub kind: String,
    /// `PodList`
    pub list_kind: String,
    /// `pods`, as in paths.
    pub plural: String,
    /// `pod`
    pub singular: String,
    /// `po`
    pub short_names: Vec<String>,
    /// `all`
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether it was registered or defined at run time. Such objects are written with sorted keys, and keep kind and apiVersion
    /// in lists.
    pub custom: bool,
    /// The versions that are served. Objects are stored in the first one, unless a CustomResourceDefinition says otherwise.
    pub versions: Vec<Version>,
    /// The version that objects are stored in, if it may be another than the first one that is served.
    pub(crate) storage: Option<Box<Version>>,
    /// Its CustomResourceDefinition is being deleted: no new objects.
    pub(crate) terminating: bool,
    pub(crate) fields: FieldLabels,
    pub(crate) rules: Rules,
    /// Where its objects are in the storage.
    pub(crate) id: usize,
}

/// A kind in one version of its group.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// `v1`
    pub name: String,
    /// `apps/v1`
    pub api_version: String,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// `status`, `scale`, ...
    pub subresources: Vec<Subresource>,
    /// How every object begins: `{"kind":"Pod","apiVersion":"v1",`.
    pub(crate) prefix: String,
    pub(crate) storage_version_hash: String,
    /// The `openAPIV3Schema` of a custom kind, as its definition says it; without one, objects may have anything.
    pub(crate) openapi: Option<Arc<Value>>,
    /// The types of a custom kind's fields; none, if nothing is known of them.
    pub(crate) schema: Option<SchemaRef>,
    /// What a CustomResourceDefinition says of it.
    pub(crate) served: Option<Arc<Served>>,
}

/// Something beneath an object that has verbs of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Subresource {
    /// `status`
    pub name: String,
    /// What can be done with it.
    pub verbs: Vec<String>,
    pub(crate) entry: Entry,
}

/// A line in the list of a group version's resources, in the order of Go's `APIResource`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) singular_name: String,
    pub(crate) namespaced: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) short_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) storage_version_hash: String,
}

impl Kind {
    /// `pods`, `deployments.apps`: how error texts call it.
    pub fn resource(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// The version of this name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version that objects are stored in.
    pub(crate) fn storage_version(&self) -> &Version {
        // A kind without one of its own is only ever made with one or more versions.
        self.storage.as_deref().unwrap_or_else(|| &self.versions[0])
    }

    /// Whether status is written apart from the rest.
    pub(crate) fn has_status(&self) -> bool {
        self.versions.iter().any(|version| version.subresource("status").is_some())
    }
}

impl Version {
    pub(crate) fn new(group: &str, name: &str, kind: &str, custom: bool) -> Self {
        let api_version = if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
        // Built-in objects are written in the order of Go's structs, custom ones with sorted keys.
        let prefix = match custom {
            false => format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","#),
            true => format!(r#"{{"apiVersion":"{api_version}","#),
        };
        Self {
            name: name.to_owned(),
            api_version,
            verbs: Vec::new(),
            subresources: Vec::new(),
            prefix,
            storage_version_hash: String::new(),
            openapi: None,
            schema: None,
            served: None,
        }
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether a verb is allowed.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }
}

/// `name.group`, or the name alone in the core group.
pub(crate) fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
