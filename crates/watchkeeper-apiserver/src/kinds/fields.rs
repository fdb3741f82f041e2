//! The fields that the objects of a kind can be selected by, beside name and namespace.
//!
//! Counterparts: `AddFieldLabelConversionFunc` and `ToSelectableFields` of each kind in `k8s.io/kubernetes`.

use serde_json::Value;

/// One field: its name in selectors, where its value stands, and what an object that lacks it has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    name: String,
    pointer: String,
    default: &'static str,
}

/// The fields of a kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldLabels {
    fields: Vec<Field>,
    error: FieldError,
    kind: String,
    namespaced: bool,
}

/// How a kind refuses a field that it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldError {
    /// Kinds with fields of their own.
    NotSupported,
    /// Kinds without.
    NotKnown,
    Job,
    ResourceSlice,
}

const POD: &[(&str, &str, &str)] = &[
    ("spec.nodeName", "/spec/nodeName", ""),
    ("spec.restartPolicy", "/spec/restartPolicy", ""),
    ("spec.schedulerName", "/spec/schedulerName", ""),
    ("spec.serviceAccountName", "/spec/serviceAccountName", ""),
    ("spec.hostNetwork", "/spec/hostNetwork", "false"),
    ("status.phase", "/status/phase", ""),
    ("status.podIP", "/status/podIPs/0/ip", ""),
    // Accepted, and never set: as in Kubernetes, nothing but an empty value matches.
    ("status.podIPs", "", ""),
    ("status.nominatedNodeName", "/status/nominatedNodeName", ""),
];

const EVENT: &[(&str, &str, &str)] = &[
    ("involvedObject.kind", "/involvedObject/kind", ""),
    ("involvedObject.namespace", "/involvedObject/namespace", ""),
    ("involvedObject.name", "/involvedObject/name", ""),
    ("involvedObject.uid", "/involvedObject/uid", ""),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion", ""),
    ("involvedObject.resourceVersion", "/involvedObject/resourceVersion", ""),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath", ""),
    ("reason", "/reason", ""),
    ("reportingComponent", "/reportingComponent", ""),
    ("source", "/source/component", ""),
    ("type", "/type", ""),
];

const EVENTS_K8S_IO_EVENT: &[(&str, &str, &str)] = &[
    ("reason", "/reason", ""),
    ("regarding.kind", "/regarding/kind", ""),
    ("regarding.namespace", "/regarding/namespace", ""),
    ("regarding.name", "/regarding/name", ""),
    ("regarding.uid", "/regarding/uid", ""),
    ("regarding.apiVersion", "/regarding/apiVersion", ""),
    ("regarding.resourceVersion", "/regarding/resourceVersion", ""),
    ("regarding.fieldPath", "/regarding/fieldPath", ""),
    ("reportingController", "/reportingController", ""),
    ("type", "/type", ""),
];

