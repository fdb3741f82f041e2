//! The older document as protobuf: gnostic's `openapi.v2.Document`, which kubectl 1.20 to 1.26 asks for and nothing else.
//!
//! Each message is a table: the keys of the JSON, the numbers of the fields, and what they hold. What JSON has that the
//! tables have not is left out; `x-...` becomes a vendor extension with YAML inside.

use serde_json::{Map, Value};

use super::yaml;

/// The document as protobuf.
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    message(&mut bytes, &DOCUMENT, document);
    bytes
}

struct Message {
    /// In the order of their numbers.
    fields: &'static [(&'static str, u32, Holds)],
    /// The number of `vendor_extension`; none, if there is none.
    extensions: u32,
}

/// What a field holds.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    Texts,
    Flag,
    Double,
    Integer,
    /// Any JSON, as YAML.
    Any,
    Anys,
    One(&'static Message),
    Many(&'static Message),
    /// A map, as a message with a list of names and values in the field of this number.
    Named(u32, &'static Message),
    /// Something that JSON writes in several ways: how to write it.
    Either(fn(&mut Vec<u8>, u32, &Value)),
}

use Holds::{Any, Anys, Double, Either, Flag, Integer, Many, Named, One, Text, Texts};

static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Text),
        ("info", 2, One(&INFO)),
        ("paths", 8, Named(2, &PATH)),
        ("definitions", 9, Named(1, &SCHEMA)),
        ("parameters", 10, Either(parameter_definitions)),
        ("security", 12, Either(security)),
        ("securityDefinitions", 13, Either(security_definitions)),
    ],
    extensions: 16,
};

static INFO: Message =
    Message { fields: &[("title", 1, Text), ("version", 2, Text), ("description", 3, Text)], extensions: 7 };

static PATH: Message = Message {
    fields: &[
        ("get", 2, One(&OPERATION)),
        ("put", 3, One(&OPERATION)),
        ("post", 4, One(&OPERATION)),
        ("delete", 5, One(&OPERATION)),
        ("options", 6, One(&OPERATION)),
        ("head", 7, One(&OPERATION)),
        ("patch", 8, One(&OPERATION)),
        ("parameters", 9, Either(parameters)),
    ],
    extensions: 10,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, Texts),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, Texts),
        ("consumes", 7, Texts),
        ("parameters", 8, Either(parameters)),
        ("responses", 9, Either(responses)),
        ("schemes", 10, Texts),
        ("deprecated", 11, Flag),
    ],
    extensions: 13,
};

static REFERENCE: Message = Message { fields: &[("$ref", 1, Text), ("description", 2, Text)], extensions: 0 };

static BODY_PARAMETER: Message = Message {
    fields: &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Flag),
        ("schema", 5, One(&SCHEMA)),
    ],
    extensions: 6,
};

static QUERY_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("allowEmptyValue", 5, Flag),
        ("type", 6, Text),
        ("format", 7, Text),
        ("uniqueItems", 20, Flag),
    ],
    extensions: 23,
};

static PATH_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("format", 6, Text),
        ("uniqueItems", 19, Flag),
    ],
    extensions: 22,
};

static RESPONSE: Message =
    Message { fields: &[("description", 1, Text), ("schema", 2, Either(schema_item))], extensions: 5 };

static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Double),
        ("maximum", 7, Double),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Double),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, Texts),
        ("enum", 20, Anys),
        ("additionalProperties", 21, Either(additional_properties)),
        ("type", 22, Either(type_item)),
        ("items", 23, Either(items)),
        ("allOf", 24, Many(&SCHEMA)),
        ("properties", 25, Named(1, &SCHEMA)),
        ("example", 30, Any),
    ],
    extensions: 31,
};

static API_KEY: Message = Message {
    fields: &[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)],
    extensions: 5,
};

fn message(out: &mut Vec<u8>, message: &Message, value: &Value) {
    let Value::Object(map) = value else { return };
    for (key, number, holds) in message.fields {
        if let Some(value) = map.get(*key) {
            field(out, *number, *holds, value);
        }
    }
    if message.extensions > 0 {
        for (name, value) in map.iter().filter(|(name, _)| name.starts_with("x-")) {
            nested(out, message.extensions, |out| {
                text(out, 1, name);
                any(out, 2, value);
            });
        }
    }
}

/// What is empty or zero is not written, as is the habit of protobuf.
fn field(out: &mut Vec<u8>, number: u32, holds: Holds, value: &Value) {
    match (holds, value) {
        (Text, Value::String(value)) if !value.is_empty() => text(out, number, value),
        (Texts, Value::Array(values)) => values.iter().filter_map(Value::as_str).for_each(|v| text(out, number, v)),
        (Flag, Value::Bool(true)) => {
            key(out, number, VARINT);
            varint(out, 1);
        }
        (Integer, Value::Number(value)) if value.as_i64().is_some_and(|value| value != 0) => {
            key(out, number, VARINT);
            varint(out, value.as_i64().unwrap_or_default().cast_unsigned());
        }
        (Double, Value::Number(value)) if value.as_f64().is_some_and(|value| value != 0.0) => {
            key(out, number, FIXED64);
            out.extend_from_slice(&value.as_f64().unwrap_or_default().to_le_bytes());
        }
        (Any, value) => any(out, number, value),
        (Anys, Value::Array(values)) => values.iter().for_each(|value| any(out, number, value)),
        (One(of), value @ Value::Object(_)) => nested(out, number, |out| message(out, of, value)),
        (Many(of), Value::Array(values)) => {
            for value in values {
                nested(out, number, |out| message(out, of, value));
            }
        }
        (Named(inner, of), Value::Object(map)) => nested(out, number, |out| named(out, inner, of, map)),
        (Either(write), value) => write(out, number, value),
        _ => {}
    }
}

