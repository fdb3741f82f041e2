//! What does the program print?
//!
//! A [`Printer`] is made of [`PrintOptions`] and takes [`Change`]s: one at a time as they happen ([`Printer::change`]),
//! the first ones of a kind together ([`Printer::changes`]), or a whole listing at once ([`Printer::list`]). It knows
//! nothing of the network.
//!
//! | file | answers |
//! |---|---|
//! | `change` | what a change is, and its body, decoded when a format first needs it |
//! | `format`, `options` | what `-o` and the other flags say |
//! | `printer` | which format prints what, and what is hidden |
//! | `table`, `custom_columns` | rows, aligned while they stream |
//! | `documents`, `yaml` | JSON, YAML, and a line of JSON per change |
//! | `diff`, `diff_text` | which fields changed |
//! | `noise` | which changes nobody wants to see |
//! | `secrets` | what nobody must see |
//! | `sort`, `quantity` | `--sort-by` |
//! | `jsonpath` | kubectl's dialect of it |

mod change;
mod custom_columns;
mod diff;
mod diff_text;
mod documents;
mod format;
pub(crate) mod jsonpath;
mod noise;
mod options;
mod printer;
mod quantity;
mod secrets;
mod sort;
mod table;
mod yaml;

#[cfg(test)]
mod jsonl_tests;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub(crate) use change::{Body, Change, ChangeType, Column, Resource};
pub(crate) use format::{Format, FormatError};
pub(crate) use options::{PrintOptions, Times};
pub(crate) use printer::{Group, PrintError, Printer, Shown};
pub(crate) use sort::SortBy;
