//! What is in the cluster at the beginning?
//!
//! A saved state takes the place of everything, and revisions go on where they were. Manifests are put there as they
//! are, with their status, whatever the order: definitions of custom kinds first, then namespaces, then the rest.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde_json::json;
use watchkeeper_apiserver::ApiServer;

use super::manifests::{self, Manifest};
use super::save::is_saved_state;
use crate::failure::{Exit, Failure, Outcome};
use crate::terminal::escape_text;

/// Loads a saved state, files of manifests, and folders of them. The number of objects that came.
pub(super) fn load(paths: Vec<PathBuf>, server: &ApiServer, make_namespaces: bool) -> Outcome<u64> {
    // A state takes the place of all that was there, and so comes first, and alone.
    let (states, others): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|path| is_saved_state(path));
    if let [_, second, ..] = states.as_slice() {
        return Err(Failure::usage(format!("{} is a saved state, and not the first", second.display()))
            .because("a saved state takes the place of everything")
            .try_this("load one of them"));
    }
    let mut loaded = 0;
    for state in &states {
        loaded += load_state(state, server)?;
    }
    for path in &others {
        loaded += load_manifests(path, server, make_namespaces)?;
    }
    Ok(loaded)
}

fn load_manifests(path: &Path, server: &ApiServer, make_namespaces: bool) -> Outcome<u64> {
    let unreadable = |error: std::io::Error| {
        Failure::new(Exit::Error, format!("{} cannot be loaded", path.display())).because(error)
    };
    if fs::metadata(path).map_err(unreadable)?.is_dir() {
        let files = manifest_files(path).map_err(unreadable)?;
        if files.is_empty() {
            return Err(Failure::new(Exit::Error, format!("{} has nothing to load", path.display()))
                .because("no file in it ends in .yaml, .yml or .json"));
        }
        let mut all = Vec::new();
        for file in files {
            all.extend(manifests::read(&file)?);
        }
        return put(all, server, make_namespaces);
    }
    let all = manifests::read(path)?;
    if all.is_empty() {
        return Err(Failure::new(Exit::Error, format!("{} cannot be loaded", path.display()))
            .because("there is no object in it"));
    }
    put(all, server, make_namespaces)
}

fn load_state(path: &Path, server: &ApiServer) -> Outcome<u64> {
    let failed = |why: String| {
        Failure::new(Exit::Error, format!("the saved state {} cannot be loaded", path.display())).because(why)
    };
    server.load(path).map_err(|error| failed(error.to_string()))?;
    // A file may have anything: what there are no objects of is no reason not to serve the rest.
    for definition in server.unserved_definitions() {
        let path = escape_text(&path.display().to_string()).into_owned();
        eprintln!("the CustomResourceDefinition {} of {path} makes no kind", escape_text(&definition));
    }
    // Every line but the first is an object.
    let file = fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    Ok(BufReader::new(file).split(b'\n').count().saturating_sub(1) as u64)
}

/// The files of a folder, as `kubectl apply -f` takes them: not those of folders in it.
fn manifest_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_manifest = path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        if is_manifest && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn put(mut all: Vec<Manifest>, server: &ApiServer, make_namespaces: bool) -> Outcome<u64> {
    all.sort_by_key(|manifest| match manifest.kind() {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        _ => 2,
    });
    let count = all.len() as u64;
    for Manifest { object, place } in all {
        let stored = server.put(object).map_err(|error| place.failure(&error.to_string()))?;
        let Some(namespace) = stored.namespace().filter(|namespace| !has_namespace(server, namespace)) else {
            continue;
        };
        if !make_namespaces {
            let failure = place.failure(&format!("there is no namespace {namespace:?}"));
            return Err(failure.try_this("load its Namespace too, or add --namespaces on-demand"));
        }
        let made = server.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
        made.map_err(|error| place.failure(&error.to_string()))?;
    }
    Ok(count)
}

fn has_namespace(server: &ApiServer, name: &str) -> bool {
    server.kind("", "namespaces").is_some_and(|kind| server.storage().get(&kind, name).is_some())
}
