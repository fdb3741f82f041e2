//! `POST` of a review: a question that is answered, and not kept.
//!
//! Counterparts: `k8s.io/kubernetes/pkg/registry/authorization` and `authentication`.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::Call;
use super::write::{place, strip};
use crate::access::{AccessRules, Asked, User};
use crate::failure::{Cause, Failure};
use crate::fields;
use crate::http::answer::Answer;
use crate::http::body;
use crate::storage::{Document, Stored};
use crate::validation::quoted;

/// For whom tokens are meant, if nobody says.
const AUDIENCE: &str = "https://kubernetes.default.svc";

pub(crate) fn run(call: Call) -> Result<Answer, Failure> {
    call.options.is_dry_run("CreateOptions")?;
    let sent = body::object(&call.server.registry, &call.kind, call.version(), &call.media_type, &call.body)?;
    let mut document = sent.document;
    place(&call, &mut document)?;
    strip(&mut document);
    // What is asked is tracked as an object is, although nobody keeps it.
    fields::created(&call, &mut document)?;
    let managed = document.take_managed();
    let mut spec = match document.map().get("spec") {
        Some(Value::Object(spec)) => spec.clone(),
        _ => Map::new(),
    };
    spec.retain(|_, value| !value.is_null());
    let rules = call.server.settings.access.as_deref();
    let review = match call.kind.plural.as_str() {
        "selfsubjectreviews" => {
            let now = call.server.clock.now();
            json!({"metadata": {"creationTimestamp": now}, "status": {"userInfo": call.user.shown()}})
        }
        "tokenreviews" => {
            let status = token_status(&spec, rules)?;
            json!({"metadata": {}, "spec": spec, "status": status})
        }
        "selfsubjectrulesreviews" => {
            let namespace = spec.get("namespace").and_then(Value::as_str).unwrap_or_default();
            if namespace.is_empty() {
                return Err(Failure::bad_request("no namespace on request"));
            }
            let default = AccessRules::default();
            let (resources, others) = rules.unwrap_or(&default).shown(&call.user, namespace);
            let status = json!({"resourceRules": resources, "nonResourceRules": others, "incomplete": false});
            json!({"metadata": {}, "spec": {}, "status": status})
        }
        _ => {
            let allowed = access(&call, &document, &spec, rules)?;
            json!({"metadata": document.metadata(), "spec": spec, "status": {"allowed": allowed}})
        }
    };
    let mut review = Document::new(review).unwrap_or_default();
    // Two kinds of answers are new objects.
    if !matches!(call.kind.plural.as_str(), "selfsubjectreviews" | "selfsubjectrulesreviews") {
        review.set_managed(managed);
    }
    call.shown(StatusCode::CREATED, &Stored::preview(&call.kind, "", &review, None))
}

/// Whether somebody may do something.
fn access(
    call: &Call,
    document: &Document,
    spec: &Map<String, Value>,
    rules: Option<&AccessRules>,
) -> Result<bool, Failure> {
    let kind = call.kind.plural.as_str();
    let (is_self, is_local) = (kind == "selfsubjectaccessreviews", kind == "localsubjectaccessreviews");
    let groups = spec.get("groups").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let groups: Vec<String> = groups.map(str::to_owned).collect();
    let user = spec.get("user").and_then(Value::as_str).unwrap_or_default();
    let namespace = call.namespace.as_deref().unwrap_or_default();
    let causes = faults(document, spec, is_self, is_local, namespace);
    if !causes.is_empty() {
        return Err(Failure::invalid("", &call.kind.group, "", causes));
    }
    let Some(rules) = rules else { return Ok(true) };
    let user = match is_self {
        true => call.user.clone(),
        // Whoever asks for somebody else names all groups.
        false => User { name: user.to_owned(), uid: String::new(), groups }.into(),
    };
    Ok(rules.allow(&user, &asked(spec)))
}

fn attributes<'a>(spec: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    spec.get(name).and_then(Value::as_object)
}

fn asked(spec: &Map<String, Value>) -> Asked {
    let text =
        |map: &Map<String, Value>, field: &str| map.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    match (attributes(spec, "resourceAttributes"), attributes(spec, "nonResourceAttributes")) {
        (Some(map), _) => Asked::Resource {
            verb: text(map, "verb"),
            namespace: text(map, "namespace"),
            group: text(map, "group"),
            resource: text(map, "resource"),
            subresource: text(map, "subresource"),
            name: text(map, "name"),
        },
        (None, Some(map)) => Asked::Path { verb: text(map, "verb"), path: text(map, "path") },
        (None, None) => Asked::Path { verb: String::new(), path: String::new() },
    }
}

/// What is wrong with a question.
fn faults(
    document: &Document,
    spec: &Map<String, Value>,
    is_self: bool,
    is_local: bool,
    namespace: &str,
) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (resource, other) = (attributes(spec, "resourceAttributes"), attributes(spec, "nonResourceAttributes"));
    let shown = |map: &Map<String, Value>| {
        let text = |field: &str| quoted(map.get(field).and_then(Value::as_str).unwrap_or_default());
        format!(r#"{{"Path":{},"Verb":{}}}"#, text("path"), text("verb"))
    };
    match (resource, other) {
        (Some(_), Some(other)) => {
            let text = "cannot be specified in combination with resourceAttributes";
            causes.push(Cause::invalid("spec.nonResourceAttributes", shown(other), text));
        }
        (None, None) => {
            let text = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            causes.push(Cause::invalid("spec.resourceAttributes", "null", text));
        }
        _ => {}
    }
    let is_empty = |field: &str| match spec.get(field) {
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(values)) => values.is_empty(),
        _ => true,
    };
    if !is_self && is_empty("user") && is_empty("groups") {
        causes.push(Cause::invalid("spec.user", "\"\"", "at least one of user or group must be specified"));
    }
    if is_local {
        let asked = resource.and_then(|map| map.get("namespace")).and_then(Value::as_str).unwrap_or_default();
        if resource.is_some() && asked != namespace {
            let text = "must match metadata.namespace";
            causes.push(Cause::invalid("spec.resourceAttributes.namespace", quoted(asked), text));
        }
        if let Some(other) = other {
            let text = "disallowed on this kind of request";
            causes.push(Cause::invalid("spec.nonResourceAttributes", shown(other), text));
        }
    }
    let mut metadata = document.metadata().clone();
    if is_local {
        metadata.remove("namespace");
    }
    if !metadata.is_empty() {
        causes.push(Cause::invalid("metadata", Value::Object(metadata), "must be empty"));
    }
    causes
}

/// Whose token it is. Without rules, every token is good.
fn token_status(spec: &Map<String, Value>, rules: Option<&AccessRules>) -> Result<Value, Failure> {
    let token = spec.get("token").and_then(Value::as_str).unwrap_or_default();
    if token.is_empty() {
        return Err(Failure::bad_request("token is required for TokenReview in authentication"));
    }
    let audiences = spec.get("audiences").and_then(Value::as_array).filter(|audiences| !audiences.is_empty());
    let user = match rules {
        None => Some(User::admin()),
        // Such tokens are good for this server only.
        Some(_) if audiences.is_some_and(|audiences| !audiences.contains(&AUDIENCE.into())) => None,
        Some(rules) => rules.holder(token.as_bytes()).map(Into::into),
    };
    Ok(match user {
        Some(user) => {
            let audiences = audiences.cloned().unwrap_or_else(|| vec![AUDIENCE.into()]);
            json!({"authenticated": true, "user": user.shown(), "audiences": audiences})
        }
        None => json!({"user": {}, "error": "invalid bearer token"}),
    })
}
