//! The documents of one server: those of the built-in kinds as they are, and what custom kinds add.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{custom, gnostic};
use crate::http::etag::ETag;
use crate::kinds::{GroupVersion, Kind, Registry};

/// A document and its mark.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) bytes: Bytes,
    pub(crate) etag: ETag,
}

/// Makes documents, and keeps those that cost something.
#[derive(Default)]
pub(crate) struct Documents {
    /// By path.
    custom: Mutex<BTreeMap<String, Made<Document>>>,
    older: Mutex<Option<Made<Older>>>,
}

/// Something, and the registrations that it was made from.
struct Made<T> {
    from: Vec<Arc<Kind>>,
    value: T,
}

/// The older document of all kinds, in both forms.
#[derive(Debug, Clone)]
pub(crate) struct Older {
    pub(crate) json: Bytes,
    pub(crate) protobuf: Bytes,
    /// Of the JSON: a kube-apiserver has one for both.
    pub(crate) etag: ETag,
}

impl Documents {
    /// The paths of all documents and the addresses that each is found at for ever.
    pub(crate) fn index(&self, registry: &Registry) -> Bytes {
        let mut index: Value = serde_json::from_slice(&super::index()).unwrap_or_default();
        if let Some(paths) = index.get_mut("paths").and_then(Value::as_object_mut) {
            for (path, document) in self.of_custom_kinds(registry) {
                let address = format!("/openapi/v3/{path}?hash={}", document.etag.as_str());
                paths.insert(path, json!({ "serverRelativeURL": address }));
            }
        }
        index.to_string().into()
    }

    /// The document of a path: `apis/apps/v1`.
    pub(crate) fn find(&self, registry: &Registry, path: &str) -> Option<Document> {
        if let Some(document) = self.of_custom_kinds(registry).remove(path) {
            return Some(document);
        }
        let bytes = super::document(path)?;
        let etag = built_in_etag(path).unwrap_or_else(|| ETag::of(&bytes));
        Some(Document { bytes, etag })
    }

    /// The older document.
    pub(crate) fn older(&self, registry: &Registry) -> Older {
        let kinds: Vec<Arc<Kind>> = registry.all().into_iter().filter(|kind| kind.custom).collect();
        let mut kept = self.older.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(made) if are_same(&made.from, &kinds) => made.value.clone(),
            _ => {
                let value = made_older(&kinds);
                kept.insert(Made { from: kinds, value }).value.clone()
            }
        }
    }

    /// The documents of all group versions with custom kinds, by path.
    fn of_custom_kinds(&self, registry: &Registry) -> BTreeMap<String, Document> {
        let mut kept = self.custom.lock().unwrap_or_else(PoisonError::into_inner);
        let mut current = BTreeMap::new();
        for version in registry.groups().iter().flat_map(|group| &group.versions) {
            let kinds: Vec<Arc<Kind>> = version.kinds.iter().filter(|kind| kind.custom).cloned().collect();
            if kinds.is_empty() {
                continue;
            }
            let path = format!("apis/{}", version.api_version);
            let value = match kept.remove(&path) {
                Some(made) if are_same(&made.from, &kinds) => made.value,
                _ => made(version, &path, &kinds),
            };
            current.insert(path, Made { from: kinds, value });
        }
        // What is not served any more is forgotten.
        *kept = current;
        kept.iter().map(|(path, made)| (path.clone(), made.value.clone())).collect()
    }
}

