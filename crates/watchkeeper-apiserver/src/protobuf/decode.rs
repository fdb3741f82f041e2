//! What is a message as JSON? The same as Go makes of its types.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::Malformed;
use super::messages::{Count, MESSAGES, Member, What};
use super::wire::{Field, Fields, varint};
use crate::defaults::DEPTH_LIMIT;

type Object = Map<String, Value>;

/// A message of the type with this index.
pub(super) fn message(index: usize, bytes: &[u8]) -> Result<Object, Malformed> {
    let mut object = Object::new();
    fill(&mut object, index, bytes, DEPTH_LIMIT)?;
    Ok(object)
}

/// Puts the fields of a message into an object. `levels` is how deep it may still go.
fn fill(object: &mut Object, index: usize, bytes: &[u8], levels: usize) -> Result<(), Malformed> {
    let levels = levels.checked_sub(1).ok_or(Malformed::Depth)?;
    for field in Fields::of(bytes) {
        let (number, field) = field?;
        let Some(member) = MESSAGES.member(index, number) else { continue };
        match (member.count, member.what) {
            (Count::One, What::Message(inner)) if member.name.is_empty() => {
                fill(object, inner, field.bytes()?, levels)?
            }
            (Count::One, what) => put(object, member, value(what, field, levels)?),
            (Count::List, what) => extend(list(object, member), what, field, levels)?,
            (Count::Map, what) => {
                let (key, value) = entry(what, field, levels)?;
                if let Value::Object(map) = slot(object, member, || Value::Object(Object::new())) {
                    map.insert(key, value);
                }
            }
        }
    }
    Ok(())
}

fn put(object: &mut Object, member: &Member, value: Value) {
    // A time that is zero is null, which is as good as nothing everywhere.
    if value.is_null() || member.drops_zero && is_zero(&value) {
        object.remove(&*member.name);
    } else {
        object.insert(String::from(&*member.name), value);
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

fn slot<'a>(object: &'a mut Object, member: &Member, empty: fn() -> Value) -> &'a mut Value {
    object.entry(&*member.name).or_insert_with(empty)
}

fn list<'a>(object: &'a mut Object, member: &Member) -> &'a mut Value {
    slot(object, member, || Value::Array(Vec::new()))
}

/// Adds an element of a list, or several numbers in one piece.
fn extend(list: &mut Value, what: What, field: Field<'_>, levels: usize) -> Result<(), Malformed> {
    let Value::Array(items) = list else { return Ok(()) };
    match (what, field) {
        (What::Integer | What::Boolean, Field::Bytes(mut packed)) => {
            while !packed.is_empty() {
                let number = Field::Varint(varint(&mut packed)?);
                items.push(value(what, number, levels)?);
            }
        }
        _ => items.push(value(what, field, levels)?),
    }
    Ok(())
}

/// An entry of a map is a message with a key and a value; both are left out if they are empty.
fn entry(what: What, field: Field<'_>, levels: usize) -> Result<(String, Value), Malformed> {
    let levels = levels.checked_sub(1).ok_or(Malformed::Depth)?;
    let (mut key, mut found) = ("", None);
    for field in Fields::of(field.bytes()?) {
        match field? {
            (1, field) => key = field.text()?,
            (2, field) => found = Some(value(what, field, levels)?),
            _ => {}
        }
    }
    let shown = match found {
        Some(shown) => shown,
        None => value(what, Field::Bytes(&[]), levels)?,
    };
    Ok((key.to_owned(), shown))
}

