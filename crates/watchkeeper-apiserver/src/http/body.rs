//! What a request brings along.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Map, Value};
use tower::BoxError;

use super::options::revision;
use crate::defaults::{BODY_LIMIT, DEPTH_LIMIT};
use crate::failure::{Cause, Failure};
use crate::fields;
use crate::kinds::{Kind, Registry, Version};
use crate::protobuf;
use crate::storage::Document;
use crate::validation::quoted;
use crate::verbs::Call;

/// The media type of bodies in YAML.
const YAML: &str = "application/yaml";
/// All media types that a body may have.
pub(crate) const MEDIA_TYPES: [&str; 3] = ["application/json", YAML, protobuf::MEDIA_TYPE];

/// An object as a client sent it.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) document: Document,
    pub(crate) resource_version: String,
}

impl Sent {
    /// The version that the write is made for; none, if the client names none.
    pub(crate) fn revision(&self) -> Result<Option<u64>, Failure> {
        match self.resource_version.as_str() {
            "" | "0" => Ok(None),
            text => revision(text).map(Some).map_err(Failure::internal),
        }
    }
}

/// Reads a whole body.
pub(crate) async fn read<B>(body: B) -> Result<Bytes, Failure>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Failure::too_large(BODY_LIMIT)),
        Err(_) => Err(Failure::bad_request("the body of the request could not be read to its end")),
    }
}

