//! Which kinds do CustomResourceDefinitions make?
//!
//! The server registers custom kinds from a program. A definition that is loaded is such a program: its objects can be
//! loaded and served, in all its versions. They are not checked against its schema.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use watchkeeper_apiserver::{ApiServer, CustomResource};

#[derive(Deserialize)]
struct Definition {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
    scope: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Names {
    kind: String,
    plural: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    name: String,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    storage: bool,
    #[serde(default)]
    subresources: Option<Subresources>,
    #[serde(default)]
    selectable_fields: Vec<SelectableField>,
}

#[derive(Default, Deserialize)]
struct Subresources {
    status: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SelectableField {
    json_path: String,
}

/// Makes a definition's kind. The error says why that cannot be done.
pub(super) fn register(definition: &Value, server: &ApiServer) -> Result<(), String> {
    let Definition { spec } = Definition::deserialize(definition)
        .map_err(|_| "it does not say its group, names, scope and versions as a CustomResourceDefinition does")?;
    let mut served: Vec<&Version> = spec.versions.iter().filter(|version| version.served).collect();
    // Objects are stored in the first one.
    served.sort_by_key(|version| !version.storage);
    let (first, others) = served.split_first().ok_or("none of its versions is served")?;
    let make = match spec.scope.as_str() {
        "Namespaced" => CustomResource::namespaced,
        "Cluster" => CustomResource::cluster,
        _ => return Err("its scope is neither Namespaced nor Cluster".to_owned()),
    };
    let mut resource = make(&spec.group, &first.name, &spec.names.kind, &spec.names.plural);
    for version in others {
        resource = resource.version(&version.name);
    }
    for name in &spec.names.short_names {
        resource = resource.short_name(name);
    }
    for category in &spec.names.categories {
        resource = resource.category(category);
    }
    if served.iter().any(|version| version.subresources.as_ref().is_some_and(|all| all.status.is_some())) {
        resource = resource.with_status();
    }
    for field in &first.selectable_fields {
        resource = resource.selectable(&field.json_path);
    }
    server.register(resource).map(|_| ()).map_err(|error| error.to_string())
}

/// The definitions in a saved state, whose other lines may need them.
pub(super) fn definitions_in_state(path: &Path) -> io::Result<Vec<Value>> {
    #[derive(Deserialize)]
    struct Line {
        object: Value,
    }

    let mut definitions = Vec::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        if line.starts_with(r#"{"group":"apiextensions.k8s.io","resource":"customresourcedefinitions","#)
            // What is wrong with the file the server says itself.
            && let Ok(Line { object }) = serde_json::from_str(&line)
        {
            definitions.push(object);
        }
    }
    Ok(definitions)
}