fn value(what: What, field: Field<'_>, levels: usize) -> Result<Value, Malformed> {
    Ok(match what {
        What::Text => Value::from(field.text()?),
        What::Boolean => Value::from(field.varint()? != 0),
        // Negative numbers are written with all their 64 bits.
        What::Integer => Value::from(field.varint()?.cast_signed()),
        What::Float => match field {
            Field::Fixed64(bits) => Value::from(f64::from_bits(bits)),
            _ => return Err(Malformed::Wire),
        },
        What::Bytes => Value::from(BASE64_STANDARD.encode(field.bytes()?)),
        What::Texts => texts(field.bytes()?, 1)?,
        What::Time => time(field.bytes()?, 0)?,
        What::MicroTime => time(field.bytes()?, 6)?,
        What::Quantity => quantity(field.bytes()?)?,
        What::IntOrString => int_or_string(field.bytes()?)?,
        What::Raw => raw(field.bytes()?, levels)?,
        What::Message(index) => {
            let mut object = Object::new();
            fill(&mut object, index, field.bytes()?, levels)?;
            Value::Object(object)
        }
        What::SchemaOrList(schema) => schema_or(field.bytes()?, schema, levels, |bytes| {
            let schemas = Fields::of(bytes).filter_map(|field| match field {
                Ok((2, field)) => Some(value(What::Message(schema), field, levels)),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            });
            schemas.collect::<Result<_, _>>().map(Value::Array)
        })?,
        What::SchemaOrTexts(schema) => schema_or(field.bytes()?, schema, levels, |bytes| texts(bytes, 2))?,
        What::SchemaOrBoolean(schema) => schema_or_boolean(field.bytes()?, schema, levels)?,
    })
}

/// The texts of all fields with this number.
fn texts(bytes: &[u8], number: u32) -> Result<Value, Malformed> {
    let mut items = Vec::new();
    for field in Fields::of(bytes) {
        match field? {
            (found, field) if found == number => items.push(Value::from(field.text()?)),
            _ => {}
        }
    }
    Ok(Value::Array(items))
}

/// Seconds and nanoseconds since 1970; nothing at all is Go's zero.
fn time(bytes: &[u8], digits: usize) -> Result<Value, Malformed> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanoseconds) = (0, 0);
    for field in Fields::of(bytes) {
        match field? {
            (1, field) => seconds = field.varint()?.cast_signed(),
            (2, field) => nanoseconds = i32::try_from(field.varint()?.cast_signed()).map_err(|_| Malformed::Time)?,
            _ => {}
        }
    }
    let time = Timestamp::new(seconds, nanoseconds).map_err(|_| Malformed::Time)?;
    Ok(Value::from(format!("{time:.digits$}")))
}

fn quantity(bytes: &[u8]) -> Result<Value, Malformed> {
    let mut text = "0";
    for field in Fields::of(bytes) {
        if let (1, field) = field? {
            text = field.text()?;
        }
    }
    Ok(Value::from(if text.is_empty() { "0" } else { text }))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, Malformed> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    for field in Fields::of(bytes) {
        match field? {
            (1, field) => is_text = field.varint()? == 1,
            (2, field) => number = field.varint()?.cast_signed(),
            (3, field) => text = field.text()?,
            _ => {}
        }
    }
    Ok(if is_text { Value::from(text) } else { Value::from(number) })
}

/// JSON within the message.
fn raw(bytes: &[u8], levels: usize) -> Result<Value, Malformed> {
    let mut found = Value::Null;
    for field in Fields::of(bytes) {
        if let (1, field) = field? {
            found = serde_json::from_slice(field.bytes()?).map_err(|_| Malformed::Json)?;
        }
    }
    match crate::http::body::is_within_depth(&found, levels, &mut { usize::MAX }) {
        true => Ok(found),
        false => Err(Malformed::Depth),
    }
}

/// The schema is field 1; if there is none, it is something else.
fn schema_or(
    bytes: &[u8],
    schema: usize,
    levels: usize,
    other: impl FnOnce(&[u8]) -> Result<Value, Malformed>,
) -> Result<Value, Malformed> {
    for field in Fields::of(bytes) {
        if let (1, field) = field? {
            return value(What::Message(schema), field, levels);
        }
    }
    other(bytes)
}

fn schema_or_boolean(bytes: &[u8], schema: usize, levels: usize) -> Result<Value, Malformed> {
    let mut found = Value::Bool(false);
    for field in Fields::of(bytes) {
        match field? {
            (1, field) => found = Value::Bool(field.varint()? != 0),
            (2, field) => return value(What::Message(schema), field, levels),
            _ => {}
        }
    }
    Ok(found)
}