impl FieldLabels {
    /// The fields of a built-in kind.
    pub(super) fn of(group: &str, kind: &str) -> Self {
        use FieldError::{Job, NotKnown, NotSupported, ResourceSlice};
        let (error, namespaced, fields): (_, _, &[(&str, &str, &'static str)]) = match (group, kind) {
            ("", "Pod") => (NotSupported, true, POD),
            ("", "Node") => (NotSupported, false, &[("spec.unschedulable", "/spec/unschedulable", "false")]),
            ("", "ReplicationController") => (NotSupported, true, &[("status.replicas", "/status/replicas", "0")]),
            ("", "Event") => (NotSupported, true, EVENT),
            ("events.k8s.io", "Event") => (NotSupported, true, EVENTS_K8S_IO_EVENT),
            ("", "Namespace") => (NotSupported, false, &[("status.phase", "/status/phase", "")]),
            ("", "Secret") => (NotSupported, true, &[("type", "/type", "")]),
            ("", "Service") => {
                (NotSupported, true, &[("spec.clusterIP", "/spec/clusterIP", ""), ("spec.type", "/spec/type", "")])
            }
            ("batch", "Job") => (Job, true, &[("status.successful", "/status/succeeded", "0")]),
            ("certificates.k8s.io", "CertificateSigningRequest") => {
                (NotSupported, false, &[("spec.signerName", "/spec/signerName", "")])
            }
            ("resource.k8s.io", "ResourceSlice") => {
                (ResourceSlice, false, &[("spec.nodeName", "/spec/nodeName", ""), ("spec.driver", "/spec/driver", "")])
            }
            _ => (NotKnown, true, &[]),
        };
        let fields = fields
            .iter()
            .map(|(name, pointer, default)| Field { name: (*name).into(), pointer: (*pointer).into(), default })
            .collect();
        Self { fields, error, kind: kind.to_owned(), namespaced }
    }

    /// The `selectableFields` of a custom kind: `.spec.colour`.
    pub(crate) fn custom(kind: &str, namespaced: bool, paths: &[String]) -> Self {
        let fields = paths
            .iter()
            .map(|path| Field {
                name: path.trim_start_matches('.').to_owned(),
                pointer: format!("/{}", path.trim_start_matches('.').replace('.', "/")),
                default: "",
            })
            .collect();
        Self { fields, error: FieldError::NotSupported, kind: kind.to_owned(), namespaced }
    }

    /// The name under which a field is kept, or why there is none.
    pub(crate) fn resolve(&self, name: &str) -> Result<String, String> {
        match name {
            "metadata.name" => return Ok(name.to_owned()),
            "metadata.namespace" if self.namespaced => return Ok(name.to_owned()),
            "spec.host" if self.kind == "Pod" => return Ok("spec.nodeName".to_owned()),
            _ => {}
        }
        if self.position(name).is_some() {
            return Ok(name.to_owned());
        }
        Err(match self.error {
            FieldError::NotSupported => format!("field label not supported: {name}"),
            FieldError::NotKnown => {
                format!(r#""{name}" is not a known field selector: only "metadata.name", "metadata.namespace""#)
            }
            FieldError::Job => format!(r#"field label "{name}" not supported for Job"#),
            FieldError::ResourceSlice => {
                format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {name}")
            }
        })
    }

    /// Which of an object's kept values is this field's.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The values of an object's fields, in the order of the fields.
    pub(crate) fn values(&self, object: &Value) -> Box<[Box<str>]> {
        self.fields.iter().map(|field| field.value(object)).collect()
    }
}

impl Field {
    fn value(&self, object: &Value) -> Box<str> {
        if self.pointer.is_empty() {
            return "".into();
        }
        match object.pointer(&self.pointer) {
            Some(Value::String(text)) if !text.is_empty() => text.as_str().into(),
            Some(Value::Bool(value)) => value.to_string().into(),
            Some(Value::Number(value)) => value.to_string().into(),
            // An event's source may stand in another field.
            _ if self.name == "source" => {
                object.get("reportingComponent").and_then(Value::as_str).unwrap_or_default().into()
            }
            _ => self.default.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_a_kind_has_not_are_refused_in_its_own_words() {
        let error = |group, kind| FieldLabels::of(group, kind).resolve("spec.colour").expect_err("no such field");
        assert_eq!(error("", "Pod"), "field label not supported: spec.colour");
        assert_eq!(
            error("", "ConfigMap"),
            r#""spec.colour" is not a known field selector: only "metadata.name", "metadata.namespace""#
        );
        assert_eq!(error("batch", "Job"), r#"field label "spec.colour" not supported for Job"#);
        assert_eq!(FieldLabels::of("", "Pod").resolve("spec.host").as_deref(), Ok("spec.nodeName"));
    }

    #[test]
    fn values_are_texts_and_lacking_ones_have_go_s_zero() {
        let pod = json!({"spec": {"nodeName": "n1", "hostNetwork": true}, "status": {"podIPs": [{"ip": "10.0.0.1"}]}});
        let labels = FieldLabels::of("", "Pod");
        let values = labels.values(&pod);
        let value = |name| values[labels.position(name).expect("a field")].to_string();
        assert_eq!(value("spec.nodeName"), "n1");
        assert_eq!(value("spec.hostNetwork"), "true");
        assert_eq!(value("status.podIP"), "10.0.0.1");
        assert_eq!(value("status.phase"), "");
        assert_eq!(*FieldLabels::of("", "Node").values(&json!({})), ["false".into()]);
        assert_eq!(*FieldLabels::of("batch", "Job").values(&json!({})), ["0".into()]);
    }
}
