//! How do rows stay aligned while they stream?
//!
//! Columns are as wide as their header and the widest cell so far, and only grow: rows that were printed cannot be moved
//! any more. Each kind has widths of its own. A header is printed when the columns are not those of the row above.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Change, Column, PrintOptions, Resource};
use crate::terminal::{escape_cell, pad_to, width};

/// Between columns, as in kubectl.
const GAP: &str = "   ";

/// A wider cell is printed whole, and does not push all later rows apart.
const WIDEST: usize = 120;

/// The columns of all kinds that were printed.
#[derive(Debug, Default)]
pub(super) struct Tables {
    layouts: HashMap<Arc<Resource>, Layout>,
    /// The headers that stand above the next row.
    above: Option<Vec<String>>,
}

#[derive(Debug, Default)]
struct Layout {
    headers: Vec<String>,
    widths: Vec<usize>,
}

/// A row, escaped, as many cells as there are headers.
pub(super) type Row = Vec<String>;

impl Tables {
    /// Makes room for rows of a kind that come next.
    pub(super) fn fit<'a>(
        &mut self,
        resource: &Arc<Resource>,
        headers: Vec<String>,
        rows: impl Iterator<Item = &'a Row>,
    ) {
        let layout = self.layouts.entry(Arc::clone(resource)).or_default();
        if layout.headers != headers {
            layout.widths = headers.iter().map(|header| width(header)).collect();
            layout.headers = headers;
        }
        for row in rows {
            for (column, cell) in layout.widths.iter_mut().zip(row) {
                *column = (*column).max(width(cell).min(WIDEST));
            }
        }
    }

    /// The header line, if another one stands above or none.
    pub(super) fn header(&mut self, resource: &Arc<Resource>) -> Option<String> {
        let layout = self.layouts.get(resource)?;
        if self.above.as_ref() == Some(&layout.headers) {
            return None;
        }
        self.above = Some(layout.headers.clone());
        Some(layout.line(&layout.headers))
    }

    /// The line of a row.
    pub(super) fn line(&self, resource: &Arc<Resource>, row: &Row) -> String {
        self.layouts.get(resource).map_or_else(|| row.join(GAP), |layout| layout.line(row))
    }

    /// A listing of another kind begins: its header is printed even if it is the same.
    pub(super) fn begin_group(&mut self) {
        self.above = None;
    }
}

impl Layout {
    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            match self.widths.get(at) {
                Some(width) if at + 1 < cells.len() => {
                    pad_to(&mut line, cell, *width);
                    line.push_str(GAP);
                }
                _ => line.push_str(cell),
            }
        }
        line.truncate(line.trim_end_matches(' ').len());
        line
    }
}

/// The headers of a kind.
pub(super) fn headers(options: &PrintOptions, wide: bool, resource: &Resource, columns: &[Column]) -> Vec<String> {
    let namespace = (options.show_namespace && resource.namespaced).then(|| "NAMESPACE".to_owned());
    let own = visible(wide, columns).map(|(_, column)| escape_cell(&column.name.to_uppercase()).into_owned());
    let name = columns.is_empty().then(|| "NAME".to_owned());
    let label = |label: &String| label.rsplit('/').next().unwrap_or_default().to_uppercase();
    let labels = options.label_columns.iter().map(label).map(|header| escape_cell(&header).into_owned());
    let all = options.show_labels.then(|| "LABELS".to_owned());
    namespace.into_iter().chain(name).chain(own).chain(labels).chain(all).collect()
}

/// The row of a change. Without columns, the name is all that there is.
pub(super) fn row(options: &PrintOptions, wide: bool, columns: &[Column], change: &Change) -> Row {
    let mut row = Row::new();
    if options.show_namespace && change.resource.namespaced {
        row.push(escape_cell(change.key.namespace().unwrap_or_default()).into_owned());
    }
    if columns.is_empty() {
        row.push(name(options, change, change.key.name()));
    }
    for (at, column) in visible(wide, columns) {
        let cell = change.cells.get(at).map(cell).unwrap_or_default();
        row.push(if column.is_name() { name(options, change, &cell) } else { escape_cell(&cell).into_owned() });
    }
    if options.show_labels || !options.label_columns.is_empty() {
        label_cells(options, change, &mut row);
    }
    row
}

fn visible(wide: bool, columns: &[Column]) -> impl Iterator<Item = (usize, &Column)> {
    columns.iter().enumerate().filter(move |(_, column)| wide || column.priority == 0)
}

fn name(options: &PrintOptions, change: &Change, name: &str) -> String {
    let name = if options.show_kind { Cow::Owned(change.resource.name_of(name)) } else { Cow::Borrowed(name) };
    escape_cell(&name).into_owned()
}

/// A cell as kubectl shows it: null is nothing, and what is no text is JSON.
fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// As in kubectl, a label that is missing is nothing, and no labels at all are `<none>`.
fn label_cells(options: &PrintOptions, change: &Change, row: &mut Row) {
    let labels = change.labels();
    for wanted in &options.label_columns {
        let value = labels.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value);
        row.push(escape_cell(value).into_owned());
    }
    if options.show_labels {
        let all: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        row.push(if all.is_empty() { "<none>".to_owned() } else { escape_cell(&all.join(",")).into_owned() });
    }
}
