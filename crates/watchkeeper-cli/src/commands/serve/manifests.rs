//! Which objects are in a file of YAML or JSON?
//!
//! One document or several, each an object or a list of them: what `kubectl get -o yaml` writes and `kubectl apply -f`
//! reads. Values of objects are never quoted in errors.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::failure::{Exit, Failure, Outcome};

/// How deep a document may be nested: as deep as JSON is read.
const DEPTH: usize = 128;

/// How much text aliases may add to a file.
const ALIASED: usize = 64 << 20;

/// An object, and where it was read.
pub(super) struct Manifest {
    pub(super) object: Value,
    pub(super) place: Place,
}

/// Where an object was read, and what it says that it is.
#[derive(Clone)]
pub(super) struct Place {
    path: PathBuf,
    document: usize,
    item: Option<usize>,
    object: String,
}

impl Manifest {
    /// What it says that it is.
    pub(super) fn kind(&self) -> &str {
        self.object.get("kind").and_then(Value::as_str).unwrap_or_default()
    }
}

impl Place {
    /// The object cannot be loaded.
    pub(super) fn failure(&self, why: &str) -> Failure {
        Failure::new(Exit::Error, format!("{self} cannot be loaded")).because(why)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.path.display(), self.document)?;
        if let Some(item) = self.item {
            write!(f, ", item {item}")?;
        }
        write!(f, ": {}", self.object)
    }
}

/// Reads all objects of a file; there may be none.
pub(super) fn read(path: &Path) -> Outcome<Vec<Manifest>> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, error.to_string()))?;
    read_text(path, &text)
}

fn unreadable(path: &Path, why: String) -> Failure {
    Failure::new(Exit::Error, format!("{} cannot be loaded", path.display())).because(why)
}

fn read_text(path: &Path, text: &str) -> Outcome<Vec<Manifest>> {
    // Some editors and shells mark UTF-8 so.
    let documents = documents(path, text.trim_start_matches('\u{feff}')).map_err(|why| unreadable(path, why))?;
    let mut manifests = Vec::new();
    for (number, document) in documents.into_iter().enumerate() {
        objects(path, number + 1, None, document, &mut manifests)?;
    }
    Ok(manifests)
}

fn documents(path: &Path, text: &str) -> Result<Vec<Value>, String> {
    let named_json = path.extension().is_some_and(|end| end == "json");
    if named_json || text.trim_start().starts_with('{') {
        match json_documents(text) {
            Ok(documents) => return Ok(documents),
            // YAML may begin with a brace too.
            Err(why) if named_json => return Err(why),
            Err(_) => {}
        }
    }
    yaml_documents(text)
}

fn json_documents(text: &str) -> Result<Vec<Value>, String> {
    let mut documents = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        // Its own text may quote a value.
        documents.push(document.map_err(|error| {
            format!("document {} is no JSON at line {}, column {}", documents.len() + 1, error.line(), error.column())
        })?);
    }
    Ok(documents)
}

fn yaml_documents(text: &str) -> Result<Vec<Value>, String> {
    // A cluster's objects may be many. What a few lines can blow up stays as limited as it is.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_documents: usize::MAX,
            // What is written once may be said again and again by aliases.
            max_total_scalar_bytes: text.len().saturating_mul(2).saturating_add(ALIASED),
            max_total_comment_bytes: usize::MAX,
            max_depth: DEPTH,
        },
        // As kubectl reads them: `defaultMode: 0644`.
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    let documents = serde_saphyr::from_multiple_with_options::<Value>(text, options).map_err(|error| {
        let what = match error.without_snippet() {
            serde_saphyr::Error::DuplicateMappingKey { .. } => "a key is there twice",
            serde_saphyr::Error::Budget { .. }
            | serde_saphyr::Error::AliasError { .. }
            | serde_saphyr::Error::AliasReplayLimitExceeded { .. } => {
                "it is too deep, or its aliases make too much of it"
            }
            _ => "it is no YAML",
        };
        match error.location() {
            Some(location) => format!("{what} at line {}, column {}", location.line(), location.column()),
            None => what.to_owned(),
        }
    })?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The objects of one document: itself, or those of a list.
fn objects(path: &Path, document: usize, item: Option<usize>, value: Value, into: &mut Vec<Manifest>) -> Outcome<()> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let is_list = kind.ends_with("List") && value.get("items").is_some_and(Value::is_array);
    if !is_list {
        let place = Place { path: path.to_owned(), document, item, object: described(&value) };
        into.push(checked(value, place)?);
        return Ok(());
    }
    let Some(Value::Array(items)) = value.get("items").cloned() else { return Ok(()) };
    for (number, mut value) in items.into_iter().enumerate() {
        // The items of a `PodList` need not say that they are pods.
        if let (Some(object), Some(kind)) =
            (value.as_object_mut(), kind.strip_suffix("List").filter(|kind| !kind.is_empty()))
        {
            object.entry("kind").or_insert_with(|| kind.into());
            object.entry("apiVersion").or_insert_with(|| api_version.clone().into());
        }
        // Lists may be in lists; the outermost is what a reader counts.
        objects(path, document, item.or(Some(number + 1)), value, into)?;
    }
    Ok(())
}

