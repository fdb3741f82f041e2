//! What do the OpenAPI documents of a kube-apiserver say?
//!
//! They are packed into the crate as a real server answered them, byte by byte. The documents of the group versions
//! repeat each other, and the older document repeats them all: 8.6 MB of text, 1.6 MB of it different. So the different
//! text is kept once, and each document is a list of slices of it. Both are unpacked when the first document is asked
//! for; a document is put together anew each time.

mod custom;
mod documents;
mod gnostic;
mod yaml;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use bytes::Bytes;

pub(crate) use documents::Documents;

static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| unpacked(include_bytes!("../../data/openapi-text.gz")));

/// The slices of each document: how far each begins behind the end of the one before, and its length.
static DOCUMENTS: LazyLock<BTreeMap<String, Vec<i64>>> = LazyLock::new(|| {
    let packed = unpacked(include_bytes!("../../data/openapi-documents.json.gz"));
    // The data is part of the program, and a test reads it: it cannot be bad at run time.
    serde_json::from_slice(&packed).expect("slices of the OpenAPI documents")
});

/// The document that `/openapi/v3/<path>` answers: `apis/apps/v1`, `api/v1`, `version`.
pub(crate) fn document(path: &str) -> Option<Bytes> {
    assembled(&format!("v3/{path}"))
}

/// The paths that have a document, sorted.
#[cfg(test)]
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    DOCUMENTS.keys().filter_map(|name| name.strip_prefix("v3/"))
}

/// The answer to `/openapi/v3`: all paths with the hashes of their documents.
pub(crate) fn index() -> Bytes {
    assembled("v3").unwrap_or_default()
}

/// The answer to `/openapi/v2`, as JSON: one document for all kinds.
pub(crate) fn v2() -> Bytes {
    assembled("v2").unwrap_or_default()
}

/// The bytes of a packed file of the crate.
pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The data is part of the program, and tests read it: it cannot be bad at run time.
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).expect("a packed file of the crate");
    bytes
}

fn assembled(name: &str) -> Option<Bytes> {
    let slices = DOCUMENTS.get(name)?;
    let mut document = Vec::new();
    let mut end = 0;
    for slice in slices.chunks_exact(2) {
        let start = usize::try_from(end + slice[0]).ok()?;
        let length = usize::try_from(slice[1]).ok()?;
        document.extend_from_slice(TEXT.get(start..start + length)?);
        end += slice[0] + slice[1];
    }
    Some(document.into())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_path_of_the_index_has_a_document() {
        let index: Value = serde_json::from_slice(&index()).expect("JSON");
        let listed: Vec<&str> = index["paths"].as_object().expect("paths").keys().map(String::as_str).collect();
        let mut packed: Vec<&str> = paths().collect();
        packed.sort_unstable();
        assert_eq!(listed, packed);
        for path in listed {
            let document: Value = serde_json::from_slice(&document(path).expect("a document")).expect("JSON");
            assert_eq!(document["openapi"], "3.0.0", "{path}");
        }
        assert_eq!(document("apis/none/v1"), None);
    }

    #[test]
    fn the_older_document_has_all_types() {
        let document: Value = serde_json::from_slice(&v2()).expect("JSON");
        assert_eq!(document["swagger"], "2.0");
        assert_eq!(document["definitions"]["io.k8s.api.core.v1.Pod"]["type"], "object");
    }
}
