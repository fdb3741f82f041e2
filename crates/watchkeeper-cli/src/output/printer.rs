//! Which format prints what, and what is hidden?

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::ops::AddAssign;
use std::sync::Arc;

use serde_json::Value;
use watchkeeper::{DecodeError, ObjectKey};

use super::documents::{self, List, ListWriter, WatchEvent};
use super::jsonpath::EvaluationError;
use super::sort::NothingToSortBy;
use super::table::{self, Row, Tables};
use super::{Change, ChangeType, Column, Format, PrintOptions, Resource, diff_text, noise, secrets};
use crate::terminal::{escape_cell, escape_lines, is_reader_gone, styles};

/// Prints changes and listings in one format.
///
/// After each call the writer is flushed, so that a reader sees a change when it happens.
///
/// Noise is hidden by default in tables, custom columns, names and diffs: a modification of nothing but
/// `metadata.managedFields` and `metadata.resourceVersion`, or of the `spec.renewTime` of a Lease. A diff hides also what
/// leaves no line to show. [`PrintOptions::all_changes`] shows them; JSON, YAML and jsonpath hide nothing.
#[derive(Debug)]
pub(crate) struct Printer {
    options: PrintOptions,
    tables: Tables,
    /// A YAML document was printed, and the next one needs a line between.
    separate: bool,
}

/// The objects of one kind in a listing.
#[derive(Debug)]
pub(crate) struct Group {
    /// The columns of the kind.
    pub(crate) columns: Vec<Column>,
    /// Its objects. Their type of change is of no interest.
    pub(crate) changes: Vec<Change>,
}

/// How many changes were printed, and how many were not, since they are noise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Printed.
    pub(crate) shown: u64,
    /// Noise.
    pub(crate) hidden: u64,
}

impl Shown {
    const ONE: Self = Self { shown: 1, hidden: 0 };
    const HIDDEN: Self = Self { shown: 0, hidden: 1 };
}

impl AddAssign for Shown {
    fn add_assign(&mut self, other: Self) {
        self.shown += other.shown;
        self.hidden += other.hidden;
    }
}

/// Why something was not printed.
#[derive(Debug)]
pub(crate) enum PrintError {
    /// Nobody reads the output any more: the program ends quietly.
    ReaderGone,
    /// The output cannot be written.
    Output(io::Error),
    /// One object cannot be decoded. The next ones may.
    Object(Box<DecodeError>),
    /// The jsonpath does not fit one object. It may fit the next ones.
    Template(ObjectKey, EvaluationError),
    /// No object has what they should be sorted by.
    Sort(NothingToSortBy),
}

impl PrintError {
    /// It is about one object, and a watch goes on after saying so.
    pub(crate) fn is_about_one_object(&self) -> bool {
        matches!(self, Self::Object(_) | Self::Template(..))
    }
}

