//! What an informer is about.

use std::fmt;

use kube_core::ApiResource;

use super::InformerOptions;
use crate::Scope;

/// Which objects an informer keeps, and how much of each. Two informers of a factory with one subject are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject(Inner);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Inner {
    Objects {
        group: String,
        plural: String,
        version: String,
        metadata_only: bool,
        scope: Scope,
        labels: Option<String>,
        fields: Option<String>,
    },
    Special(String),
}

impl Subject {
    pub(super) fn new(resource: &ApiResource, metadata_only: bool, options: &InformerOptions) -> Self {
        Self(Inner::Objects {
            group: resource.group.clone(),
            plural: resource.plural.clone(),
            version: resource.version.clone(),
            metadata_only,
            scope: options.scope.clone().unwrap_or_default(),
            labels: options.labels.clone(),
            fields: options.fields.clone(),
        })
    }

    /// One that somebody has made a constructor for.
    pub(super) fn special(name: String) -> Self {
        Self(Inner::Special(name))
    }

    /// Whether it is about objects of a resource, all or some.
    pub fn is_of(&self, group: &str, plural: &str) -> bool {
        matches!(&self.0, Inner::Objects { group: of, plural: name, .. } if of == group && name == plural)
    }

    /// Which of the resource's objects, and how much of each; empty if all of all.
    pub(super) fn selection(&self) -> String {
        let mut text = String::new();
        let Inner::Objects { scope, labels, fields, metadata_only, .. } = &self.0 else { return text };
        match scope {
            Scope::All => {}
            Scope::Namespace(namespace) => text += &format!(" in namespace {namespace}"),
            Scope::Namespaces(namespaces) => {
                let names: Vec<&str> = namespaces.iter().map(String::as_str).collect();
                text += &format!(" in namespaces {}", names.join(", "));
            }
        }
        for (what, selector) in [("labels", labels), ("fields", fields)] {
            if let Some(selector) = selector {
                text += &format!(" with {what} {selector}");
            }
        }
        if *metadata_only {
            text += " (metadata only)";
        }
        text
    }
}

/// `deployments.apps in namespace shop with labels app=web (metadata only)`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Special(name) => return f.write_str(name),
            Inner::Objects { group, plural, .. } if group.is_empty() => f.write_str(plural)?,
            Inner::Objects { group, plural, .. } => write!(f, "{plural}.{group}")?,
        }
        f.write_str(&self.selection())
    }
}
