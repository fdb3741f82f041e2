//! Which columns does a table have?

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::printer::{self, Printer};
use crate::kinds::{Kind, Version};

/// A column, in the order of Go's `TableColumnDefinition`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    format: String,
    description: String,
    priority: i32,
}

/// The columns of the built-in kinds by their paths (`apis/apps/v1/deployments`) as JSON, unpacked once per process.
static COLUMNS: LazyLock<BTreeMap<String, Bytes>> =
    LazyLock::new(|| recorded().into_iter().map(|(path, columns)| (path, encoded(&columns))).collect());

/// What kinds have whose columns nobody wrote down: name and age.
static CUSTOM: LazyLock<Bytes> = LazyLock::new(|| {
    let mut columns = recorded().remove("api/v1/serviceaccounts").unwrap_or_default();
    for age in columns.iter_mut().filter(|column| column.name == "Age") {
        age.kind = "date".to_owned();
    }
    encoded(&columns)
});

/// The columns of a kind in one of its versions, as a JSON array.
pub(super) fn columns(kind: &Kind, version: &Version) -> Bytes {
    if let Some(printer) = printer::of(version.served.as_deref()) {
        return printed(printer);
    }
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    let path = format!("{root}/{}/{}", version.api_version, kind.plural);
    let known = COLUMNS.get(&path).filter(|_| !kind.custom);
    known.unwrap_or_else(|| &*CUSTOM).clone()
}

/// The columns of a kind that has its own, behind its name.
fn printed(printer: &Printer) -> Bytes {
    let mut columns: Vec<Column> = serde_json::from_slice(&CUSTOM).unwrap_or_default();
    columns.truncate(1);
    columns.extend(printer.columns().map(|(column, description)| Column {
        name: column.name.clone(),
        kind: column.kind.clone(),
        format: column.format.clone(),
        description,
        priority: column.priority,
    }));
    encoded(&columns)
}

fn recorded() -> BTreeMap<String, Vec<Column>> {
    let packed = include_bytes!("../../data/columns.json.gz");
    let mut text = String::new();
    // The data is part of the program, and a test reads it: it cannot be bad at run time.
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("packed columns");
    serde_json::from_str(&text).expect("columns")
}

fn encoded(columns: &[Column]) -> Bytes {
    // Texts and numbers always encode.
    serde_json::to_vec(columns).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::super::layout;
    use super::*;
    use crate::kinds::Registry;

    #[test]
    fn every_built_in_kind_that_can_be_read_has_columns_and_a_cell_for_each() {
        let registry = Registry::new();
        let mut tables = 0;
        for kind in registry.all() {
            for version in kind.versions.iter().filter(|version| version.allows("get")) {
                let columns: Vec<Column> = serde_json::from_slice(&columns(&kind, version)).expect("columns");
                let cells = layout::cells(&kind).len();
                // A kube-apiserver sends the age of addresses without a column for it.
                let extra = usize::from(kind.plural == "ipaddresses");
                assert_eq!(cells, columns.len() + extra, "{} {}", kind.plural, version.api_version);
                tables += 1;
            }
        }
        assert_eq!(tables, COLUMNS.len(), "kinds that can be read, and kinds with columns");
    }

    #[test]
    fn custom_kinds_have_a_name_and_an_age() {
        let columns: Vec<Column> = serde_json::from_slice(&CUSTOM).expect("columns");
        let shown: Vec<(&str, &str)> = columns.iter().map(|c| (c.name.as_str(), c.kind.as_str())).collect();
        assert_eq!(shown, [("Name", "string"), ("Age", "date")]);
    }
}
