//! Objects against their schema, as Go reads JSON into a struct: what has no field is left out, what comes twice is
//! noticed, and what has the wrong type is an error.
//!
//! Counterpart: `sigs.k8s.io/json`. It reads on behind a wrong type and tells of the first one; but types that read
//! themselves (times, quantities) end the reading at once.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::scalars::{self, Wrong};
use super::{Scalar, Schema, SchemaRef};
use crate::validation::quoted;

/// More is not told of.
const MOST_NOTES: usize = 100;
/// How many bytes of paths are written for notes: one long key may stand before thousands that come twice.
const NOTED_BYTES: usize = 4 << 20;

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    /// What the schema has room for.
    pub(crate) value: Value,
    /// `unknown field "spec.foo"`, `duplicate field "spec.foo"`, in the order of the text.
    pub(crate) notes: Vec<String>,
    /// What made it unreadable, as Go words it.
    pub(crate) error: Option<String>,
}

/// Reads JSON, or a tree, against a schema. Text that is no JSON is the caller's to refuse: of it, nothing is read.
pub(crate) fn decode<'de>(source: impl Deserializer<'de>, schema: &SchemaRef) -> Decoded {
    let mut reader = Reader { struct_name: struct_name(schema).to_owned(), ..Reader::default() };
    let value = Seed { reader: &mut reader, schema, wide: false }.deserialize(source);
    Decoded {
        value: value.ok().flatten().unwrap_or_default(),
        notes: reader.notes,
        error: reader.fatal.or(reader.error),
    }
}

#[derive(Default)]
struct Reader {
    /// Where it is, with places in lists: `spec.containers[1]`.
    path: String,
    /// The same without them: `spec.containers`.
    fields: String,
    /// The innermost struct.
    struct_name: String,
    notes: Vec<String>,
    /// Bytes of the paths of all notes, told or not.
    noted: usize,
    error: Option<String>,
    fatal: Option<String>,
}

/// One level deeper.
enum Step<'a> {
    Index(usize),
    /// Of a map: Go's errors do not name it.
    Key(&'a str),
    /// With the struct that Go has inlined around it, if there is one.
    Field(&'a str, Option<&'static str>),
}

impl Reader {
    fn note(&mut self, what: &str, key: &str) {
        if self.notes.len() >= MOST_NOTES || self.noted > NOTED_BYTES {
            return;
        }
        let mut path = self.path.clone();
        push(&mut path, key);
        self.noted += path.len();
        let note = format!("{what} field {}", quoted(&path));
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn wrong(&mut self, wrong: Wrong) {
        let text = match &wrong {
            Wrong::Text { text, .. } => text.clone(),
            Wrong::Type { found, expected, .. } if self.fields.is_empty() => {
                format!("json: cannot unmarshal {found} into Go value of type {expected}")
            }
            Wrong::Type { found, expected, .. } => format!(
                "json: cannot unmarshal {found} into Go struct field {}.{} of type {expected}",
                self.struct_name, self.fields
            ),
        };
        let place = if wrong.is_fatal() { &mut self.fatal } else { &mut self.error };
        place.get_or_insert(text);
    }

    fn mismatch(&mut self, found: &str, schema: &SchemaRef, wide: bool) {
        self.wrong(Wrong::Type { found: found.to_owned(), expected: type_name(schema, wide), fatal: false });
    }

    fn step<T>(&mut self, step: Step<'_>, inner: impl FnOnce(&mut Self) -> T) -> T {
        let (path, fields) = (self.path.len(), self.fields.len());
        match step {
            Step::Index(index) => self.path.push_str(&format!("[{index}]")),
            Step::Key(key) => push(&mut self.path, key),
            Step::Field(key, inlined) => {
                push(&mut self.path, key);
                inlined.iter().for_each(|inlined| push(&mut self.fields, inlined));
                push(&mut self.fields, key);
            }
        }
        let result = inner(self);
        self.path.truncate(path);
        self.fields.truncate(fields);
        result
    }
}

/// Reads one value. Null is nothing, and so is what could not be read.
struct Seed<'a> {
    reader: &'a mut Reader,
    schema: &'a SchemaRef,
    /// Of an integer: it has 64 bits.
    wide: bool,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Option<Value>, D::Error> {
        match &**self.schema {
            Schema::Scalar(Scalar::Untyped) => serde::Deserialize::deserialize(source).map(Some),
            _ => source.deserialize_any(self),
        }
    }
}

