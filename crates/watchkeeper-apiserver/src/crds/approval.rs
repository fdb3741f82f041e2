//! Groups of the Kubernetes project itself need its approval: an annotation says where it was given, or that it was not.
//!
//! Counterpart: `GetAPIApprovalState` in `k8s.io/apiextensions-apiserver/pkg/apihelpers`, and the controller around it.

use http::Uri;
use serde_json::Value;

use super::definition::Condition;
use crate::failure::Cause;
use crate::storage::Document;
use crate::validation::quoted;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const FIELD: &str = "metadata.annotations[api-approved.kubernetes.io]";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// What an annotation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approval {
    Missing,
    /// It says that there is none.
    Bypassed,
    /// It says where it was given.
    Given,
    Invalid,
}

/// What is wrong with what a definition says, if its group needs it to say something. What was so before is let be.
pub(super) fn fault(document: &Document, old: Option<&Document>) -> Option<Cause> {
    if !is_protected(document) {
        return None;
    }
    let (approval, reason) = said(document);
    if old.is_some_and(|old| said(old).0 == approval) {
        return None;
    }
    match approval {
        Approval::Missing => Some(Cause::required(FIELD, &reason)),
        Approval::Invalid => Some(Cause::invalid(FIELD, quoted(annotation(document)), reason)),
        Approval::Bypassed | Approval::Given => None,
    }
}

/// The condition of a definition whose group needs approval.
pub(super) fn condition(document: &Document) -> Option<Condition> {
    if !is_protected(document) {
        return None;
    }
    let (approval, message) = said(document);
    let (status, reason) = match approval {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Given => ("True", "ApprovedAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
    };
    Some(Condition {
        kind: "KubernetesAPIApprovalPolicyConformant".to_owned(),
        status: status.to_owned(),
        last_transition_time: None,
        reason: reason.to_owned(),
        message,
    })
}

fn is_protected(document: &Document) -> bool {
    let group = document.as_value().pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
    ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|beneath| beneath.is_empty() || beneath.ends_with('.')))
}

fn annotation(document: &Document) -> &str {
    let annotations = document.metadata().get("annotations");
    annotations.and_then(|annotations| annotations.get(ANNOTATION)).and_then(Value::as_str).unwrap_or_default()
}

fn said(document: &Document) -> (Approval, String) {
    let text = annotation(document);
    let is_address = || {
        text.parse::<Uri>().is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some_and(|host| !host.is_empty()))
    };
    let must = format!("protected groups must have approval annotation {}", quoted(ANNOTATION));
    match text {
        "" => (Approval::Missing, format!("{must}, {SEE}")),
        text if text.starts_with("unapproved") => (Approval::Bypassed, format!("not approved: {}", quoted(text))),
        text if is_address() => (Approval::Given, format!("approved in {text}")),
        _ => {
            let text = format!("{must} with either a URL or a reason starting with \"unapproved\", {SEE}");
            (Approval::Invalid, text)
        }
    }
}
