//! Which kinds do CustomResourceDefinitions make, and what do these make of their objects?
//!
//! A definition is an object like any other. As soon as it is written its kind is served, with its schema, its subresources
//! and its columns; with it go its objects.
//!
//! ```
//! use serde_json::json;
//! use watchkeeper_apiserver::ApiServer;
//!
//! let server = ApiServer::new();
//! let spec = json!({"type": "object", "properties": {"size": {"type": "integer", "default": 3}}});
//! server.create(json!({
//!     "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
//!     "metadata": {"name": "orders.shop.example.com"},
//!     "spec": {
//!         "group": "shop.example.com", "scope": "Namespaced", "names": {"kind": "Order", "plural": "orders"},
//!         "versions": [{"name": "v1", "served": true, "storage": true,
//!                       "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
//!     },
//! }))?;
//! let order = json!({"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "o"}, "spec": {}});
//! let order = server.create(order)?;
//! assert!(order.json().windows(8).any(|part| part == br#""size":3"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - `definition`: what a definition says; `prepare`: what it leaves to the server; `faults`, `served_faults`, `openapi`,
//!   `structural` and `approval`: what is wrong with it.
//! - `names`: which names it gets; `life`: how it becomes a kind, and how that ends.
//! - `props`: a schema that is ready to be used; `check`, `numbers`, `formats`, `pattern`, `lists` and `embedded`: whether a value fits
//!   it; `fill` and `prune`: what a value gets, and what it loses.
//! - `objects`: all of that for the object of a request.
//!
//! Rules of `x-kubernetes-validations` are not evaluated.

mod approval;
mod check;
mod definition;
mod embedded;
mod faults;
mod fill;
mod formats;
mod hash;
mod life;
mod lists;
mod names;
mod numbers;
pub(crate) mod objects;
mod openapi;
mod path;
mod pattern;
mod prepare;
mod props;
mod prune;
mod schema_view;
mod served_faults;
mod structural;

use serde_json::Value;

pub(crate) use definition::{ColumnSpec, Definition, ScalePaths, Served};
pub(crate) use life::{Definitions, load, settle, unserved};
pub(crate) use prepare::{adopt, fill, prepare};

use crate::failure::{Cause, Failure};
use crate::kinds::Kind;
use crate::storage::Document;

/// What holds a deleted definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Whether a kind is that of the definitions.
pub(crate) fn is_definition(kind: &Kind) -> bool {
    !kind.custom && kind.plural == "customresourcedefinitions" && kind.group == "apiextensions.k8s.io"
}

/// What is wrong with a definition.
pub(crate) fn definition_faults(document: &Document, old: Option<&Document>) -> Result<Vec<Cause>, Failure> {
    let definition = Definition::of(document.as_value()).ok_or_else(|| {
        let text = "CustomResourceDefinition in version \"v1\" cannot be handled as a CustomResourceDefinition: a field has \
                    another type than it should have";
        Failure::bad_request(text)
    })?;
    let approval = approval::fault(document, old);
    let old = old.and_then(|old| Definition::of(old.as_value()));
    let mut causes = faults::faults(&definition, document.as_value(), old.as_ref());
    causes.extend(approval);
    Ok(causes)
}

/// What a client is told who writes a definition: what was so before is no news.
pub(crate) fn definition_warnings(old: Option<&Document>, document: &Document) -> Vec<String> {
    let known = old.map(warnings_of).unwrap_or_default();
    warnings_of(document).into_iter().filter(|warning| !known.contains(warning)).collect()
}

fn warnings_of(document: &Document) -> Vec<String> {
    let versions = document.as_value().pointer("/spec/versions").and_then(Value::as_array);
    let mut warnings: Vec<String> = Vec::new();
    for version in versions.into_iter().flatten() {
        let schema = version.pointer("/schema/openAPIV3Schema");
        for warning in schema.map(openapi::warnings).unwrap_or_default() {
            if !warnings.contains(&warning) && warnings.len() < 100 {
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// Marks a definition as one that is being deleted: its objects go first.
pub(crate) fn begin_deletion(document: &mut Document, now: &str) {
    if document.is_deleting() {
        document.set_meta("deletionGracePeriodSeconds", 0);
        return;
    }
    document.set_meta("deletionTimestamp", now);
    let mut finalizers: Vec<String> = document.finalizers().into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    document.set_meta("finalizers", finalizers);
    names::set_status(document, None, &[names::terminating(names::Deletion::Pending)], now);
}

/// A simple path of a definition as a JSON pointer: `.spec.replicas`.
pub(crate) fn simple_path(path: &str) -> Option<String> {
    let names = path.strip_prefix('.')?;
    let escaped = names.split('.').map(|name| name.replace('~', "~0").replace('/', "~1"));
    Some(escaped.fold(String::new(), |pointer, name| pointer + "/" + &name))
}