fn are_same(a: &[Arc<Kind>], b: &[Arc<Kind>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// The mark that the packed index has for a built-in document.
fn built_in_etag(path: &str) -> Option<ETag> {
    let index: Value = serde_json::from_slice(&super::index()).ok()?;
    let address = index.get("paths")?.get(path)?.get("serverRelativeURL")?.as_str()?;
    Some(ETag::known(address.rsplit_once("hash=")?.1))
}

/// The document of a group version with custom kinds. If it has built-in ones too, theirs is extended.
fn made(version: &GroupVersion, path: &str, kinds: &[Arc<Kind>]) -> Document {
    let built_in = super::document(path).and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut document: Value = built_in.unwrap_or_else(|| {
        json!({
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
            "paths": {},
            "components": {"schemas": {}},
        })
    });
    for kind in kinds {
        let Some(served) = kind.version(&version.name) else { continue };
        let parts = custom::v3_parts(kind, served);
        extend(&mut document, "/paths", parts.paths);
        extend(&mut document, "/components/schemas", parts.schemas);
    }
    let bytes: Bytes = document.to_string().into();
    Document { etag: ETag::of(&bytes), bytes }
}

fn made_older(kinds: &[Arc<Kind>]) -> Older {
    let mut json = super::v2();
    let mut document: Value = serde_json::from_slice(&json).unwrap_or_default();
    if !kinds.is_empty() {
        for kind in kinds {
            for version in &kind.versions {
                let parts = custom::v2_parts(kind, version);
                extend(&mut document, "/paths", parts.paths);
                extend(&mut document, "/definitions", parts.schemas);
            }
        }
        json = document.to_string().into();
    }
    Older { etag: ETag::of(&json), protobuf: gnostic::encode(&document).into(), json }
}

/// Adds to a map of a document what it does not have.
fn extend(document: &mut Value, pointer: &str, more: Map<String, Value>) {
    if let Some(Value::Object(map)) = document.pointer_mut(pointer) {
        for (key, value) in more {
            map.entry(key).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{CustomResource, Entry, Subresource};
    use crate::openapi::unpacked;

    /// A registry with one kind of the golden documents, and its group version.
    fn registered(resource: CustomResource, schema: &Value, subresources: &[&str]) -> (Registry, GroupVersion) {
        let registry = Registry::new();
        let mut kind = Kind::clone(&registry.register(resource).expect("a kind"));
        let version = &mut kind.versions[0];
        version.openapi = Some(Arc::new(schema.clone()));
        version.subresources = subresources
            .iter()
            .map(|name| Subresource { name: (*name).to_owned(), verbs: Vec::new(), entry: Entry::default() })
            .collect();
        let (name, api_version) = (version.name.clone(), version.api_version.clone());
        (registry, GroupVersion { name, api_version, kinds: vec![Arc::new(kind)] })
    }

    #[test]
    fn the_documents_of_custom_kinds_are_those_of_a_kube_apiserver() {
        let golden: Value =
            serde_json::from_slice(&unpacked(include_bytes!("../../data/openapi-golden.json.gz"))).expect("JSON");
        let resource = CustomResource::namespaced("aa.d1.example.com", "v1", "BeTwo", "betwos");
        let (_, version) = registered(resource, &golden["schema"], &["status", "scale"]);
        let document: Value = serde_json::from_slice(&made(&version, "apis/none", &version.kinds).bytes).expect("JSON");
        assert_eq!(document, golden["v3"]);
        let parts = custom::v2_parts(&version.kinds[0], &version.kinds[0].versions[0]);
        assert_eq!(Value::Object(parts.paths), golden["v2"]["paths"]);
        assert_eq!(Value::Object(parts.schemas), golden["v2"]["definitions"]);

        let resource = CustomResource::cluster("aa.d1.example.com", "v1alpha1", "AlOne", "alwos");
        let (_, version) = registered(resource, &golden["cluster"]["schema"], &[]);
        let document: Value = serde_json::from_slice(&made(&version, "apis/none", &version.kinds).bytes).expect("JSON");
        assert_eq!(document, golden["cluster"]["v3"]);
    }

    #[test]
    fn documents_are_made_once_and_anew_when_a_kind_comes() {
        let registry = Registry::new();
        let documents = Documents::default();
        assert_eq!(documents.index(&registry), super::super::index());
        let before = documents.older(&registry);
        assert_eq!(before.json, super::super::v2());
        let order = CustomResource::namespaced("shop.example.com", "v1", "Order", "orders");
        registry.register(order.clone()).expect("a kind");
        let first = documents.find(&registry, "apis/shop.example.com/v1").expect("a document");
        let again = documents.find(&registry, "apis/shop.example.com/v1").expect("a document");
        assert_eq!(first.bytes.as_ptr(), again.bytes.as_ptr());
        let older = documents.older(&registry);
        assert_ne!(older.etag, before.etag);
        assert_eq!(documents.older(&registry).protobuf.as_ptr(), older.protobuf.as_ptr());
        registry.register(order.with_status()).expect("a kind");
        let changed = documents.find(&registry, "apis/shop.example.com/v1").expect("a document");
        assert_ne!(changed.etag, first.etag);
        assert!(documents.find(&registry, "apis/shop.example.com/v2").is_none());
    }
}
