//! The storage as a file: a line with the revision, then a line for each object.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::owners::Owners;
use super::table::Table;
use super::{Document, Storage, Stored};
use crate::kinds::events::is_other_form;
use crate::kinds::{Kind, Registry};

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file itself.
    #[error("the file cannot be used: {0}")]
    Io(#[from] io::Error),
    /// A line of it. Lines count from 1.
    #[error("line {line} is no line of a saved storage: {reason}")]
    Line {
        /// Which one.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
}

#[derive(Serialize, Deserialize)]
struct Head {
    revision: u64,
}

#[derive(Deserialize)]
struct Line {
    group: String,
    resource: String,
    object: Value,
    #[serde(skip)]
    revision: u64,
}

/// A file that was read, and has not been used yet.
pub(crate) struct Saved {
    revision: u64,
    lines: Vec<Line>,
}

impl Saved {
    /// Reads a file. Nothing but kinds can be wrong with it afterwards.
    pub(crate) fn read(input: impl BufRead) -> Result<Self, FileError> {
        let mut lines = input.lines().enumerate().map(|(i, line)| (i + 1, line));
        let bad = |line, reason| FileError::Line { line, reason };
        let (_, head) = lines.next().ok_or_else(|| bad(1, "there is none"))?;
        let head: Head = serde_json::from_str(&head?).map_err(|_| bad(1, "it has no revision"))?;
        // etcd's revisions end there, and every write needs one.
        if i64::try_from(head.revision).is_err() {
            return Err(bad(1, "its revision is too large"));
        }
        let mut read = Vec::new();
        for (number, line) in lines {
            let line: Line = serde_json::from_str(&line?).map_err(|_| bad(number, "it is no object with its kind"))?;
            let version = line.object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
            let revision = version.and_then(|version| version.parse::<u64>().ok());
            let revision = revision.filter(|revision| *revision <= head.revision);
            let revision = revision.ok_or_else(|| bad(number, "its version is none of this file"))?;
            let name = line.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            if name.is_empty() {
                return Err(bad(number, "it has no name"));
            }
            read.push(Line { revision, ..line });
        }
        Ok(Self { revision: head.revision, lines: read })
    }

    /// The objects of a kind.
    pub(crate) fn objects<'a>(&'a self, group: &'a str, plural: &'a str) -> impl Iterator<Item = &'a Value> {
        self.lines.iter().filter(move |line| line.group == group && line.resource == plural).map(|line| &line.object)
    }

    /// Whether all kinds are known.
    pub(crate) fn check(&self, is_known: impl Fn(&str, &str) -> bool) -> Result<(), FileError> {
        match self.lines.iter().position(|line| !is_known(&line.group, &line.resource)) {
            // Behind the first line of the file.
            Some(i) => Err(FileError::Line { line: i + 2, reason: "its kind is unknown" }),
            None => Ok(()),
        }
    }
}

impl Storage {
    /// Writes everything that there is now; not the history.
    pub(crate) fn save(&self, kinds: &[Arc<Kind>], out: &mut impl Write) -> Result<(), FileError> {
        let (revision, tables) = {
            let mut state = self.lock();
            let tables: Vec<Vec<Arc<Stored>>> =
                kinds.iter().map(|kind| state.table(kind.id).objects.values().cloned().collect()).collect();
            (state.revision, tables)
        };
        writeln!(out, r#"{{"revision":{revision}}}"#)?;
        for (kind, objects) in kinds.iter().zip(tables).filter(|(kind, _)| !is_other_form(&kind.group, &kind.plural)) {
            for object in objects {
                write!(out, r#"{{"group":"{}","resource":"{}","object":"#, kind.group, kind.plural)?;
                out.write_all(&object.json_as(kind))?;
                out.write_all(b"}\n")?;
            }
        }
        out.flush()?;
        Ok(())
    }

    /// Puts what a file has in the place of everything. Revisions go on after the file's, so that none is used twice;
    /// the past is not in the file, and is too old for everybody. Objects of unknown kinds are left out.
    pub(crate) fn load(&self, registry: &Registry, saved: Saved) {
        let mut loaded = Vec::new();
        for line in saved.lines {
            let Some(kind) = registry.find(&line.group, &line.resource) else { continue };
            let Some(document) = Document::new(line.object) else { continue };
            let Some(key) = key_of(&kind, &document) else { continue };
            let fields = kind.fields.values(document.as_value());
            let object = Stored::new(&kind, &key, &document, document.labels(), fields, line.revision);
            loaded.push((kind, Arc::new(object)));
        }
        let mut state = self.lock();
        // What was written before the load has used its revisions too. Whoever has seen the latest of them has seen
        // another state than the file's: the load takes a revision of its own, so that they are too late as well.
        let revision = saved.revision.max(state.revision.saturating_add(1));
        // Everybody who watches would be told nothing of this: all watches end, as they do when a server starts anew.
        for table in &mut state.tables {
            *table = Table::new(revision);
        }
        state.journal.clear();
        state.revision = revision;
        state.compacted = revision;
        // What is loaded was written in another life.
        state.journal.clear();
        if let Some(owners) = &mut state.owners {
            *owners = Owners::default();
        }
        for (kind, object) in loaded {
            if let Some(owners) = &mut state.owners {
                owners.fill(&kind, &object);
            }
            state.table(kind.id).objects.insert(object.shared_key(), object);
        }
        self.revision.send_replace(revision);
    }
}

/// `namespace/name`, or `name`; none without a name.
fn key_of(kind: &Kind, document: &Document) -> Option<String> {
    let name = document.meta("name");
    match (name.is_empty(), kind.namespaced) {
        (true, _) => None,
        (false, true) => Some(format!("{}/{name}", document.meta("namespace"))),
        (false, false) => Some(name.to_owned()),
    }
}
