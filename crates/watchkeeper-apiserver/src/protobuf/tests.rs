use std::io::Read;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::{Malformed, to_json};

/// Objects in both encodings, as Go wrote them.
fn examples() -> Vec<(Value, Vec<u8>)> {
    let packed = include_bytes!("../../data/messages-examples.jsonl.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|mut line| (line["json"].take(), BASE64_STANDARD.decode(line["protobuf"].as_str().unwrap()).unwrap()))
        .collect()
}

/// Go writes null for some times that are zero: as good as nothing.
fn without_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, value| !value.is_null());
    }
    match value {
        Value::Array(values) => values.iter_mut().for_each(without_nulls),
        Value::Object(map) => map.values_mut().for_each(without_nulls),
        _ => {}
    }
}

#[test]
fn every_kind_is_the_same_in_both_encodings() {
    let examples = examples();
    assert!(examples.len() > 100, "{} examples", examples.len());
    for (mut wanted, protobuf) in examples {
        let name = format!("{} {}", wanted["apiVersion"], wanted["kind"]);
        let mut translated: Value = serde_json::from_slice(&to_json(&protobuf).expect(&name)).expect(&name);
        without_nulls(&mut wanted);
        without_nulls(&mut translated);
        assert_eq!(translated, wanted, "{name}");
    }
}

#[test]
fn bytes_that_end_too_early_are_refused_and_harm_nobody() {
    let (_, protobuf) = examples().into_iter().find(|(json, _)| json["kind"] == "Pod").unwrap();
    // Before the object there are its kind and version, behind it two fields that say nothing.
    for length in 20..protobuf.len() - 4 {
        assert_eq!(to_json(&protobuf[..length]), Err(Malformed::Wire), "{length} bytes");
    }
}

#[test]
fn any_byte_may_be_wrong() {
    let (_, protobuf) = examples().into_iter().find(|(json, _)| json["kind"] == "Service").unwrap();
    for at in 0..protobuf.len() {
        for flip in [1, 4, 0x80, 0xff] {
            let mut bytes = protobuf.clone();
            bytes[at] ^= flip;
            // An error or another object, and no panic.
            let _ = to_json(&bytes);
        }
    }
}

#[test]
fn what_is_no_envelope_is_said_to_be_none() {
    assert_eq!(to_json(b"{}"), Err(Malformed::NoEnvelope));
    assert_eq!(to_json(b""), Ok(Vec::new()));
    assert_eq!(to_json(&envelope("example.com/v1", "Sail", b"")), Err(Malformed::Kind));
}

#[test]
fn what_is_nested_without_end_is_refused() {
    // A schema in a schema in a schema: `not` is field 28, `validation.openAPIV3Schema` leads to it.
    let mut schema = Vec::new();
    for _ in 0..1_000 {
        schema = message(28, &schema);
    }
    let definition = message(2, &message(7, &message(4, &message(1, &schema))));
    let body = envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", &definition);
    assert_eq!(to_json(&body), Err(Malformed::Depth));
}

#[test]
fn a_zero_that_means_something_is_kept() {
    // `spec.replicas` of a deployment is a pointer, `spec.paused` is not.
    let spec = [&[1 << 3, 0][..], &[7 << 3, 0]].concat();
    let body = envelope("apps/v1", "Deployment", &message(2, &spec));
    let object: Value = serde_json::from_slice(&to_json(&body).unwrap()).unwrap();
    assert_eq!(object, json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 0}}));
}

fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = [message(1, api_version.as_bytes()), message(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), message(1, &type_meta), message(2, object)].concat()
}

/// A field that has a message or a text.
fn message(number: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = varint(number << 3 | 2);
    bytes.extend(varint(content.len() as u64));
    bytes.extend(content);
    bytes
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