impl Seed<'_> {
    fn scalar<E>(self, value: Value) -> Result<Option<Value>, E> {
        Ok(match &**self.schema {
            Schema::Any => Some(value),
            Schema::Scalar(scalar) => match scalars::read(*scalar, value, self.wide) {
                Ok(value) => Some(value),
                Err(wrong) => {
                    self.reader.wrong(wrong);
                    None
                }
            },
            Schema::Map(_) | Schema::List(_) => {
                self.reader.mismatch(scalars::json_type(&value), self.schema, self.wide);
                None
            }
        })
    }

    /// A map or a list where a scalar is due.
    fn composite(self, found: Value) {
        match &**self.schema {
            Schema::Scalar(scalar) => {
                if let Err(wrong) = scalars::read(*scalar, found, self.wide) {
                    self.reader.wrong(wrong);
                }
            }
            _ => self.reader.mismatch(scalars::json_type(&found), self.schema, self.wide),
        }
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Option<Value>, E> {
        Ok(match &**self.schema {
            Schema::Any => Some(Value::Null),
            _ => None,
        })
    }

    fn visit_bool<E>(self, value: bool) -> Result<Option<Value>, E> {
        self.scalar(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Option<Value>, E> {
        self.scalar(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Option<Value>, E> {
        self.scalar(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Option<Value>, E> {
        self.scalar(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Option<Value>, E> {
        self.scalar(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Option<Value>, A::Error> {
        static ANY: std::sync::LazyLock<SchemaRef> = std::sync::LazyLock::new(|| Schema::Any.into());
        let items = match &**self.schema {
            Schema::List(list) => &list.items,
            Schema::Any => &*ANY,
            _ => {
                while source.next_element::<IgnoredAny>()?.is_some() {}
                self.composite(Value::Array(Vec::new()));
                return Ok(None);
            }
        };
        let reader = self.reader;
        let mut values = Vec::new();
        loop {
            let seed = |reader: &mut Reader| source.next_element_seed(Seed { reader, schema: items, wide: self.wide });
            match reader.step(Step::Index(values.len()), seed)? {
                None => return Ok(Some(Value::Array(values))),
                // In Go, an entry that is null is an empty one.
                Some(value) => values.push(value.unwrap_or_else(|| scalars::zero(items))),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Option<Value>, A::Error> {
        let Self { reader, schema, .. } = self;
        let map = match &**schema {
            Schema::Map(map) => Some(map),
            Schema::Any => None,
            _ => {
                while source.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Self { reader, schema, wide: self.wide }.composite(Value::Object(Map::new()));
                return Ok(None);
            }
        };
        let any = SchemaRef::from(Schema::Any);
        let type_name = schema.type_name().unwrap_or_default();
        let outer = match schema.go_type() {
            Some(_) => std::mem::replace(&mut reader.struct_name, struct_name(schema).to_owned()),
            None => reader.struct_name.clone(),
        };
        // Fields that were null: they are seen, and not there.
        let mut skipped: Vec<String> = Vec::new();
        let mut values = Map::new();
        while let Some(key) = source.next_key::<String>()? {
            let field = map.and_then(|map| map.fields.get(key.as_str()));
            let (step, inner, wide) = match (field, map) {
                (Some(field), _) => (Step::Field(&key, inlined(type_name, &key)), &field.schema, field.wide),
                (None, Some(map)) => match &map.others {
                    Some(others) => (Step::Key(&key), others, false),
                    None if map.keeps_unknown => (Step::Key(&key), &any, false),
                    None => {
                        reader.note("unknown", &key);
                        source.next_value::<IgnoredAny>()?;
                        continue;
                    }
                },
                (None, None) => (Step::Key(&key), &any, false),
            };
            if values.contains_key(&key) || skipped.contains(&key) {
                reader.note("duplicate", &key);
            }
            let is_field = matches!(step, Step::Field(..));
            let value = reader.step(step, |reader| source.next_value_seed(Seed { reader, schema: inner, wide }))?;
            match value {
                Some(value) => put(&mut values, key, value),
                None if !is_field => put(&mut values, key, scalars::zero(inner)),
                None if skipped.contains(&key) => {}
                None => skipped.push(key),
            }
        }
        reader.struct_name = outer;
        Ok(Some(Value::Object(values)))
    }
}

/// The struct that Go's errors name between a type and a field of it.
fn inlined(type_name: &str, field: &str) -> Option<&'static str> {
    match (type_name, field) {
        ("core.v1.Probe", "exec" | "grpc" | "httpGet" | "tcpSocket") => Some("ProbeHandler"),
        ("core.v1.Volume", field) if field != "name" => Some("VolumeSource"),
        ("core.v1.EphemeralContainer", field) if field != "targetContainerName" => Some("EphemeralContainerCommon"),
        (
            "core.v1.PersistentVolumeSpec",
            "accessModes"
            | "capacity"
            | "claimRef"
            | "mountOptions"
            | "nodeAffinity"
            | "persistentVolumeReclaimPolicy"
            | "storageClassName"
            | "volumeAttributesClassName"
            | "volumeMode",
        ) => None,
        ("core.v1.PersistentVolumeSpec", _) => Some("PersistentVolumeSource"),
        (
            "core.v1.ConfigMapEnvSource"
            | "core.v1.ConfigMapKeySelector"
            | "core.v1.ConfigMapProjection"
            | "core.v1.ConfigMapVolumeSource"
            | "core.v1.SecretEnvSource"
            | "core.v1.SecretKeySelector"
            | "core.v1.SecretProjection",
            "name",
        ) => Some("LocalObjectReference"),
        _ => None,
    }
}

/// What comes twice is read into the same place: maps grow together, the rest is replaced.
fn put(values: &mut Map<String, Value>, key: String, value: Value) {
    match (values.get_mut(&key), value) {
        (Some(Value::Object(known)), Value::Object(more)) => {
            for (key, value) in more {
                put(known, key, value);
            }
        }
        (_, value) => drop(values.insert(key, value)),
    }
}

fn push(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

fn struct_name(schema: &SchemaRef) -> &str {
    schema.go_type().and_then(|name| name.rsplit('.').next()).unwrap_or_default()
}

/// What Go calls a type.
fn type_name(schema: &SchemaRef, wide: bool) -> String {
    if let Some(name) = schema.go_type() {
        return name.to_owned();
    }
    match &**schema {
        Schema::Any => "interface {}".to_owned(),
        Schema::Scalar(scalar) => scalars::go_type(*scalar, wide).to_owned(),
        Schema::List(list) => format!("[]{}", type_name(&list.items, wide)),
        Schema::Map(map) => match &map.others {
            Some(others) if **others == Schema::Scalar(Scalar::Quantity) => "v1.ResourceList".to_owned(),
            Some(others) => format!("map[string]{}", type_name(others, wide)),
            None => "map[string]interface {}".to_owned(),
        },
    }
}