impl fmt::Display for PrintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReaderGone => f.write_str("nobody reads the output any more"),
            Self::Output(error) => write!(f, "the output cannot be written: {error}"),
            Self::Object(error) => f.write_str(&escape_cell(&error.to_string())),
            Self::Template(key, error) => write!(f, "{}: {error}", escape_cell(&key.to_string())),
            Self::Sort(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PrintError {}

impl From<io::Error> for PrintError {
    fn from(error: io::Error) -> Self {
        if is_reader_gone(&error) { Self::ReaderGone } else { Self::Output(error) }
    }
}

impl From<&DecodeError> for PrintError {
    fn from(error: &DecodeError) -> Self {
        Self::Object(Box::new(error.clone()))
    }
}

impl Printer {
    /// A printer that has printed nothing yet.
    pub(crate) fn new(options: PrintOptions) -> Self {
        Self { options, tables: Tables::default(), separate: false }
    }

    /// Prints a change of a watch.
    pub(crate) fn change(
        &mut self,
        out: &mut impl Write,
        columns: &[Column],
        change: &Change,
    ) -> Result<Shown, PrintError> {
        let shown = self.one(out, columns, change)?;
        out.flush()?;
        Ok(shown)
    }

    /// Prints the first objects of a kind in a watch: sorted if asked for, and aligned with each other. Objects that
    /// cannot be printed are left out, and said in the end.
    pub(crate) fn changes(
        &mut self,
        out: &mut impl Write,
        columns: &[Column],
        changes: Vec<Change>,
    ) -> Result<Shown, PrintError> {
        let changes = self.sorted(changes)?;
        self.fit(columns, &changes);
        let (mut shown, mut failure) = (Shown::default(), None);
        for change in changes {
            match self.one(out, columns, &change) {
                Ok(one) => shown += one,
                Err(error) if error.is_about_one_object() => failure = failure.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        out.flush()?;
        failure.map_or(Ok(shown), Err)
    }

    /// Prints a whole listing. With `single`, one object was asked for by its name, and is printed without a list around
    /// it.
    pub(crate) fn list(&mut self, out: &mut impl Write, groups: Vec<Group>, single: bool) -> Result<Shown, PrintError> {
        let shown = groups.iter().map(|group| group.changes.len() as u64).sum();
        match self.options.format {
            Format::Table | Format::Wide | Format::CustomColumns(_) => self.tables(out, groups)?,
            _ => self.documents(out, groups, single)?,
        }
        out.flush()?;
        Ok(Shown { shown, hidden: 0 })
    }

    fn one(&mut self, out: &mut impl Write, columns: &[Column], change: &Change) -> Result<Shown, PrintError> {
        let hides = self.options.format.hides_noise() && !self.options.all_changes;
        if hides && noise::is_noise(change) {
            return Ok(Shown::HIDDEN);
        }
        match &self.options.format {
            Format::Table | Format::Wide | Format::CustomColumns(_) => {
                let row = self.row(columns, change)?;
                self.tables.fit(&change.resource, self.headers(&change.resource, columns), std::iter::once(&row));
                self.header(out, &change.resource, true)?;
                writeln!(out, "{}{}", self.prefix(change), self.tables.line(&change.resource, &row))?;
            }
            Format::Name => {
                let deleted = if change.change == ChangeType::Deleted { " deleted" } else { "" };
                writeln!(out, "{}{deleted}", self.name(change))?;
            }
            Format::Diff => return self.diff(out, change),
            Format::JsonPath(template) => {
                let object = self.visible(change)?;
                let text = template.print(&object).map_err(|error| PrintError::Template(change.key.clone(), error))?;
                // Each change is a line, which kubectl's are not: their texts would run into each other.
                let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                write!(out, "{}{end}", self.found(&text))?;
            }
            Format::Json | Format::Yaml | Format::JsonLines => self.document(out, change)?,
        }
        Ok(Shown::ONE)
    }

    /// A whole object.
    fn document(&mut self, out: &mut impl Write, change: &Change) -> Result<(), PrintError> {
        let object = self.visible(change)?;
        let event = WatchEvent { change: change.change.word(), object: &object };
        let with_event = self.options.output_watch_events;
        match self.options.format {
            Format::JsonLines => {
                let key = change.key.to_string();
                documents::write_line(out, change.change.word(), change.time, &key, &change.version, &object)?;
            }
            Format::Yaml => {
                let separator = if self.separate { "---\n" } else { "" };
                out.write_all(separator.as_bytes())?;
                let wrapped = with_event.then(|| serde_json::json!({"type": event.change, "object": event.object}));
                documents::write_yaml(out, wrapped.as_ref().unwrap_or(&object))?;
                self.separate = true;
            }
            _ if with_event => documents::write_json(out, &event)?,
            _ => documents::write_json(out, &*object)?,
        }
        Ok(())
    }

    fn diff(&mut self, out: &mut impl Write, change: &Change) -> Result<Shown, PrintError> {
        let place = match change.key.namespace() {
            Some(namespace) if self.options.show_namespace => format!(" in {}", escape_cell(namespace)),
            _ => String::new(),
        };
        let head = format!("{}{}{place}", self.prefix(change), self.name(change));
        if change.change != ChangeType::Modified {
            writeln!(out, "{head}")?;
            return Ok(Shown::ONE);
        }
        let Some(old) = change.old() else {
            writeln!(out, "{head} (what it was before is not known)")?;
            return Ok(Shown::ONE);
        };
        let (old, new) = (old?, change.object()?);
        let (old, new) = match self.options.show_secrets {
            true => (Cow::Borrowed(old), Cow::Borrowed(new)),
            false => (secrets::mask(&change.resource, old, None), secrets::mask(&change.resource, new, Some(old))),
        };
        let PrintOptions { all_changes, width, color, .. } = self.options;
        let lines = diff_text::lines(&change.resource, &old, &new, all_changes, width, color);
        if lines.is_empty() && !all_changes {
            return Ok(Shown::HIDDEN);
        }
        writeln!(out, "{head}")?;
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        Ok(Shown::ONE)
    }

    /// A listing in rows: the objects of a kind together, an empty line between kinds.
    fn tables(&mut self, out: &mut impl Write, groups: Vec<Group>) -> Result<(), PrintError> {
        let mut first = true;
        for Group { columns, changes } in groups {
            let changes = self.in_order(changes)?;
            let Some(resource) = changes.first().map(|change| Arc::clone(&change.resource)) else { continue };
            let rows = changes.iter().map(|change| self.row(&columns, change)).collect::<Result<Vec<Row>, _>>()?;
            if !std::mem::take(&mut first) {
                writeln!(out)?;
            }
            self.tables.begin_group();
            self.tables.fit(&resource, self.headers(&resource, &columns), rows.iter());
            self.header(out, &resource, false)?;
            for row in &rows {
                writeln!(out, "{}", self.tables.line(&resource, row))?;
            }
        }
        Ok(())
    }

    /// A listing in another form than rows.
    fn documents(&mut self, out: &mut impl Write, groups: Vec<Group>, single: bool) -> Result<(), PrintError> {
        let changes = self.in_order(groups.into_iter().flat_map(|group| group.changes).collect())?;
        let whole = matches!(self.options.format, Format::Json | Format::Yaml | Format::JsonPath(_));
        if !whole || single && changes.len() == 1 && !matches!(self.options.format, Format::JsonPath(_)) {
            return changes.iter().try_for_each(|change| self.one(out, &[], change).map(|_| ()));
        }
        match &self.options.format {
            Format::JsonPath(template) => {
                let objects = changes.iter().map(|change| self.visible(change).map(Cow::into_owned));
                let mut objects = objects.collect::<Result<Vec<Value>, _>>()?;
                let object = match objects.len() {
                    1 if single => objects.remove(0),
                    _ => serde_json::to_value(List::of(&objects)).map_err(io::Error::from)?,
                };
                let key = changes.first().map_or_else(|| ObjectKey::cluster(""), |change| change.key.clone());
                let text = template.print(&object).map_err(|error| PrintError::Template(key, error))?;
                write!(out, "{}", self.found(&text))?;
            }
            // One object after the other: decoded, all of them are many times as large as they are packed.
            format => {
                let mut list = ListWriter::begin(out, *format == Format::Yaml)?;
                for change in changes {
                    list.item(out, self.visible(&change)?.into_owned())?;
                }
                list.end(out)?;
            }
        }
        Ok(())
    }

    /// The object as it may be seen.
    fn visible<'a>(&self, change: &'a Change) -> Result<Cow<'a, Value>, PrintError> {
        let object = change.object()?;
        let mut visible = match self.options.show_secrets {
            true => Cow::Borrowed(object),
            false => secrets::mask(&change.resource, object, None),
        };
        let leaves_out =
            matches!(self.options.format, Format::Json | Format::Yaml) && !self.options.show_managed_fields;
        if leaves_out
            && visible["metadata"].get("managedFields").is_some()
            && let Some(metadata) = visible.to_mut().get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("managedFields");
        }
        Ok(visible)
    }

    /// Makes room for all rows that come at once.
    fn fit(&mut self, columns: &[Column], changes: &[Change]) {
        let Some(first) = changes.first() else { return };
        if matches!(self.options.format, Format::Table | Format::Wide | Format::CustomColumns(_)) {
            let rows: Vec<Row> = changes.iter().filter_map(|change| self.row(columns, change).ok()).collect();
            self.tables.fit(&first.resource, self.headers(&first.resource, columns), rows.iter());
        }
    }

    fn headers(&self, resource: &Resource, columns: &[Column]) -> Vec<String> {
        match &self.options.format {
            Format::CustomColumns(custom) => custom.headers(),
            format => table::headers(&self.options, *format == Format::Wide, resource, columns),
        }
    }

    fn row(&self, columns: &[Column], change: &Change) -> Result<Row, PrintError> {
        match &self.options.format {
            Format::CustomColumns(custom) => Ok(custom.row(&*self.visible(change)?)),
            format => Ok(table::row(&self.options, *format == Format::Wide, columns, change)),
        }
    }

    fn header(&mut self, out: &mut impl Write, resource: &Arc<Resource>, watch: bool) -> io::Result<()> {
        if self.options.no_headers {
            return Ok(());
        }
        let Some(header) = self.tables.header(resource) else { return Ok(()) };
        let events = if watch { format!("{}EVENT    ", self.options.times.header()) } else { String::new() };
        match (self.options.color, styles::HEADER) {
            (true, style) => writeln!(out, "{style}{events}{header}{style:#}"),
            (false, _) => writeln!(out, "{events}{header}"),
        }
    }

    /// When, and what happened.
    fn prefix(&self, change: &Change) -> String {
        let (time, word) = (self.options.times.show(change.time), change.change.word());
        if !self.options.color {
            return format!("{time}{word:<9}");
        }
        let (dim, style) = match change.change {
            ChangeType::Added => (styles::DIM, styles::ADDED),
            ChangeType::Modified => (styles::DIM, styles::MODIFIED),
            ChangeType::Deleted => (styles::DIM, styles::DELETED),
        };
        format!("{dim}{time}{dim:#}{style}{word:<9}{style:#}")
    }

    fn name(&self, change: &Change) -> String {
        escape_cell(&change.resource.name_of(change.key.name())).into_owned()
    }

    /// What a template found: exact for programs, harmless on a terminal.
    fn found<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.options.terminal { escape_lines(text) } else { Cow::Borrowed(text) }
    }

    fn sorted(&self, changes: Vec<Change>) -> Result<Vec<Change>, PrintError> {
        match &self.options.sort_by {
            None => Ok(changes),
            Some(by) => by.sort(changes, |change| change.object().ok()).map_err(PrintError::Sort),
        }
    }

    /// By namespace and name, and then by what was asked for: what is alike keeps the first order.
    fn in_order(&self, mut changes: Vec<Change>) -> Result<Vec<Change>, PrintError> {
        changes.sort_by(|left, right| (&*left.resource.plural, &left.key).cmp(&(&*right.resource.plural, &right.key)));
        self.sorted(changes)
    }
}
