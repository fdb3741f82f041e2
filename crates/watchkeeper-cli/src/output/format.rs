//! What does `-o` say?

use std::fmt;
use std::str::FromStr;

use super::custom_columns::CustomColumns;
use super::jsonpath::{SyntaxError, Template};

/// A form of output.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Format {
    /// Rows of the columns that the server defines; the default.
    #[default]
    Table,
    /// Rows with the columns that are left out otherwise.
    Wide,
    /// `pod/web-1`
    Name,
    /// JSON for people and programs.
    Json,
    /// YAML documents.
    Yaml,
    /// A line of JSON per change, as `docs/jsonl.md` describes it.
    JsonLines,
    /// Which fields changed.
    Diff,
    /// What a jsonpath template finds.
    JsonPath(Template),
    /// Rows of columns that jsonpaths define.
    CustomColumns(CustomColumns),
}

impl Format {
    /// The names that `-o` knows, for help texts.
    pub(crate) const NAMES: &'static str =
        "wide, name, json, yaml, jsonl, diff, jsonpath=TEMPLATE, custom-columns=NAME:PATH,...";

    /// It shows one change after the other, and makes no sense for a listing.
    pub(crate) fn is_for_watch_only(&self) -> bool {
        matches!(self, Self::Diff)
    }

    /// It shows what the server made of an object: the caller asks for tables.
    pub(crate) fn needs_cells(&self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// It is for people, who do not want to see changes of nothing.
    pub(super) fn hides_noise(&self) -> bool {
        matches!(self, Self::Table | Self::Wide | Self::Name | Self::Diff | Self::CustomColumns(_))
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        match text.split_once('=').unwrap_or((text, "")) {
            ("" | "table", "") => Ok(Self::Table),
            ("wide", "") => Ok(Self::Wide),
            ("name", "") => Ok(Self::Name),
            ("json", "") => Ok(Self::Json),
            ("yaml", "") => Ok(Self::Yaml),
            ("jsonl" | "ndjson", "") => Ok(Self::JsonLines),
            ("diff", "") => Ok(Self::Diff),
            (name @ ("jsonpath" | "custom-columns"), "") => Err(FormatError::Missing(name.to_owned())),
            ("jsonpath", template) => Template::parse(template).map(Self::JsonPath).map_err(FormatError::Template),
            ("custom-columns", columns) => columns.parse().map(Self::CustomColumns),
            _ => Err(FormatError::Unknown(text.to_owned())),
        }
    }
}

/// A form of output that there is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FormatError {
    /// Not one of the names.
    Unknown(String),
    /// The name needs something behind an equals sign.
    Missing(String),
    /// A jsonpath that cannot be read.
    Template(SyntaxError),
    /// A column that is not `NAME:PATH`.
    Column(String),
    /// A column whose path cannot be read.
    ColumnPath(String, SyntaxError),
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(text) => write!(f, "no output format {text:?}; there are {}", Format::NAMES),
            Self::Missing(name) if name == "jsonpath" => {
                f.write_str("jsonpath needs a template, for example jsonpath='{.metadata.name}'")
            }
            Self::Missing(name) => write!(f, "{name} needs columns, for example {name}=NAME:.metadata.name"),
            Self::Template(error) => write!(f, "the jsonpath cannot be read: {error}"),
            Self::Column(text) => write!(f, "{text:?} is no column; expected NAME:PATH, as NODE:.spec.nodeName"),
            Self::ColumnPath(name, error) => write!(f, "the path of column {name:?} cannot be read: {error}"),
        }
    }
}

impl std::error::Error for FormatError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        text.parse::<Format>().map_or_else(|error| error.to_string(), |format| format!("{format:?}"))
    }

    #[test]
    fn every_name_that_help_lists_is_known() {
        for name in Format::NAMES.split(", ") {
            let text = name.replace("TEMPLATE", "{.kind}").replace("NAME:PATH,...", "KIND:.kind");
            assert!(text.parse::<Format>().is_ok(), "{text}");
        }
        assert_eq!("".parse(), Ok(Format::Table));
    }

    #[test]
    fn a_wrong_format_is_told_what_there_is() {
        assert_eq!(problem("xml"), format!("no output format \"xml\"; there are {}", Format::NAMES));
        assert_eq!(problem("json=x"), format!("no output format \"json=x\"; there are {}", Format::NAMES));
        assert_eq!(problem("jsonpath"), "jsonpath needs a template, for example jsonpath='{.metadata.name}'");
        assert!(problem("jsonpath={.a").starts_with("the jsonpath cannot be read: the template ends"));
        assert!(problem("custom-columns=NAME").starts_with("\"NAME\" is no column"));
        assert!(problem("custom-columns=A:.a[x]").starts_with("the path of column \"A\" cannot be read"));
    }
}
