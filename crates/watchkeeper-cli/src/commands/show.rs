//! What `watch` and `get` have in common: which objects, and how they are shown.

use std::io::IsTerminal as _;

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::output::{Format, PrintOptions, SortBy, Times};
use crate::terminal::Color;

/// How objects are shown: kubectl's flags, and a few of our own.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "How they are shown")]
pub(crate) struct ShowOptions {
    /// wide, name, json, yaml, jsonl, diff, jsonpath=TEMPLATE or custom-columns=NAME:PATH,... [default: the server's columns]
    #[arg(short, long, value_name = "FORMAT", default_value = "", hide_default_value = true)]
    pub output: Format,

    /// No header above the rows
    #[arg(long)]
    pub no_headers: bool,

    /// All labels, in a column
    #[arg(long)]
    pub show_labels: bool,

    /// A column for each of these labels
    #[arg(short = 'L', long, value_name = "LABEL", value_delimiter = ',')]
    pub label_columns: Vec<String>,

    /// Sort by a field, with a jsonpath: .metadata.creationTimestamp
    #[arg(long, value_name = "PATH")]
    pub sort_by: Option<String>,

    /// The values of Secrets, which are masked otherwise
    #[arg(long)]
    pub show_secrets: bool,

    /// Times with their date, in UTC
    #[arg(long)]
    pub utc: bool,

    /// No times in front of the rows
    #[arg(long, conflicts_with = "utc")]
    pub no_times: bool,
}

impl ShowOptions {
    /// What the printer is to do.
    pub(crate) fn print_options(
        &self,
        color: Color,
        several_kinds: bool,
        several_namespaces: bool,
    ) -> Outcome<PrintOptions> {
        let sort_by = match &self.sort_by {
            None => None,
            Some(path) => Some(SortBy::parse(path).map_err(|error| {
                Failure::usage(format!("{path:?} is no path to sort by"))
                    .because(error)
                    .try_this("for example: --sort-by .metadata.creationTimestamp")
            })?),
        };
        let stdout = std::io::stdout();
        Ok(PrintOptions {
            format: self.output.clone(),
            no_headers: self.no_headers,
            show_kind: several_kinds,
            show_namespace: several_namespaces,
            show_labels: self.show_labels,
            label_columns: self.label_columns.clone(),
            sort_by,
            times: match (self.utc, self.no_times) {
                (true, _) => Times::Utc,
                (_, true) => Times::Hidden,
                _ => Times::default(),
            },
            show_secrets: self.show_secrets,
            color: color.paints(&stdout),
            terminal: stdout.is_terminal(),
            // Crossterm finds the terminal also where the output goes elsewhere, which nothing is to be cut for.
            width: stdout
                .is_terminal()
                .then(ratatui::crossterm::terminal::size)
                .and_then(Result::ok)
                .map(|(width, _)| usize::from(width)),
            ..PrintOptions::default()
        })
    }
}
