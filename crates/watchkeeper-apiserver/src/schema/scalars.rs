//! Single values, as Go reads them and writes them again: amounts and times in their usual form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Scalar, Schema, times};
pub(super) use crate::http::body::json_type;
use crate::tables::quantity;

/// Why a value is none of its type.
#[derive(Debug, PartialEq)]
pub(super) enum Wrong {
    /// `fatal` for types that read themselves: nothing behind it is read.
    Type {
        found: String,
        expected: String,
        fatal: bool,
    },
    Text {
        text: String,
        fatal: bool,
    },
}

impl Wrong {
    pub(super) fn is_fatal(&self) -> bool {
        let (Self::Type { fatal, .. } | Self::Text { fatal, .. }) = self;
        *fatal
    }
}

/// A value as it is kept. A map or a list stands for what was found, its entries do not matter.
pub(super) fn read(scalar: Scalar, value: Value, wide: bool) -> Result<Value, Wrong> {
    match (scalar, value) {
        (Scalar::Untyped, value) => Ok(value),
        (Scalar::String, value @ Value::String(_)) => Ok(value),
        (Scalar::Boolean, value @ Value::Bool(_)) => Ok(value),
        (Scalar::Number, value @ Value::Number(_)) => Ok(value),
        (Scalar::Integer, Value::Number(number)) => match number.as_i64() {
            Some(integer) if wide || i32::try_from(integer).is_ok() => Ok(integer.into()),
            _ => Err(mismatch(format!("number {number}"), scalar, wide)),
        },
        (Scalar::IntOrString, value @ Value::String(_)) => Ok(value),
        (Scalar::IntOrString, Value::Number(number)) => match number.as_i64() {
            Some(integer) if i32::try_from(integer).is_ok() => Ok(integer.into()),
            _ => Err(mismatch(format!("number {number}"), scalar, wide)),
        },
        (Scalar::Bytes, Value::String(text)) => bytes(text),
        (Scalar::Quantity, Value::String(text)) => amount(&text),
        (Scalar::Quantity, Value::Number(number)) => amount(&number.to_string()),
        (Scalar::Quantity, _) => Err(own_text(quantity::WRONG_FORMAT)),
        (Scalar::Time, Value::String(text)) => time(&text, &times::SECONDS),
        (Scalar::MicroTime, Value::String(text)) => time(&text, &times::MICROSECONDS),
        (Scalar::Time | Scalar::MicroTime, value) => {
            Err(Wrong::Type { found: json_type(&value).to_owned(), expected: "string".to_owned(), fatal: true })
        }
        (scalar, value) => Err(mismatch(json_type(&value).to_owned(), scalar, wide)),
    }
}

/// What Go calls a type.
pub(super) fn go_type(scalar: Scalar, wide: bool) -> &'static str {
    match scalar {
        Scalar::Integer if wide => "int64",
        Scalar::Integer | Scalar::IntOrString => "int32",
        Scalar::Number => "float64",
        Scalar::Boolean => "bool",
        Scalar::Bytes => "[]uint8",
        Scalar::Quantity => "resource.Quantity",
        Scalar::Time => "v1.Time",
        Scalar::MicroTime => "v1.MicroTime",
        Scalar::String => "string",
        Scalar::Untyped => "interface {}",
    }
}

/// What Go has where nothing was said.
pub(super) fn zero(schema: &Schema) -> Value {
    match schema {
        Schema::Any | Schema::List(_) => Value::Null,
        Schema::Map(_) => Value::Object(Map::new()),
        Schema::Scalar(Scalar::String) => "".into(),
        Schema::Scalar(Scalar::Integer | Scalar::Number | Scalar::IntOrString) => 0.into(),
        Schema::Scalar(Scalar::Boolean) => false.into(),
        Schema::Scalar(Scalar::Quantity) => "0".into(),
        Schema::Scalar(_) => Value::Null,
    }
}

fn amount(text: &str) -> Result<Value, Wrong> {
    quantity::parsed(text).map(Value::String).map_err(own_text)
}

fn bytes(text: String) -> Result<Value, Wrong> {
    match STANDARD.decode(text.as_bytes()) {
        Ok(_) => Ok(Value::String(text)),
        Err(error) => {
            let place = match error {
                base64::DecodeError::InvalidByte(place, _) | base64::DecodeError::InvalidLastSymbol(place, _) => place,
                _ => text.len(),
            };
            Err(Wrong::Text { text: format!("illegal base64 data at input byte {place}"), fatal: false })
        }
    }
}

fn time(text: &str, layout: &times::Layout) -> Result<Value, Wrong> {
    times::read(text, layout).map(Value::String).map_err(|text| own_text(&text))
}

fn mismatch(found: String, scalar: Scalar, wide: bool) -> Wrong {
    Wrong::Type { found, expected: go_type(scalar, wide).to_owned(), fatal: scalar == Scalar::IntOrString }
}

fn own_text(text: &str) -> Wrong {
    Wrong::Text { text: text.to_owned(), fatal: true }
}