fn named(out: &mut Vec<u8>, number: u32, of: &Message, map: &Map<String, Value>) {
    for (name, value) in map {
        nested(out, number, |out| {
            text(out, 1, name);
            nested(out, 2, |out| message(out, of, value));
        });
    }
}

/// `ParametersItem`: a parameter, or a reference to one.
fn parameters(out: &mut Vec<u8>, number: u32, value: &Value) {
    for value in value.as_array().into_iter().flatten() {
        nested(out, number, |out| match value.get("$ref") {
            Some(_) => nested(out, 2, |out| message(out, &REFERENCE, value)),
            None => nested(out, 1, |out| parameter(out, value)),
        });
    }
}

fn parameter_definitions(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, |out| {
        for (name, value) in value.as_object().into_iter().flatten() {
            nested(out, 1, |out| {
                text(out, 1, name);
                nested(out, 2, |out| parameter(out, value));
            });
        }
    });
}

/// `Parameter`: in the body, the query or the path.
fn parameter(out: &mut Vec<u8>, value: &Value) {
    match value.get("in").and_then(Value::as_str) {
        Some("body") => nested(out, 1, |out| message(out, &BODY_PARAMETER, value)),
        Some("query") => nested(out, 2, |out| nested(out, 3, |out| message(out, &QUERY_PARAMETER, value))),
        Some("path") => nested(out, 2, |out| nested(out, 4, |out| message(out, &PATH_PARAMETER, value))),
        _ => {}
    }
}

/// `Responses`, by code; none of ours is a reference.
fn responses(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, |out| {
        for (code, value) in value.as_object().into_iter().flatten() {
            nested(out, 1, |out| {
                text(out, 1, code);
                nested(out, 2, |out| nested(out, 1, |out| message(out, &RESPONSE, value)));
            });
        }
    });
}

fn schema_item(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, |out| nested(out, 1, |out| message(out, &SCHEMA, value)));
}

fn additional_properties(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, |out| match value {
        // Within a choice even `false` is written.
        Value::Bool(value) => {
            key(out, 2, VARINT);
            varint(out, u64::from(*value));
        }
        value => nested(out, 1, |out| message(out, &SCHEMA, value)),
    });
}

fn type_item(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, |out| match value {
        Value::String(value) => text(out, 1, value),
        value => field(out, 1, Texts, value),
    });
}

fn items(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, |out| match value {
        Value::Array(values) => values.iter().for_each(|value| nested(out, 1, |out| message(out, &SCHEMA, value))),
        value => nested(out, 1, |out| message(out, &SCHEMA, value)),
    });
}

fn security(out: &mut Vec<u8>, number: u32, value: &Value) {
    for requirement in value.as_array().into_iter().flatten() {
        nested(out, number, |out| {
            for (name, scopes) in requirement.as_object().into_iter().flatten() {
                nested(out, 1, |out| {
                    text(out, 1, name);
                    nested(out, 2, |out| field(out, 1, Texts, scopes));
                });
            }
        });
    }
}

/// A kube-apiserver knows keys in a header only.
fn security_definitions(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, |out| {
        for (name, value) in value.as_object().into_iter().flatten() {
            nested(out, 1, |out| {
                text(out, 1, name);
                nested(out, 2, |out| nested(out, 2, |out| message(out, &API_KEY, value)));
            });
        }
    });
}

fn any(out: &mut Vec<u8>, number: u32, value: &Value) {
    nested(out, number, |out| text(out, 2, &yaml::block(value)));
}

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

fn key(out: &mut Vec<u8>, number: u32, wire: u32) {
    varint(out, u64::from(number << 3 | wire));
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn text(out: &mut Vec<u8>, number: u32, text: &str) {
    key(out, number, BYTES);
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn nested(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    write(&mut inner);
    key(out, number, BYTES);
    varint(out, inner.len() as u64);
    out.extend_from_slice(&inner);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_document_of_the_built_in_kinds_is_as_long_as_that_of_a_kube_apiserver() {
        // Byte by byte they differ in the order of three keys of one kind, and in the kind of a quotation mark.
        let document: Value = serde_json::from_slice(&super::super::v2()).expect("JSON");
        let encoded = encode(&document);
        assert_eq!(encoded.len(), 1_918_069);
        assert!(encoded.starts_with(b"\n\x032.0\x12\x12\n\nKubernetes\x12\x041.36B"));
    }

    #[test]
    fn every_type_of_field_is_written() {
        let schema = json!({"definitions": {"A": {
            "type": ["string", "null"], "minimum": -0.5, "maxLength": 300, "minLength": 0, "uniqueItems": true,
            "additionalProperties": false, "items": [{"$ref": "#/a"}], "default": null, "enum": [1], "x-a": {"b": []},
        }}});
        let expected: &[&[u8]] = &[
            &[0x4a, 88, 0x0a, 86, 0x0a, 1, b'A', 0x12, 81],
            &[0x2a, 7, 0x12, 5],
            b"null\n",
            &[0x49, 0, 0, 0, 0, 0, 0, 0xe0, 0xbf],
            &[0x58, 0xac, 0x02],
            &[0x80, 0x01, 0x01],
            &[0xa2, 0x01, 4, 0x12, 2, b'1', b'\n'],
            &[0xaa, 0x01, 2, 0x10, 0],
            &[0xb2, 0x01, 14, 0x0a, 6],
            b"string",
            &[0x0a, 4],
            b"null",
            &[0xba, 0x01, 7, 0x0a, 5, 0x0a, 3],
            b"#/a",
            &[0xfa, 0x01, 15, 0x0a, 3],
            b"x-a",
            &[0x12, 8, 0x12, 6],
            b"b: []\n",
        ];
        assert_eq!(encode(&schema), expected.concat());
    }
}
