//! How is an informer doing?

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::Instant;

use super::core::Core;
use crate::{Error, ListerWatcher as _, Packing, Phase, Reason, ReflectorStatus};

/// The state of an informer at one moment, read without a lock: for health checks, for people, for metrics.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerStatus {
    /// What it is doing. If several namespaces do different things, the one that is worst off counts.
    pub phase: Phase,
    /// The first list has been applied, of each namespace.
    pub synced: bool,
    /// Objects in the store.
    pub objects: usize,
    /// Objects received by the lists that are being read, or were read last: progress, while there is no more to see.
    pub listed_objects: u64,
    /// When anything was last received; of the namespace that has heard nothing for the longest time. None if one has
    /// never heard anything.
    pub last_contact: Option<Instant>,
    /// What went wrong last, in any namespace, and when. It may be long over.
    pub last_error: Option<(Error, Instant)>,
    /// Why it stopped, if nobody wanted it to.
    pub failure: Option<Error>,
    /// Watches that were opened in place of another, with no list in between.
    pub watch_restarts: BTreeMap<Reason, u64>,
    /// Lists after the first one that was attempted.
    pub relists: BTreeMap<Reason, u64>,
    /// How many objects there are of which the newest state could not be used; what was known before still stands.
    pub stale_object_count: u64,
    /// Each namespace by itself; if all are watched at once, that under no name.
    pub partitions: Vec<(Option<Arc<str>>, ReflectorStatus)>,
}

impl InformerStatus {
    /// The copy is complete, and something was heard of the server within `silence`. Bookmarks come about once a minute, and
    /// a watch lasts ten minutes at most: with less than ten minutes a quiet server that sends no bookmarks looks dead.
    pub fn is_current(&self, silence: Duration) -> bool {
        self.synced
            && !matches!(self.phase, Phase::New | Phase::Stopped)
            && self.last_contact.is_some_and(|contact| contact.elapsed() <= silence)
    }
}

impl Core {
    pub(super) fn status(&self) -> InformerStatus {
        let partitions: Vec<(Option<Arc<str>>, ReflectorStatus)> =
            self.partitions.iter().map(|partition| (partition.namespace.clone(), partition.status.get())).collect();
        let all = || partitions.iter().map(|(_, status)| status);
        let (mut watch_restarts, mut relists) = (BTreeMap::new(), BTreeMap::new());
        for status in all() {
            sum(&mut watch_restarts, &status.watch_restarts);
            sum(&mut relists, &status.relists);
        }
        InformerStatus {
            phase: all().map(|status| status.phase).max_by_key(|phase| badness(*phase)).unwrap_or(Phase::New),
            synced: self.processor.synced.is_raised(),
            objects: self.processor.objects.load(Relaxed),
            listed_objects: all().map(|status| status.listed_objects).sum(),
            last_contact: all().map(|status| status.last_contact).min().flatten(),
            last_error: all().filter_map(|status| status.last_error.clone()).max_by_key(|(_, at)| *at),
            failure: self.failure.load_full().map(|failure| (*failure).clone()),
            watch_restarts,
            relists,
            stale_object_count: all().map(|status| status.stale_object_count).sum(),
            partitions,
        }
    }

    pub(super) fn packing(&self) -> Packing {
        // All partitions have one packer.
        let source = self.partitions.first().and_then(|partition| partition.source());
        source.map(|source| source.packing()).unwrap_or_default()
    }
}

fn sum(into: &mut BTreeMap<Reason, u64>, counts: &BTreeMap<Reason, u64>) {
    for (reason, count) in counts {
        *into.entry(*reason).or_default() += count;
    }
}

fn badness(phase: Phase) -> u8 {
    match phase {
        Phase::Watching => 0,
        Phase::Listing => 1,
        Phase::New => 2,
        Phase::Stale => 3,
        Phase::BackingOff => 4,
        Phase::Stopped => 5,
    }
}