/// The media type of a body, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// What the client calls itself.
pub(crate) fn user_agent(headers: &HeaderMap) -> String {
    headers.get(USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// Makes JSON of a body in YAML or protobuf. Custom kinds have no protobuf, and refuse it as any other media type.
pub(crate) fn translate(call: &mut Call) -> Result<(), Failure> {
    if call.media_type == YAML && !call.body.is_empty() {
        let tree = fields::tree_of(&call.body)?;
        call.body = serde_json::to_vec(&tree).map_err(|_| Failure::bad_request("the body cannot be read"))?.into();
        call.media_type = "application/json".to_owned();
        return Ok(());
    }
    if call.media_type != protobuf::MEDIA_TYPE || call.kind.custom {
        return Ok(());
    }
    let json = protobuf::to_json(&call.body).map_err(|error| Failure::bad_request(error.to_string()))?;
    call.body = json.into();
    call.media_type = "application/json".to_owned();
    Ok(())
}

/// Reads an object of a kind from the body of a create or an update.
pub(crate) fn object(
    registry: &Registry,
    kind: &Kind,
    version: &Version,
    media_type: &str,
    body: &[u8],
) -> Result<Sent, Failure> {
    if !matches!(media_type, "" | "application/json") {
        return Err(Failure::unsupported_media_type(&MEDIA_TYPES));
    }
    // A kube-apiserver quotes the body here. Bodies have secrets: this server does not.
    let unrecognized = |text: &str| {
        Failure::bad_request(format!("the object provided is unrecognized (must be of type {}): {text}", kind.kind))
    };
    let tree = map(body).map_err(|error| unrecognized(&error))?;
    let text = |field: &str| tree.get(field).and_then(Value::as_str).unwrap_or_default();
    if kind.custom && text("kind").is_empty() {
        return Err(unrecognized("Object 'Kind' is missing"));
    }
    check_kind(registry, kind, version, text("apiVersion"), text("kind"), &tree)?;
    from_tree(kind, version, tree)
}

/// Reads something that is no stored object: what is sent to a subresource. It may leave its kind out.
pub(crate) fn call(
    registry: &Registry,
    kind: &str,
    api_versions: &[&str],
    media_type: &str,
    body: &[u8],
) -> Result<Value, Failure> {
    if !matches!(media_type, "" | "application/json") {
        return Err(Failure::unsupported_media_type(&MEDIA_TYPES));
    }
    let tree = map(body).map_err(|error| {
        Failure::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {error}"))
    })?;
    if !is_within_depth(&tree, DEPTH_LIMIT, &mut { usize::MAX }) {
        return Err(Failure::bad_request("json: exceeded max depth"));
    }
    let text = |field: &str| tree.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, name) = (text("apiVersion"), text("kind"));
    if (name.is_empty() || name == kind) && (api_version.is_empty() || api_versions.contains(&api_version)) {
        return Ok(tree);
    }
    let expected = api_versions.first().and_then(|version| version.split_once('/')).map_or("core", |(group, _)| group);
    let (_, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let why = match registry.of_object(api_version, name) {
        Some(_) => format!("converting ({version}.{name}) to ({expected}.{kind}): unknown conversion"),
        None => format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quoted(name),
            quoted(api_version)
        ),
    };
    let version = quoted(version);
    Err(Failure::bad_request(format!("{name} in version {version} cannot be handled as a {kind}: {why}")))
}

/// Reads a map whose kind and apiVersion, if it has them, are texts. Nothing is an empty map.
pub(crate) fn map(body: &[u8]) -> Result<Value, String> {
    let wrong = |error: String| format!("couldn't get version/kind; json parse error: {error}");
    let tree: Value = serde_json::from_slice(body).map_err(|error| wrong(json_error(body, &error)))?;
    let map = match &tree {
        Value::Null => return Ok(Value::Object(Default::default())),
        Value::Object(map) => map,
        other => {
            return Err(wrong(format!(
                "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                json_type(other)
            )));
        }
    };
    for field in ["apiVersion", "kind"] {
        if let Some(bad) = map.get(field).filter(|value| !value.is_string() && !value.is_null()) {
            return Err(wrong(format!("json: {}", mismatch(bad, &format!(".{field}"), "string"))));
        }
    }
    Ok(tree)
}

/// Whether nothing in a tree is deeper than so many levels: what is stored must still be readable within a list, an
/// event or a file. Looks at no more than `budget` values, and takes them off it.
pub(crate) fn is_within_depth(tree: &Value, levels: usize, budget: &mut usize) -> bool {
    if levels == 0 || *budget == 0 {
        return false;
    }
    *budget -= 1;
    match tree {
        Value::Array(values) => values.iter().all(|value| is_within_depth(value, levels - 1, budget)),
        Value::Object(map) => map.values().all(|value| is_within_depth(value, levels - 1, budget)),
        _ => true,
    }
}

/// Takes an object apart whose kind is known.
pub(crate) fn from_tree(kind: &Kind, version: &Version, tree: Value) -> Result<Sent, Failure> {
    if !is_within_depth(&tree, DEPTH_LIMIT, &mut { usize::MAX }) {
        return Err(Failure::bad_request("json: exceeded max depth"));
    }
    check_metadata(kind, &tree).map_err(|text| {
        let (kind, version) = (&kind.kind, quoted(&version.name));
        Failure::bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: json: {text}"))
    })?;
    let resource_version = tree.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
    let resource_version = resource_version.to_owned();
    let document = Document::new(tree).ok_or_else(|| Failure::bad_request("the object has no usable metadata"))?;
    Ok(Sent { document, resource_version })
}

/// What Go says of bytes that are no JSON. serde's own texts may quote values, and are not passed on.
pub(crate) fn json_error(body: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    // The text of an error of serde's is looked at, and not shown.
    let place = match error.to_string().starts_with("trailing characters") {
        true => "after top-level value",
        false => "looking for beginning of value",
    };
    let line = body.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let character = line.get(error.column().saturating_sub(1)).copied().unwrap_or(b'?');
    // As Go shows a character: quoted, but for the quotes themselves.
    let shown = match character {
        b'\'' => "\\'".to_owned(),
        b'"' => "\"".to_owned(),
        other => quoted(&char::from(other).to_string()).trim_matches('"').to_owned(),
    };
    format!("invalid character '{shown}' {place}")
}

/// What Go calls a value of this type.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// An object must be of the kind that its path says. Built-in ones may leave their kind out.
fn check_kind(
    registry: &Registry,
    kind: &Kind,
    version: &Version,
    api_version: &str,
    name: &str,
    tree: &Value,
) -> Result<(), Failure> {
    let api_version = if api_version.is_empty() && !kind.custom { &version.api_version } else { api_version };
    let name = if name.is_empty() { &kind.kind } else { name };
    if api_version == version.api_version && name == kind.kind {
        return Ok(());
    }
    if kind.custom && name != kind.kind {
        let object = tree.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let cause = Cause::invalid("kind", quoted(name), format!("must be {}", kind.kind));
        return Err(Failure::invalid(name, &kind.group, object, vec![cause]));
    }
    let same_group = api_version.split_once('/').map_or("", |(group, _)| group) == kind.group;
    let served = kind.versions.iter().any(|version| version.api_version == api_version);
    if name == kind.kind && (kind.custom || same_group && served) {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            version.api_version
        )));
    }
    let why = match registry.of_object(api_version, name) {
        Some(other) => {
            let (_, other_version) = api_version.split_once('/').unwrap_or(("", api_version));
            let package = if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or("core") };
            let other = &other.kind;
            format!("converting ({other_version}.{other}) to ({package}.{}): unknown conversion", kind.kind)
        }
        None => format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quoted(name),
            quoted(api_version)
        ),
    };
    let given = api_version.split_once('/').map_or(api_version, |(_, version)| version);
    Err(Failure::bad_request(format!(
        "{name} in version {} cannot be handled as a {}: {why}",
        quoted(given),
        kind.kind
    )))
}

