//! How do bodies in protobuf become JSON?
//!
//! client-go writes built-in kinds as protobuf unless it is told otherwise, and with it `kubectl create` and most
//! controllers. All of them read JSON, so only what they send is translated.
//!
//! | file | answers |
//! |---|---|
//! | `wire` | which fields are in these bytes |
//! | `messages` | what is known of a type: numbers, names, what a field is |
//! | `decode` | what is that as JSON |

mod decode;
mod messages;
mod wire;

use serde_json::Value;

use self::messages::MESSAGES;
use self::wire::{Field, Fields};

/// What such a body is called.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What an envelope begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The bytes are not what they should be. No part of them is shown: they may be secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the body does not begin as protobuf of Kubernetes does")]
    NoEnvelope,
    #[error("the body ends too early, or has a field of another type")]
    Wire,
    #[error("a text in the body is not valid UTF-8")]
    Text,
    #[error("a part of the body that should be JSON is none")]
    Json,
    #[error("the body is nested too deeply")]
    Depth,
    #[error("a time in the body is out of range")]
    Time,
    #[error("there is no such kind in protobuf")]
    Kind,
}

/// Translates the body of a request. An envelope around nothing stays empty.
pub(crate) fn to_json(body: &[u8]) -> Result<Vec<u8>, Malformed> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let envelope = Envelope::read(body)?;
    let mut object = match MESSAGES.of_kind(envelope.api_version, envelope.kind) {
        Some(index) => decode::message(index, envelope.raw)?,
        None => return Err(Malformed::Kind),
    };
    // As Go's encoder has them: in front, if they are there.
    for (name, value) in [("kind", envelope.kind), ("apiVersion", envelope.api_version)] {
        object.insert(name.to_owned(), Value::from(value));
    }
    serde_json::to_vec(&object).map_err(|_| Malformed::Json)
}

/// `runtime.Unknown`: which kind it is, and the bytes of the object.
#[derive(Default)]
struct Envelope<'a> {
    api_version: &'a str,
    kind: &'a str,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut envelope = Self::default();
        for field in Fields::of(body.strip_prefix(MAGIC).ok_or(Malformed::NoEnvelope)?) {
            match field? {
                (1, Field::Bytes(type_meta)) => {
                    for field in Fields::of(type_meta) {
                        match field? {
                            (1, field) => envelope.api_version = field.text()?,
                            (2, field) => envelope.kind = field.text()?,
                            _ => {}
                        }
                    }
                }
                (2, Field::Bytes(raw)) => envelope.raw = raw,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

#[cfg(test)]
mod tests;
