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

/// Reads all objects of a file.
pub(super) fn read(path: &Path) -> Outcome<Vec<Manifest>> {
    let failed = |why: String| Failure::new(Exit::Error, format!("{} cannot be loaded", path.display())).because(why);
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let documents = documents(path, &text).map_err(failed)?;
    let mut manifests = Vec::new();
    for (number, document) in documents.into_iter().enumerate() {
        objects(path, number + 1, document, &mut manifests)?;
    }
    if manifests.is_empty() {
        return Err(failed("there is no object in it".to_owned()));
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
            max_total_scalar_bytes: usize::MAX,
            max_total_comment_bytes: usize::MAX,
            max_depth: DEPTH,
        },
        // As kubectl reads them: `defaultMode: 0644`.
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    let documents = serde_saphyr::from_multiple_with_options::<Value>(text, options);
    let documents = documents.map_err(|error| match error.location() {
        Some(location) => format!("it is no YAML at line {}, column {}", location.line(), location.column()),
        None => "it is no YAML".to_owned(),
    })?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The objects of one document: itself, or those of a list.
fn objects(path: &Path, document: usize, value: Value, into: &mut Vec<Manifest>) -> Outcome<()> {
    let place = |item, value: &Value| Place { path: path.to_owned(), document, item, object: described(value) };
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let is_list = kind.ends_with("List") && value.get("items").is_some_and(Value::is_array);
    if !is_list {
        let place = place(None, &value);
        into.push(checked(value, place)?);
        return Ok(());
    }
    let Some(Value::Array(items)) = value.get("items").cloned() else { return Ok(()) };
    for (number, mut item) in items.into_iter().enumerate() {
        // The items of a `PodList` need not say that they are pods.
        if let (Some(item), Some(kind)) =
            (item.as_object_mut(), kind.strip_suffix("List").filter(|kind| !kind.is_empty()))
        {
            item.entry("kind").or_insert_with(|| kind.into());
            item.entry("apiVersion").or_insert_with(|| api_version.clone().into());
        }
        let place = place(Some(number + 1), &item);
        into.push(checked(item, place)?);
    }
    Ok(())
}

fn checked(object: Value, place: Place) -> Outcome<Manifest> {
    let has = |name: &str| object.get(name).is_some_and(|value| value.as_str().is_some_and(|text| !text.is_empty()));
    let why = match &object {
        Value::Object(_) if !has("kind") => "it has no kind",
        Value::Object(_) if !has("apiVersion") => "it has no apiVersion",
        Value::Object(_) => return Ok(Manifest { object, place }),
        _ => "it is no object",
    };
    Err(place.failure(why))
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
        let documents = documents(Path::new(name), text)?;
        let mut manifests = Vec::new();
        for (number, document) in documents.into_iter().enumerate() {
            objects(Path::new(name), number + 1, document, &mut manifests).map_err(|failure| failure.to_string())?;
        }
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
            ("a.yaml", "kind: List\napiVersion: v1\nitems: [{kind: Pod}]\n", "item 1"),
        ] {
            let error = read_as(name, text).expect_err(text);
            assert!(error.contains(needle) && !error.contains("s3cret"), "{error}");
        }
    }
}
