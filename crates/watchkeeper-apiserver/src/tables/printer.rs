//! The columns that a CustomResourceDefinition has: `additionalPrinterColumns`.
//!
//! Counterpart: `k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor`.

use serde_json::{Number, Value};

use super::age;
use super::json_path::JsonPath;
use super::subject::Subject;
use crate::crds::{ColumnSpec, Served};

/// How the cells of a custom object are made.
#[derive(Debug, PartialEq)]
pub(crate) struct Printer {
    columns: Vec<(ColumnSpec, JsonPath)>,
}

impl Printer {
    /// Of a version's columns. Behind a path that cannot be read there are no more columns, as in a kube-apiserver.
    pub(crate) fn new(columns: &[ColumnSpec]) -> Self {
        let read = |column: &ColumnSpec| Some((column.clone(), JsonPath::new(&column.json_path)?));
        Self { columns: columns.iter().map_while(read).collect() }
    }

    /// Name, type, format, description and priority of each column.
    pub(super) fn columns(&self) -> impl Iterator<Item = (&ColumnSpec, String)> {
        self.columns.iter().map(|(column, _)| {
            let described = match column.description.as_str() {
                "" => format!("Custom resource definition column (in JSONPath format): {}", column.json_path),
                description => description.to_owned(),
            };
            (column, described)
        })
    }

    /// The cells of an object, its name first.
    pub(super) fn cells(&self, object: &Value, subject: Subject<'_>) -> Vec<Value> {
        let name = subject.text("/metadata/name").into();
        let cell = |(column, path): &(ColumnSpec, JsonPath)| match path.first(object) {
            Some(value) => shown(&column.kind, value, subject),
            None => Value::Null,
        };
        std::iter::once(name).chain(self.columns.iter().map(cell)).collect()
    }
}

/// The columns of a version that has its own.
pub(super) fn of(served: Option<&Served>) -> Option<&Printer> {
    served.and_then(|served| served.printer.as_ref())
}

/// A value in a column of a type; null, if it does not fit.
fn shown(kind: &str, value: &Value, subject: Subject<'_>) -> Value {
    match (kind, value) {
        (_, Value::Null) => {
            if kind == "string" {
                "<nil>".into()
            } else {
                Value::Null
            }
        }
        ("string", Value::String(_)) => value.clone(),
        ("string", value) => value.to_string().into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(_) => value.clone(),
            // Go cuts off what is behind the point.
            None => number.as_f64().map_or(Value::Null, |number| (number as i64).into()),
        },
        ("number", Value::Number(number)) => match number.as_f64().filter(|number| number.fract() == 0.0) {
            Some(whole) if whole.abs() < 9.0e15 => Number::from(whole as i64).into(),
            _ => value.clone(),
        },
        ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(time)) if age::is_time(time) => age::since(Some(time), subject.now()).into(),
        ("date", Value::String(_)) => "<invalid>".into(),
        _ => Value::Null,
    }
}
