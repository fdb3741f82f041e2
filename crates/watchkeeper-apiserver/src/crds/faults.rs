//! What is wrong with a CustomResourceDefinition?
//!
//! Counterpart: `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`. Inside a kube-apiserver, what all
//! versions have in common stands above them: that is why its complaints speak of `spec.validation` and the like.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check::{Checker, are_enough, clipped};
use super::definition::{Definition, Names, VersionSpec};
use super::path::Path;
use super::{openapi, served_faults};
use crate::defaults::{CAUSES, PATTERNS};
use crate::failure::Cause;
use crate::validation::{dns_1035_label, quoted, subdomain};

/// What is wrong with a definition, given what it was. `object` is the same as a tree.
pub(crate) fn faults(definition: &Definition, object: &Value, old: Option<&Definition>) -> Vec<Cause> {
    let spec = &definition.spec;
    let mut faults = Faults { causes: Vec::new(), shared: Shared::of(&spec.versions), checker: Checker::new() };
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if old.is_none() && name != format!("{}.{}", spec.names.plural, spec.group) {
        faults.invalid("metadata.name", quoted(name), "must be spec.names.plural+\".\"+spec.group");
    }
    faults.group(&spec.group);
    match spec.scope.as_str() {
        "" => faults.required("spec.scope"),
        "Cluster" | "Namespaced" => {}
        scope => {
            let cause = Cause::unsupported("spec.scope", quoted(scope), &["Cluster", "Namespaced"]);
            faults.causes.push(cause);
        }
    }
    if object.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
        let text =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        faults.invalid("spec.preserveUnknownFields", true, text);
    }
    faults.versions(&spec.versions, object);
    faults.required_names(&spec.names);
    faults.names(&spec.names, "spec.names");
    faults.common(&spec.versions);
    faults.conversion(object.pointer("/spec/conversion"));
    if let Some(old) = old {
        faults.immutable(definition, old);
    }
    faults.status(definition, old.is_none());
    faults.causes.truncate(CAUSES);
    faults.causes
}

/// What all versions say alike.
#[derive(Debug, Clone, Copy, Default)]
struct Shared {
    schema: bool,
    subresources: bool,
    columns: bool,
    selectable: bool,
}

impl Shared {
    fn of(versions: &[VersionSpec]) -> Self {
        let Some((first, others)) = versions.split_first() else { return Self::default() };
        let all = |same: &dyn Fn(&VersionSpec) -> bool| others.iter().all(same);
        Self {
            schema: all(&|other| other.schema == first.schema),
            subresources: all(&|other| other.subresources == first.subresources),
            columns: all(&|other| other.additional_printer_columns == first.additional_printer_columns),
            selectable: all(&|other| other.selectable_fields == first.selectable_fields),
        }
    }
}

struct Faults {
    causes: Vec<Cause>,
    shared: Shared,
    /// Of all defaults together: a definition may have many versions.
    checker: Checker,
}

impl Faults {
    fn group(&mut self, group: &str) {
        let wrong = subdomain(group);
        match group {
            "" => self.required("spec.group"),
            group if !wrong.is_empty() => self.invalid("spec.group", quoted(group), wrong.join(",")),
            group if !group.contains('.') => {
                self.invalid("spec.group", quoted(group), "should be a domain with at least one dot");
            }
            _ => {}
        }
    }

    fn versions(&mut self, versions: &[VersionSpec], object: &Value) {
        let shared = self.shared;
        let schema = |version: &VersionSpec| version.schema.as_ref().is_none_or(|schema| schema.schema.is_none());
        for (i, _) in versions.iter().enumerate().filter(|(_, version)| schema(version)) {
            self.required(&format!("spec.versions[{i}].schema.openAPIV3Schema"));
        }
        // One schema counts its patterns itself.
        let schemas = versions.iter().filter_map(schema_of);
        let too_many_patterns = !shared.schema && openapi::have_too_many_patterns(schemas);
        if too_many_patterns {
            let text = format!("there are more than {PATTERNS} different patterns in their schemas");
            self.invalid("spec.versions", "\"\"", text);
        }
        let mut names = BTreeSet::new();
        let mut unique = true;
        for (i, version) in versions.iter().enumerate() {
            let at = format!("spec.versions[{i}]");
            unique &= names.insert(version.name.as_str());
            let wrong = dns_1035_label(&version.name);
            if !wrong.is_empty() {
                self.invalid(&format!("{at}.name"), quoted(&version.name), wrong.join(","));
            }
            self.deprecation(version, &at);
            if !shared.schema && !too_many_patterns {
                self.schema(version, &format!("{at}.schema.openAPIV3Schema"));
            }
            if !shared.subresources {
                self.add(served_faults::subresources(version.subresources.as_ref(), &format!("{at}.subresources")));
            }
            if !shared.columns {
                let at = format!("{at}.additionalPrinterColumns");
                self.add(served_faults::columns(&version.additional_printer_columns, &at));
            }
            if !shared.selectable {
                self.add(served_faults::selectable(version, &format!("{at}.selectableFields")));
            }
        }
        let shown = || shown_versions(versions, object, shared);
        if !unique {
            self.invalid("spec.versions", shown(), "must contain unique version names");
        }
        if versions.iter().filter(|version| version.storage).count() != 1 {
            self.invalid("spec.versions", shown(), "must have exactly one version marked as storage version");
        }
        if let Some(first) = versions.first() {
            let wrong = dns_1035_label(&first.name);
            if !wrong.is_empty() {
                self.invalid("spec.version", quoted(&first.name), wrong.join(","));
            }
        }
    }

