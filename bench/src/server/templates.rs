//! The pods that all others are made of, and the places in them that differ from pod to pod.
//!
//! `data/pods.json.zst` and `data/pods.pb.zst` hold the same 400 pods with placeholders for whatever differs.
//! `peers/client-go/templates` makes them. A placeholder is as long as any value of its sort, so a pod is a copy of its
//! template with some bytes written over.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::value::RawValue;

use crate::values::Field;

const JSON: &[u8] = include_bytes!("../../data/pods.json.zst");
const PROTOBUF: &[u8] = include_bytes!("../../data/pods.pb.zst");

/// In what a client wants its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Json,
    Protobuf,
}

/// One of the 400.
pub(crate) struct Template {
    pub(crate) namespace: String,
    /// The name of the Deployment, which names of pods begin with.
    pub(crate) app: String,
    pub(crate) node: String,
    json: Body,
    protobuf: Body,
}

impl Template {
    pub(crate) fn body(&self, format: Format) -> &Body {
        match format {
            Format::Json => &self.json,
            Format::Protobuf => &self.protobuf,
        }
    }
}

/// A pod's bytes. Those of JSON begin behind the opening brace, where a watch puts kind and apiVersion.
pub(crate) struct Body {
    bytes: Vec<u8>,
    fields: Vec<(Field, Vec<usize>)>,
}

impl Body {
    fn new(bytes: Vec<u8>, placeholders: &Placeholders) -> Self {
        let mut fields: Vec<(Field, Vec<usize>)> = Vec::new();
        for (at, first) in bytes.iter().enumerate() {
            let candidates = &placeholders[usize::from(*first)];
            if let Some((field, _)) = candidates.iter().find(|(_, placeholder)| bytes[at..].starts_with(placeholder)) {
                match fields.iter_mut().find(|(other, _)| other == field) {
                    Some((_, places)) => places.push(at),
                    None => fields.push((*field, vec![at])),
                }
            }
        }
        Self { bytes, fields }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends pod `number` as it is at `revision`.
    pub(crate) fn fill(&self, number: u32, revision: u64, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend_from_slice(&self.bytes);
        let pod = &mut to[start..];
        let mut space = [0; Field::LONGEST];
        for (field, places) in &self.fields {
            let value = field.value(number, revision, &mut space);
            for at in places {
                pod[*at..*at + value.len()].copy_from_slice(value);
            }
        }
    }
}

/// Placeholders by their first byte.
type Placeholders = Vec<Vec<(Field, Vec<u8>)>>;

fn placeholders(format: Format) -> Placeholders {
    let mut by_first = vec![Vec::new(); 256];
    for (field, placeholder) in Field::all(format) {
        by_first[usize::from(placeholder[0])].push((field, placeholder));
    }
    by_first
}

/// All templates, in the order of the list that they come from.
pub(crate) fn templates() -> &'static [Template] {
    static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(unpacked);
    &TEMPLATES
}

fn unpacked() -> Vec<Template> {
    let json = zstd::decode_all(JSON).expect("data/pods.json.zst is packed with zstd");
    let protobuf = zstd::decode_all(PROTOBUF).expect("data/pods.pb.zst is packed with zstd");
    let mut list: BTreeMap<&str, &RawValue> = serde_json::from_slice(&json).expect("a list");
    let pods: Vec<&RawValue> = serde_json::from_str(list.remove("items").expect("its items").get()).expect("an array");
    let same_pods = items_of_protobuf(&protobuf);
    assert_eq!(pods.len(), same_pods.len(), "both files are of the same pods");
    let placeholders = (placeholders(Format::Json), placeholders(Format::Protobuf));
    let pairs = pods.into_iter().zip(same_pods);
    pairs.map(|(json, protobuf)| template(json.get(), protobuf, &placeholders)).collect()
}

fn template(json: &str, protobuf: &[u8], placeholders: &(Placeholders, Placeholders)) -> Template {
    let text = |field: &str| {
        let (_, behind) = json.split_once(&format!("\"{field}\":\"")).expect("a field that each of the pods has");
        behind.split('"').next().unwrap_or_default().to_owned()
    };
    Template {
        namespace: text("namespace"),
        app: text("app"),
        node: text("nodeName"),
        json: Body::new(json.as_bytes()[1..].to_vec(), &placeholders.0),
        protobuf: Body::new(protobuf.to_vec(), &placeholders.1),
    }
}

/// What stands in field 2 of a PodList.
fn items_of_protobuf(mut list: &[u8]) -> Vec<&[u8]> {
    let mut items = Vec::new();
    while let Some((&tag, rest)) = list.split_first() {
        let (length, rest) = varint(rest);
        let (field, rest) = rest.split_at(length);
        if tag == 2 << 3 | 2 {
            items.push(field);
        }
        list = rest;
    }
    items
}

fn varint(bytes: &[u8]) -> (usize, &[u8]) {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).expect("the end of a number");
    let value = bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
    (value, &bytes[end + 1..])
}