fn checked(object: Value, place: Place) -> Outcome<Manifest> {
    let has = |name: &str| object.get(name).is_some_and(|value| value.as_str().is_some_and(|text| !text.is_empty()));
    let why = match &object {
        Value::Object(_) if !has("kind") => "it has no kind",
        Value::Object(_) if !has("apiVersion") => "it has no apiVersion",
        Value::Object(_) if has_only_generate_name(&object) => {
            "it has a generateName and no name, which is not made up here"
        }
        Value::Object(_) => return Ok(Manifest { object, place }),
        _ => "it is no object",
    };
    Err(place.failure(why))
}

fn has_only_generate_name(object: &Value) -> bool {
    object.pointer("/metadata/generateName").is_some() && object.pointer("/metadata/name").is_none()
}

/// `Pod shop/web-0`, as far as it says so.
fn described(value: &Value) -> String {
    let empty = Map::new();
    let object = value.as_object().unwrap_or(&empty);
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or("something");
    let metadata = |name: &str| value.pointer(&format!("/metadata/{name}")).and_then(Value::as_str);
    match (metadata("namespace"), metadata("name").or_else(|| metadata("generateName"))) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (None, Some(name)) => format!("{kind} {name}"),
        _ => format!("{kind} without a name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(name: &str, text: &str) -> Result<Vec<String>, String> {
        let manifests = read_text(Path::new(name), text).map_err(|failure| failure.to_string())?;
        Ok(manifests.iter().map(|manifest| manifest.place.to_string()).collect())
    }

    #[test]
    fn documents_and_lists_of_both_languages_are_read() {
        let yaml = "---\n# nothing\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\n---\n\
                    apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: b}\n- metadata: {name: c}\n";
        let found = read_as("a.yaml", yaml).expect("objects");
        assert_eq!(
            found,
            [
                "a.yaml, document 1: Pod shop/a",
                "a.yaml, document 2, item 1: Pod b",
                "a.yaml, document 2, item 2: Pod c"
            ]
        );
        let json = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}} {"apiVersion":"v1","kind":"List","items":[
            {"apiVersion":"v1","kind":"Node","metadata":{"name":"m"}}]}"#;
        let found = read_as("a.txt", json).expect("objects");
        assert_eq!(found, ["a.txt, document 1: Node n", "a.txt, document 2, item 1: Node m"]);
        let nested = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: NodeList\n  items: [{metadata: {name: m}}]\n";
        assert_eq!(read_as("a.yaml", nested).expect("objects"), ["a.yaml, document 1, item 1: Node m"]);
        let marked = "\u{feff}{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}";
        assert_eq!(read_as("a.json", marked).expect("objects"), ["a.json, document 1: Node n"]);
        let flow = "{apiVersion: v1, kind: Node, metadata: {name: node}}";
        assert_eq!(read_as("a", flow).expect("objects"), ["a, document 1: Node node"]);
    }

    #[test]
    fn numbers_are_those_that_kubectl_reads() {
        let documents = yaml_documents("mode: 0644\nport: 80\nversion: \"1.10\"\n").expect("a document");
        assert_eq!(documents, [serde_json::json!({"mode": 420, "port": 80, "version": "1.10"})]);
    }

    #[test]
    fn what_cannot_be_read_is_named_and_no_value_is_shown() {
        for (name, text, needle) in [
            ("a.json", "{\"kind\": \"Secret\", s3cret", "line 1"),
            ("a.json", "{\"kind\": \"Secret\"} {s3cret", "document 2 is no JSON"),
            ("a.yaml", "a: 1\nb: [s3cret\nc: 2: 3\n", "line"),
            ("a.yaml", "- s3cret\n", "it is no object"),
            ("a.yaml", "apiVersion: v1\nmetadata: {name: a}\n", "it has no kind"),
            ("a.yaml", "kind: Pod\nmetadata: {name: a}\n", "document 1: Pod a"),
            ("a.yaml", "kind: Pod\nkind: s3cret\n", "a key is there twice at line 2"),
            (
                "a.yaml",
                "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n",
                "Pod a- cannot be loaded\n  why: it has a generateName",
            ),
            ("a.yaml", "kind: List\napiVersion: v1\nitems: [{kind: Pod}]\n", "item 1"),
        ] {
            let error = read_as(name, text).expect_err(text);
            assert!(error.contains(needle) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn aliases_do_not_take_all_memory() {
        let aliases = vec!["*a"; 10_000].join(",");
        let text = format!("apiVersion: v1\nkind: Node\nx: &a \"{}\"\ny: [{aliases}]\n", "x".repeat(1 << 20));
        let error = read_as("a.yaml", &text).expect_err("it is ten gigabytes");
        assert!(error.contains("its aliases make too much of it"), "{error}");
    }
}
