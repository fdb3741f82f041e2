//! Answers that say no: a `Status` with its code, reason and text.
//!
//! Counterpart: `k8s.io/apimachinery/pkg/api/errors`. The texts are those of a kube-apiserver.

use std::collections::HashSet;

use http::StatusCode;
use serde::Serialize;

use crate::kinds::{Kind, qualified};
use crate::validation::quoted;

/// Why a request was refused. What a server answers, and what [`ApiServer::create`](crate::ApiServer::create) and its
/// like fail with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    code: StatusCode,
    reason: &'static str,
    message: String,
    details: Option<Box<Details>>,
    continue_token: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Details {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) group: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_seconds: Option<u32>,
}

/// One of the things that are wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Cause {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) field: String,
}

/// A `Status`, in the order of its fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    status: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    continue_token: Option<&'a str>,
}

impl Cause {
    pub(crate) fn forbidden(field: &str, text: impl std::fmt::Display) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {text}"))
    }

    pub(crate) fn required(field: &str, text: &str) -> Self {
        let colon = if text.is_empty() { "" } else { ": " };
        Self::new("FieldValueRequired", field, format!("Required value{colon}{text}"))
    }

    pub(crate) fn duplicate(field: &str, value: impl std::fmt::Display) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
    }

    pub(crate) fn not_found(field: &str, value: impl std::fmt::Display) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {value}"))
    }

    pub(crate) fn too_long(field: &str, limit: usize) -> Self {
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {limit} bytes"))
    }

    /// `value` as it is shown: quoted, if it is a text.
    pub(crate) fn invalid(field: &str, value: impl std::fmt::Display, text: impl std::fmt::Display) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {text}"))
    }

    pub(crate) fn unsupported(field: &str, value: impl std::fmt::Display, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| quoted(value)).collect();
        let text = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self::new("FieldValueNotSupported", field, text)
    }

    pub(crate) fn new(reason: &'static str, field: &str, message: String) -> Self {
        Self { reason, message, field: field.to_owned() }
    }
}

impl Failure {
    /// The HTTP status.
    pub fn code(&self) -> u16 {
        self.code.as_u16()
    }

    /// `NotFound`, `Conflict`, ...; some failures of a kube-apiserver have none.
    pub fn reason(&self) -> &str {
        self.reason
    }

    /// Seconds after which to ask again.
    pub(crate) fn retry_after(&self) -> Option<u32> {
        self.details.as_ref().and_then(|details| details.retry_after_seconds)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.code
    }