    /// What stands above the versions.
    fn common(&mut self, versions: &[VersionSpec]) {
        let Some(first) = versions.first() else { return };
        if self.shared.schema {
            let has_status = versions.iter().any(has_status);
            if let Some(schema) = schema_of(first) {
                let path = "spec.validation.openAPIV3Schema";
                self.causes.extend(openapi::faults(schema, has_status, &Path::root(path), &mut self.checker));
            }
        }
        if self.shared.subresources {
            self.add(served_faults::subresources(first.subresources.as_ref(), "spec.subresources"));
        }
        if self.shared.columns {
            self.add(served_faults::columns(&first.additional_printer_columns, "spec.additionalPrinterColumns"));
        }
        if self.shared.selectable {
            self.add(served_faults::selectable(first, "spec.selectableFields"));
        }
    }

    fn schema(&mut self, version: &VersionSpec, path: &str) {
        if let Some(schema) = schema_of(version) {
            let faults = openapi::faults(schema, has_status(version), &Path::root(path), &mut self.checker);
            self.causes.extend(faults);
        }
    }

    fn deprecation(&mut self, version: &VersionSpec, at: &str) {
        let Some(warning) = &version.deprecation_warning else { return };
        let at = format!("{at}.deprecationWarning");
        let mut wrong = Vec::new();
        if !version.deprecated {
            wrong.push("can only be set for deprecated versions".to_owned());
        } else {
            if warning.len() > 256 {
                wrong.push("must be <= 256 characters long".to_owned());
            }
            if warning.is_empty() {
                wrong.push("must not be an empty string".to_owned());
            }
            if let Some((i, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
                wrong.push(format!(
                    "must only contain printable UTF-8 characters; non-printable character found at index {i}"
                ));
            }
        }
        for text in wrong {
            self.invalid(&at, quoted(&clipped(warning)), text);
        }
    }

    fn required_names(&mut self, names: &Names) {
        for (field, name) in [
            ("plural", &names.plural),
            ("singular", &names.singular),
            ("kind", &names.kind),
            ("listKind", &names.list_kind),
        ] {
            if name.is_empty() {
                self.required(&format!("spec.names.{field}"));
            }
        }
    }

    fn names(&mut self, names: &Names, at: &str) {
        let mixed = "may have mixed case, but should otherwise match: ";
        for (field, name, prefix) in [
            ("plural", &names.plural, ""),
            ("singular", &names.singular, ""),
            ("kind", &names.kind, mixed),
            ("listKind", &names.list_kind, mixed),
        ] {
            let checked = if prefix.is_empty() { name.clone() } else { name.to_lowercase() };
            let wrong = dns_1035_label(&checked);
            if !name.is_empty() && !wrong.is_empty() {
                self.invalid(&format!("{at}.{field}"), quoted(name), format!("{prefix}{}", wrong.join(",")));
            }
        }
        self.labels(&names.short_names, &format!("{at}.shortNames"));
        if !names.kind.is_empty() && names.kind == names.list_kind {
            let text = "kind and listKind may not be the same";
            self.invalid(&format!("{at}.listKind"), quoted(&names.list_kind), text);
        }
        self.labels(&names.categories, &format!("{at}.categories"));
    }

    fn labels(&mut self, labels: &[String], at: &str) {
        for (i, label) in labels.iter().enumerate() {
            if are_enough(&self.causes) {
                return;
            }
            let wrong = dns_1035_label(label);
            if !wrong.is_empty() {
                self.invalid(&format!("{at}[{i}]"), quoted(label), wrong.join(","));
            }
        }
    }

    fn conversion(&mut self, conversion: Option<&Value>) {
        let Some(conversion) = conversion.filter(|conversion| conversion.is_object()) else { return };
        let at = |field: &str| format!("spec.conversion.{field}");
        let has = |field: &str| conversion.get(field).is_some_and(|value| !value.is_null() && *value != json!([]));
        let client = conversion.pointer("/webhook/clientConfig").is_some_and(Value::is_object);
        let versions = conversion.pointer("/webhook/conversionReviewVersions").and_then(Value::as_array);
        match conversion.get("strategy").and_then(Value::as_str).unwrap_or_default() {
            "None" if has("webhook") => {
                let text = "should not be set when strategy is not set to Webhook";
                self.causes.push(Cause::forbidden(&at("webhookClientConfig"), text));
            }
            "None" => {}
            "Webhook" => {
                if !client {
                    let text = "required when strategy is set to Webhook";
                    self.causes.push(Cause::required(&at("webhookClientConfig"), text));
                }
                if versions.is_none_or(Vec::is_empty) {
                    self.required(&at("conversionReviewVersions"));
                }
            }
            "" => self.required(&at("strategy")),
            other => {
                let cause = Cause::unsupported(&at("strategy"), quoted(other), &["None", "Webhook"]);
                self.causes.push(cause);
            }
        }
    }

    fn immutable(&mut self, definition: &Definition, old: &Definition) {
        let (spec, old_spec) = (&definition.spec, &old.spec);
        let established = old.is_true("Established");
        for (field, new, old, is_fixed) in [
            ("scope", &spec.scope, &old_spec.scope, established),
            ("names.kind", &spec.names.kind, &old_spec.names.kind, established),
            ("group", &spec.group, &old_spec.group, true),
            ("names.plural", &spec.names.plural, &old_spec.names.plural, true),
        ] {
            if is_fixed && new != old {
                self.invalid(&format!("spec.{field}"), quoted(new), "field is immutable");
            }
        }
    }

    fn status(&mut self, definition: &Definition, is_new: bool) {
        let (versions, stored) = (&definition.spec.versions, &definition.status.stored_versions);
        self.names(&definition.status.accepted_names, "status.acceptedNames");
        let at = "status.storedVersions";
        let shown = || if stored.is_empty() { Value::Null } else { Value::from(stored.clone()) };
        if stored.is_empty() {
            self.invalid(at, "null", "must have at least one stored version");
        }
        let known: BTreeSet<&str> = versions.iter().map(|version| version.name.as_str()).collect();
        for (i, version) in stored.iter().enumerate().filter(|_| !is_new) {
            if !known.contains(version.as_str()) {
                let text = format!(
                    "missing from spec.versions; {version} was previously a storage version, and must remain in \
                     spec.versions until a storage migration ensures no data remains persisted in {version} and removes \
                     {version} from status.storedVersions"
                );
                self.invalid(&format!("{at}[{i}]"), quoted(version), text);
            }
        }
        let storage: Vec<&str> = versions.iter().filter(|v| v.storage).map(|v| v.name.as_str()).collect();
        if let Some(last) = storage.last().filter(|_| is_new && storage.len() > 1 && !stored.is_empty()) {
            self.invalid(at, shown(), format!("must have the storage version {last}"));
        }
    }

    fn add(&mut self, causes: Vec<Cause>) {
        self.causes.extend(causes);
    }

    fn required(&mut self, field: &str) {
        self.causes.push(Cause::required(field, ""));
    }

    fn invalid(&mut self, field: &str, value: impl std::fmt::Display, text: impl std::fmt::Display) {
        self.causes.push(Cause::invalid(field, value, text));
    }
}

pub(super) fn schema_of(version: &VersionSpec) -> Option<&Value> {
    version.schema.as_ref()?.schema.as_ref()
}

fn has_status(version: &VersionSpec) -> bool {
    version.subresources.as_ref().is_some_and(|subresources| subresources.status.is_some())
}

/// Versions as a kube-apiserver shows them: its own types, without what stands above them.
fn shown_versions(versions: &[VersionSpec], object: &Value, shared: Shared) -> String {
    if versions.is_empty() {
        let is_list = object.pointer("/spec/versions").is_some_and(Value::is_array);
        return if is_list { "[]".to_owned() } else { "null".to_owned() };
    }
    let shown: Vec<String> = versions
        .iter()
        .map(|version| {
            let part = |is_shared: bool, is_there: bool| if is_shared || !is_there { "null" } else { "{}" };
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\
                 \"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
                quoted(&version.name),
                version.served,
                version.storage,
                version.deprecated,
                version.deprecation_warning.as_deref().map_or_else(|| "null".to_owned(), quoted),
                part(shared.schema, version.schema.is_some()),
                part(shared.subresources, version.subresources.is_some()),
                part(shared.columns, !version.additional_printer_columns.is_empty()),
                part(shared.selectable, !version.selectable_fields.is_empty()),
            )
        })
        .collect();
    clipped(&format!("[{}]", shown.join(",")))
}
