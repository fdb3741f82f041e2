//! What is said on stderr: times without a watch, as one line each, and a summary at the end.

use std::time::{Duration, Instant};

use anstyle::Style;
use watchkeeper::{Gap, Phase, Reason};

use crate::commands::feed::Source;
use crate::output::{ChangeType, Shown};
use crate::terminal::{count, escape_text, seconds, tell};

/// How long there may be no watch before somebody is told that it is so. Usually it is over before that.
const PATIENCE: Duration = Duration::from_secs(3);

/// Tells, and counts.
pub(super) struct Report {
    began: Instant,
    added: u64,
    modified: u64,
    deleted: u64,
    hidden: u64,
    gaps: u64,
    blind: Duration,
    /// For each target since when there has been no watch, and whether that was told.
    away: Vec<Option<(Instant, bool)>>,
    dim: Style,
}

impl Report {
    /// Nothing has happened yet.
    pub(super) fn new(targets: usize) -> Self {
        Self {
            began: Instant::now(),
            added: 0,
            modified: 0,
            deleted: 0,
            hidden: 0,
            gaps: 0,
            blind: Duration::ZERO,
            away: vec![None; targets],
            dim: Style::new().dimmed(),
        }
    }

    /// Changes were shown, or hidden because there is nothing to see in them.
    pub(super) fn printed(&mut self, change: ChangeType, Shown { shown, hidden }: Shown) {
        self.hidden += hidden;
        match change {
            ChangeType::Added => self.added += shown,
            ChangeType::Modified => self.modified += shown,
            ChangeType::Deleted => self.deleted += shown,
        }
    }

    /// There is a watch again.
    pub(super) fn gap(&mut self, number: usize, source: &Source, gap: &Gap) {
        self.gaps += 1;
        self.blind += gap.lasted;
        self.away[number] = None;
        let listed = gap.listed.map(|objects| format!(", listed {} objects again", count(objects))).unwrap_or_default();
        let reasons = reasons(&gap.reasons);
        self.say(source, &format!("reconnected after {} ({reasons}{listed})", seconds(gap.lasted)));
    }

    /// Looks whether there is no watch for so long that it should be said.
    pub(super) fn look(&mut self, number: usize, source: &Source) {
        let status = source.informer.status();
        // A first list may take its time, but not because it fails.
        let is_late = status.synced || status.last_error.is_some();
        if !is_late || !matches!(status.phase, Phase::Listing | Phase::BackingOff | Phase::Stale) {
            self.away[number] = None;
            return;
        }
        let (since, told) = *self.away[number].get_or_insert((Instant::now(), false));
        if !told && since.elapsed() >= PATIENCE {
            self.away[number] = Some((since, true));
            let error = status.last_error.map(|(error, _)| error.to_string()).unwrap_or_default();
            self.say(source, &format!("not connected, and trying again: {error}"));
        }
    }

    /// What it was, in a line.
    pub(super) fn summary(&self, sources: &[Source]) {
        let total = self.added + self.modified + self.deleted;
        let mut text = format!(
            "{} changes in {} ({} added, {} modified, {} deleted",
            count(total),
            seconds(self.began.elapsed()),
            count(self.added),
            count(self.modified),
            count(self.deleted),
        );
        if self.hidden > 0 {
            text.push_str(&format!("; {} hidden that show nothing, --all-changes shows them", count(self.hidden)));
        }
        text.push_str(&format!("), {} reconnects", count(self.gaps)));
        if self.gaps > 0 {
            text.push_str(&format!(", {} blind in all", seconds(self.blind)));
        }
        let versions: Vec<String> =
            sources.iter().map(|source| source.informer.last_sync_resource_version().to_string()).collect();
        match versions.iter().max_by_key(|version| (version.len(), version.as_str())) {
            Some(version) if !version.is_empty() => text.push_str(&format!(", last version {}", escape_text(version))),
            _ => {}
        }
        self.print(&text);
    }

    fn say(&self, source: &Source, text: &str) {
        self.print(&escape_text(&format!("{}: {text}", source.target.resource.full_name())));
    }

    fn print(&self, text: &str) {
        let dim = self.dim;
        tell(format_args!("{dim}{text}{dim:#}"));
    }
}

fn reasons(reasons: &[Reason]) -> String {
    let words: Vec<&str> = reasons.iter().map(|reason| word(*reason)).collect();
    words.join(", then ")
}

fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Ended => "the server ended the watch",
        Reason::Disconnected => "the connection broke",
        Reason::TimedOut => "nothing came any more",
        Reason::Stale => "nothing came any more, and a second watch delivered",
        Reason::TooManyRequests => "429, the server is overloaded",
        Reason::Unreachable => "the server could not be reached",
        Reason::InternalError => "500, something broke in the server",
        Reason::Expired => "410, the version was forgotten",
        Reason::VeryShortWatch => "the watch ended at once",
        Reason::UnreadableObject => "an object could not be read",
        Reason::Requested => "as asked",
        _ => "an error",
    }
}