    /// The `Status` as JSON.
    pub(crate) fn json(&self) -> Vec<u8> {
        encoded(&Document {
            kind: "Status",
            api_version: "v1",
            metadata: Metadata { continue_token: self.continue_token.as_deref() },
            status: "Failure",
            message: &self.message,
            reason: self.reason,
            details: self.details.as_deref(),
            code: Some(self.code.as_u16()),
        })
    }

    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }

    fn with(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    fn about(self, kind: &Kind, name: &str) -> Self {
        self.with(named(name, &kind.group, &kind.plural))
    }

    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", text)
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let text = format!("{} {} not found", kind.resource(), quoted(name));
        Self::new(StatusCode::NOT_FOUND, "NotFound", text).about(kind, name)
    }

    pub(crate) fn no_such_resource() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
            .with(Details::default())
    }

    pub(crate) fn method_not_allowed() -> Self {
        let text = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", text).with(Details::default())
    }

    /// Something that a kube-apiserver has, and this server has not yet.
    pub(crate) fn not_implemented(what: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "", format!("this in-memory API server does not have {what} yet"))
    }

    pub(crate) fn not_acceptable() -> Self {
        let text = "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", text).with(Details::default())
    }

    /// A representation that no object has.
    pub(crate) fn unknown_representation() -> Self {
        let text = "only the following media types are accepted: application/json";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", text)
    }

    pub(crate) fn wrong_representation(text: String) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", text)
    }

    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let text = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", text)
    }

    pub(crate) fn unknown_media_type() -> Self {
        let text = "415: Unsupported Media Type";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", text).with(Details::default())
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let text = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", text)
    }

    pub(crate) fn too_many_operations(limit: usize, count: usize) -> Self {
        let text =
            format!("Request entity too large: The allowed maximum operations in a JSON patch is {limit}, got {count}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", text)
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        let text = format!("{} {} already exists", kind.resource(), quoted(name));
        Self::new(StatusCode::CONFLICT, "AlreadyExists", text).about(kind, name)
    }

    /// The name is taken by something that goes.
    pub(crate) fn while_being_deleted(self) -> Self {
        Self { message: format!("object is being deleted: {}", self.message), ..self }
    }

    /// A generated name that exists: one may try again.
    pub(crate) fn generated_name_exists(kind: &Kind, name: &str) -> Self {
        let text = format!(
            "{} {} already exists, the server was not able to generate a unique name for the object",
            kind.resource(),
            quoted(name)
        );
        let details = Details { retry_after_seconds: Some(1), ..named(name, &kind.group, &kind.plural) };
        Self::new(StatusCode::CONFLICT, "AlreadyExists", text).with(details)
    }

    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let text = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(&kind.plural, &kind.group, name, text)
    }

    /// `resource` is the plural, or for preconditions of a deletion the kind.
    pub(crate) fn conflict(resource: &str, group: &str, name: &str, text: impl std::fmt::Display) -> Self {
        let text = format!("Operation cannot be fulfilled on {} {}: {text}", qualified(resource, group), quoted(name));
        Self::new(StatusCode::CONFLICT, "Conflict", text).with(named(name, group, resource))
    }

    /// A configuration that means to change what others own.
    pub(crate) fn apply_conflict(text: String, causes: Vec<Cause>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", text).with(Details { causes, ..Details::default() })
    }

    /// `kind` is the kind, or for updates without a version the plural.
    pub(crate) fn invalid(kind: &str, group: &str, name: &str, causes: Vec<Cause>) -> Self {
        let mut seen: HashSet<String> = HashSet::new();
        let texts = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message));
        let shown: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
        let shown = match shown.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let text = format!("{} {} is invalid: {shown}", qualified(kind, group), quoted(name));
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", text)
            .with(Details { causes, ..named(name, group, kind) })
    }

    /// Options of `ListOptions` and the like.
    pub(crate) fn invalid_options(kind: &str, causes: Vec<Cause>) -> Self {
        Self::invalid(kind, "meta.k8s.io", "", causes)
    }

    /// A patch after which the object is none. A kube-apiserver shows the object here.
    pub(crate) fn invalid_patch(text: impl std::fmt::Display) -> Self {
        Self::invalid("", "", "", vec![Cause::invalid("patch", "the patched object", text)])
    }

    /// A JSON patch that does not apply.
    pub(crate) fn rejected() -> Self {
        let text = "the server rejected our request due to an error in our request";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", text).with(Details::default())
    }

    pub(crate) fn expired(text: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", text)
    }

    /// A continue token whose list is forgotten; `inconsistent` goes on with what is there now.
    pub(crate) fn expired_continue(inconsistent: String) -> Self {
        let text = "The provided continue parameter is too old to display a consistent list result. You can start a \
                    new list without the continue parameter, or use the continue token in this response to retrieve \
                    the remainder of the results. Continuing with the provided token results in an inconsistent list \
                    - objects that were created, modified, or deleted between the time the first chunk was returned \
                    and now may show up in the list.";
        Self { continue_token: Some(inconsistent), ..Self::expired(text) }
    }

    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let text = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", text).with(Details {
            causes: vec![cause],
            retry_after_seconds: Some(1),
            ..Details::default()
        })
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: impl std::fmt::Display) -> Self {
        let text = format!("{} {} is forbidden: {why}", kind.resource(), quoted(name));
        Self::new(StatusCode::FORBIDDEN, "Forbidden", text).about(kind, name)
    }

    /// Something that the rules do not allow.
    pub(crate) fn not_allowed(text: String, details: Details) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", text).with(details)
    }

    /// Nobody has this token.
    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// An eviction that a budget does not allow now.
    pub(crate) fn disruption(text: String, retry_after_seconds: Option<u32>) -> Self {
        let cause = Cause { reason: "DisruptionBudget", message: text, field: String::new() };
        let text = "Cannot evict pod as it would violate the pod's disruption budget.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", text).with(Details {
            causes: vec![cause],
            retry_after_seconds,
            ..Details::default()
        })
    }

    /// A verb that a custom kind has not.
    pub(crate) fn verb_not_supported(kind: &Kind, verb: &str) -> Self {
        let text = format!("{verb} is not supported on resources of kind {}", quoted(&kind.resource()));
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", text).about(kind, "")
    }

    pub(crate) fn terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let text = format!(
            "{} {} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
            kind.resource(),
            quoted(name)
        );
        let cause = Cause {
            reason: "NamespaceTerminating",
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", text)
            .with(Details { causes: vec![cause], ..named(name, &kind.group, &kind.plural) })
    }

    /// Something that should not have happened.
    pub(crate) fn internal_error(text: String) -> Self {
        let cause = Cause { reason: "", message: text.clone(), field: String::new() };
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", format!("Internal error occurred: {text}"))
            .with(Details { causes: vec![cause], ..Details::default() })
    }

    /// An error that a kube-apiserver has no reason for.
    pub(crate) fn internal(text: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", text)
    }
}

/// The `Status` of something that was done.
pub(crate) fn succeeded(code: StatusCode) -> Vec<u8> {
    encoded(&Document {
        kind: "Status",
        api_version: "v1",
        metadata: Metadata { continue_token: None },
        status: "Success",
        message: "",
        reason: "",
        details: None,
        code: Some(code.as_u16()),
    })
}

/// The `Status` of a deletion that left nothing.
pub(crate) fn deleted(kind: &Kind, name: &str, uid: &str) -> Vec<u8> {
    encoded(&Document {
        kind: "Status",
        api_version: "v1",
        metadata: Metadata { continue_token: None },
        status: "Success",
        message: "",
        reason: "",
        details: Some(&Details { uid: uid.to_owned(), ..named(name, &kind.group, &kind.plural) }),
        code: None,
    })
}

fn named(name: &str, group: &str, kind: &str) -> Details {
    Details { name: name.to_owned(), group: group.to_owned(), kind: kind.to_owned(), ..Details::default() }
}

fn encoded(document: &Document<'_>) -> Vec<u8> {
    // Texts and numbers always encode.
    serde_json::to_vec(document).unwrap_or_default()
}