/// What all objects have.
pub(crate) struct ObjectMeta;

impl ObjectMeta {
    pub(crate) const FIELDS: [&str; 15] = [
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    ];

    /// Whether a value that is metadata of an object within an object has the right types.
    pub(crate) fn check(metadata: &Value) -> Result<(), String> {
        match metadata {
            Value::Null => Ok(()),
            Value::Object(fields) => check_fields(fields, "ObjectMeta."),
            other => Err(format!("cannot unmarshal {} into Go value of type v1.ObjectMeta", json_type(other))),
        }
    }
}

/// Metadata must have the types of `ObjectMeta`: everything behind this relies on them.
fn check_metadata(kind: &Kind, tree: &Value) -> Result<(), String> {
    match tree.get("metadata") {
        None | Some(Value::Null) => Ok(()),
        // Go reads the metadata of custom objects by itself.
        Some(Value::Object(metadata)) if kind.custom => check_fields(metadata, "ObjectMeta."),
        Some(Value::Object(metadata)) => check_fields(metadata, "ObjectMeta.metadata."),
        Some(other) => Err(mismatch(other, &format!("{}.metadata", kind.kind), "v1.ObjectMeta")),
    }
}

fn check_fields(metadata: &Map<String, Value>, prefix: &str) -> Result<(), String> {
    for (field, value) in metadata.iter().filter(|(_, value)| !value.is_null()) {
        let path = format!("{prefix}{field}");
        match field.as_str() {
            "name" | "generateName" | "namespace" | "selfLink" | "uid" | "resourceVersion" if !value.is_string() => {
                return Err(mismatch(value, &path, "string"));
            }
            "creationTimestamp" | "deletionTimestamp" if !value.is_string() => {
                return Err(mismatch(value, &path, "string"));
            }
            "generation" | "deletionGracePeriodSeconds" if !value.is_i64() => {
                return Err(mismatch(value, &path, "int64"));
            }
            "labels" | "annotations" => {
                let Value::Object(entries) = value else { return Err(mismatch(value, &path, "map[string]string")) };
                if let Some(bad) = entries.values().find(|value| !value.is_string()) {
                    return Err(mismatch(bad, &path, "string"));
                }
            }
            "finalizers" => {
                let Value::Array(entries) = value else { return Err(mismatch(value, &path, "[]string")) };
                if let Some(bad) = entries.iter().find(|value| !value.is_string()) {
                    return Err(mismatch(bad, &path, "string"));
                }
            }
            "ownerReferences" | "managedFields" if !value.is_array() => {
                return Err(mismatch(value, &path, "[]v1.OwnerReference"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn mismatch(value: &Value, field: &str, expected: &str) -> String {
    format!("cannot unmarshal {} into Go struct field {field} of type {expected}", json_type(value))
}
