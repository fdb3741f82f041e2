//! What is shown of one kind.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use watchkeeper::{Error, InformerStatus, Phase};

use super::{Blind, Observed, Rate};

/// How an informer is doing, in the words of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// It has not begun.
    New,
    /// It reads its first list, or another one.
    Listing {
        /// How many objects have come.
        objects: u64,
    },
    /// All is well.
    Watching,
    /// Nothing has come for so long that it looks for another way.
    Stale,
    /// Something failed; it will try again.
    BackingOff,
    /// The server says no.
    Forbidden,
    /// The kind is not there.
    Absent,
    /// It has ended.
    Stopped,
}

/// One kind.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// `pods`
    pub(crate) name: Arc<str>,
    /// Only metadata is kept.
    pub(crate) metadata_only: bool,
    /// The copy is complete.
    pub(crate) synced: bool,
    /// Objects in the copy, or that have come so far.
    pub(crate) objects: u64,
    /// How it is doing.
    pub(crate) state: State,
    /// How often objects change.
    pub(crate) rate: Rate,
    /// Bytes of JSON, and bytes in memory; none before they were measured.
    pub(crate) sizes: Option<(u64, u64)>,
    /// For how long there was no watch.
    pub(crate) blind: Blind,
    /// Lists after the first.
    pub(crate) relists: u64,
    /// How long ago anything was heard of the server.
    pub(crate) last_contact: Option<Duration>,
    /// What went wrong last, and how long ago. Not escaped.
    pub(crate) last_error: Option<(String, Duration)>,
}

/// The rows of all kinds, in the order in which they were observed.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// A row for each kind.
    pub(crate) rows: Vec<Row>,
    /// How often anything changes.
    pub(crate) rate: Option<Rate>,
    rates: HashMap<Arc<str>, Rate>,
}

impl State {
    /// A word for it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::New => "starting",
            Self::Listing { .. } => "listing",
            Self::Watching => "watching",
            Self::Stale => "silent",
            Self::BackingOff => "waiting",
            Self::Forbidden => "forbidden",
            Self::Absent => "absent",
            Self::Stopped => "stopped",
        }
    }

    fn of(status: &InformerStatus) -> Self {
        let refused = |is: fn(&Error) -> bool| status.last_error.as_ref().is_some_and(|(error, _)| is(error));
        let is_blind = matches!(status.phase, Phase::Listing | Phase::BackingOff);
        match status.phase {
            _ if is_blind && refused(|error| error.is_forbidden() || error.is_unauthorized()) => Self::Forbidden,
            _ if is_blind && refused(Error::is_not_found) => Self::Absent,
            Phase::New => Self::New,
            Phase::Listing => Self::Listing { objects: status.listed_objects },
            Phase::Watching => Self::Watching,
            Phase::Stale => Self::Stale,
            Phase::BackingOff => Self::BackingOff,
            Phase::Stopped => Self::Stopped,
        }
    }
}

impl Row {
    /// Bytes of JSON and in memory of an object, on average; none before any was measured.
    pub(crate) fn size_of_each(&self) -> Option<(u64, u64)> {
        let (json, memory) = self.sizes.filter(|_| self.synced)?;
        each(json, memory, self.objects)
    }
}

impl Rows {
    /// Looks at all informers.
    pub(crate) fn sample<'a>(&mut self, now: Instant, kinds: impl IntoIterator<Item = &'a Observed>) {
        self.rows.clear();
        let mut changes = 0;
        for kind in kinds {
            let rate = self.rates.entry(kind.name.clone()).or_insert_with(|| Rate::new(now));
            rate.sample(now, kind.changes());
            changes += kind.changes();
            self.rows.push(row(kind, rate.clone()));
        }
        self.rate.get_or_insert_with(|| Rate::new(now)).sample(now, changes);
    }

    /// How many objects there are of all kinds.
    pub(crate) fn objects(&self) -> u64 {
        self.rows.iter().map(|row| row.objects).sum()
    }

    /// Bytes of JSON and in memory of all kinds that were measured.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        let measured = self.rows.iter().filter_map(|row| row.sizes);
        measured.fold((0, 0), |(json, memory), (of_json, of_memory)| (json + of_json, memory + of_memory))
    }

    /// Bytes of JSON and in memory of an object of any kind, on average; none before any was measured.
    pub(crate) fn size_of_each(&self) -> Option<(u64, u64)> {
        let objects = self.rows.iter().filter(|row| row.size_of_each().is_some()).map(|row| row.objects).sum();
        let (json, memory) = self.sizes();
        each(json, memory, objects)
    }

    /// How many kinds have had their first list.
    pub(crate) fn synced(&self) -> usize {
        self.rows.iter().filter(|row| row.synced).count()
    }

    /// How many kinds are watched at this moment.
    pub(crate) fn watching(&self) -> usize {
        self.rows.iter().filter(|row| row.state == State::Watching).count()
    }

    /// How often there was no watch of a kind.
    pub(crate) fn gaps(&self) -> u64 {
        self.rows.iter().map(|row| row.blind.gaps).sum()
    }

    /// The longest time for which there was no watch of a kind.
    pub(crate) fn longest_gap(&self) -> Duration {
        self.rows.iter().map(|row| row.blind.longest).max().unwrap_or_default()
    }

    /// Lists after the first, of all kinds.
    pub(crate) fn relists(&self) -> u64 {
        self.rows.iter().map(|row| row.relists).sum()
    }

    /// How many changes were heard of.
    pub(crate) fn changes(&self) -> u64 {
        self.rate.as_ref().map_or(0, Rate::total)
    }

    /// How many changes were heard of within the last second.
    pub(crate) fn last_second(&self) -> u64 {
        self.rate.as_ref().map_or(0, Rate::last_second)
    }
}

/// The parts of so many objects; none if there are no objects.
pub(crate) fn each(json: u64, memory: u64, objects: u64) -> Option<(u64, u64)> {
    Some((json.checked_div(objects)?, memory.checked_div(objects)?))
}

fn row(kind: &Observed, rate: Rate) -> Row {
    let status = kind.informer.status();
    let objects = if status.synced { status.objects as u64 } else { status.listed_objects.max(status.objects as u64) };
    Row {
        name: kind.name.clone(),
        metadata_only: kind.metadata_only,
        synced: status.synced,
        objects,
        state: State::of(&status),
        rate,
        sizes: kind.sizes.of(status.objects),
        blind: kind.blind(),
        relists: status.relists.values().sum(),
        last_contact: status.last_contact.map(|contact| contact.elapsed()),
        last_error: status.last_error.map(|(error, at)| (error.to_string(), at.elapsed())),
    }
}
