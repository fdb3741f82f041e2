//! What do `custom-columns` show?

use std::str::FromStr;

use serde_json::Value;

use super::FormatError;
use super::jsonpath::{Template, value_text};
use super::table::Row;
use crate::terminal::escape_text;

/// Columns that are made of paths: `NAME:.metadata.name,NODE:.spec.nodeName`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CustomColumns {
    columns: Vec<(String, Template)>,
}

impl CustomColumns {
    /// The headers.
    pub(super) fn headers(&self) -> Vec<String> {
        self.columns.iter().map(|(header, _)| escape_text(header).into_owned()).collect()
    }

    /// The row of an object. Several values stand apart by commas; what is not there, or does not fit, is `<none>`.
    /// Lists and maps are JSON, where kubectl has the notation of Go.
    pub(super) fn row(&self, object: &Value) -> Row {
        self.columns.iter().map(|(_, template)| cell(template, object)).collect()
    }
}

impl FromStr for CustomColumns {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let column = |text: &str| {
            let (header, path) = text.split_once(':').ok_or_else(|| FormatError::Column(text.to_owned()))?;
            if path.is_empty() {
                return Err(FormatError::Column(text.to_owned()));
            }
            let template = Template::path(path).map_err(|error| FormatError::ColumnPath(header.to_owned(), error))?;
            Ok((header.to_owned(), template))
        };
        Ok(Self { columns: split(text).into_iter().map(column).collect::<Result<_, _>>()? })
    }
}

fn cell(template: &Template, object: &Value) -> String {
    let groups = template.find(object).unwrap_or_default();
    let values: Vec<_> = groups.into_iter().flatten().map(value_text).collect();
    if values.is_empty() { "<none>".to_owned() } else { escape_text(&values.join(",")).into_owned() }
}

/// Splits at commas that are neither in brackets nor in quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut brackets, mut quote) = (0_usize, None);
    let at_comma = move |character: char| {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '[') => brackets += 1,
            (None, ']') => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        character == ',' && quote.is_none() && brackets == 0
    };
    text.split(at_comma).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(columns: &str, object: &Value) -> Row {
        columns.parse::<CustomColumns>().map_or_else(|error| vec![error.to_string()], |columns| columns.row(object))
    }

    #[test]
    fn values_are_joined_and_missing_ones_said() {
        let object =
            json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}, {"port": 443}], "gone": null}});
        let columns = "A:metadata.name,B:{.spec.ports[*].port},C:.status.phase,D:.spec.ports[0,1].port,E:.spec.gone,F:.metadata[0]";
        assert_eq!(row(columns, &object), ["web", "80,443", "<none>", "80,443", "<nil>", "<none>"]);
    }

    #[test]
    fn filters_may_hold_commas_and_cells_may_not_hold_orders() {
        let object = json!({"c": [{"t": "a,b", "v": "\x1b[31mred\nline"}]});
        assert_eq!(row(r#"X:.c[?(@.t=="a,b")].v,Y:.c[0].t"#, &object), ["^[[31mred\\nline", "a,b"]);
    }
}
