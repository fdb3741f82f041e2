//! What is shown of the demo, at one moment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Options;
use super::check::Verdict;
use super::cluster::Cluster;
use super::faults::Log;
use crate::living::{Happening, QueueSample};
use crate::screen::model::{Change, Rows};

/// How many changes and lines of the story are taken at most: no screen is longer.
const LINES: usize = 100;

/// Everything that is shown.
#[derive(Default)]
pub(crate) struct Model {
    /// Where the server can be reached.
    pub(crate) url: String,
    /// The kubeconfig for that.
    pub(crate) kubeconfig: String,
    /// How long it has been going on.
    pub(crate) elapsed: Duration,
    /// The kinds.
    pub(crate) rows: Rows,
    /// Whether the copies are equal to the server.
    pub(crate) verdict: Verdict,
    /// Whether things go wrong.
    pub(crate) rains: bool,
    /// What went wrong.
    pub(crate) faults: Log,
    /// The last changes, the newest first.
    pub(crate) changes: Vec<Arc<Change>>,
    /// What is happening, the newest first.
    pub(crate) story: Vec<Happening>,
    /// The queues of the cluster's controllers.
    pub(crate) queues: Vec<QueueSample>,
    /// The kind whose changes are shown; all, if there is none.
    pub(crate) picked: Option<usize>,
    /// It stands still.
    pub(crate) is_paused: bool,
}

impl Model {
    /// Before anything is there.
    pub(crate) fn new(options: &Options) -> Self {
        Self { rains: options.faults, ..Self::default() }
    }

    /// Looks at the cluster.
    pub(crate) fn look(&mut self, cluster: &Cluster) {
        self.url.clone_from(&cluster.url);
        self.kubeconfig = cluster.kubeconfig.display().to_string();
        self.elapsed = cluster.started.elapsed();
        self.rows.sample(Instant::now(), cluster.observed.iter());
        self.verdict = cluster.verdict();
        self.rains = cluster.rain.is_on();
        self.faults = cluster.rain.log();
        self.look_at_changes(cluster);
        self.story = cluster.living.happening(LINES);
        self.story.reverse();
        self.queues = cluster.living.queues();
    }

    /// Looks at the changes of the kind that was picked.
    pub(crate) fn look_at_changes(&mut self, cluster: &Cluster) {
        let kind = self.picked.and_then(|at| cluster.observed.get(at)).map(|kind| &*kind.name);
        self.changes = cluster.watchers.changes.last(LINES, kind);
    }
}
