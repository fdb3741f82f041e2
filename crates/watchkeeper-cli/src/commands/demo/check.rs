//! Is the cache what the server is?
//!
//! A store tells what it holds and at which version, both of the same moment ([`Snapshot::version`]). The server can tell
//! what it held at that version ([`Truth::at`]). So the two have to be equal, object by object, however far the cache lags
//! behind: nothing has to stand still for it. They are compared by keys and versions each time, and by their bytes now and
//! then.
//!
//! The server knows its past as far as its journal reaches back. Where that is not far enough, nothing is compared, which is
//! counted; when the cache has caught up it can be compared again.
//!
//! [`Snapshot::version`]: watchkeeper::Snapshot::version
//! [`Truth::at`]: watchkeeper_apiserver::Truth::at

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use watchkeeper::{Object, Snapshot};
use watchkeeper_apiserver::{ApiServer, NoTruth};

use crate::screen::model::Observed;

/// How many moments are remembered, to tell how old a revision is.
const MOMENTS: usize = 256;

/// What is known of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checked {
    /// The last version at which it was equal.
    pub(crate) equal_at: Option<u64>,
    /// How often it was compared.
    pub(crate) compared: u64,
    /// How often its bytes were too.
    pub(crate) compared_bytes: u64,
    /// How often the server no longer knew what it held at the cache's version.
    pub(crate) not_comparable: u64,
    /// How many of its changes the cache had not seen.
    pub(crate) behind: u64,
    /// How old the oldest of these was.
    pub(crate) behind_for: Duration,
    /// What differed, the first time. It stays.
    pub(crate) difference: Option<String>,
}

/// Compares the caches with the server.
pub(crate) struct Check {
    server: ApiServer,
    kinds: Vec<Checked>,
    rounds: usize,
    /// When the server was at which revision.
    moments: VecDeque<(Instant, u64)>,
}

/// All kinds together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict {
    /// Each kind, in the order of the informers.
    pub(crate) kinds: Vec<Checked>,
    /// How often anything was compared.
    pub(crate) compared: u64,
    /// How often bytes were, too.
    pub(crate) compared_bytes: u64,
    /// How often something could not be.
    pub(crate) not_comparable: u64,
}

impl Check {
    /// Nothing has been compared yet.
    pub(crate) fn new(server: ApiServer, kinds: usize) -> Self {
        Self { server, kinds: vec![Checked::default(); kinds], rounds: 0, moments: VecDeque::new() }
    }

    /// Compares all kinds, and gives what is known since the beginning.
    pub(crate) fn round(&mut self, observed: &[Observed]) -> Verdict {
        self.note_moment();
        // In each round the bytes of one kind.
        let for_bytes = self.rounds % observed.len().max(1);
        for (at, kind) in observed.iter().enumerate() {
            if kind.informer.has_synced() {
                self.compare(at, kind, at == for_bytes);
            }
        }
        self.rounds += 1;
        self.verdict()
    }

    fn verdict(&self) -> Verdict {
        let sum = |count: fn(&Checked) -> u64| self.kinds.iter().map(count).sum();
        Verdict {
            kinds: self.kinds.clone(),
            compared: sum(|kind| kind.compared),
            compared_bytes: sum(|kind| kind.compared_bytes),
            not_comparable: sum(|kind| kind.not_comparable),
        }
    }

    fn compare(&mut self, at: usize, kind: &Observed, with_bytes: bool) {
        // Objects and version of one moment.
        let snapshot = kind.informer.store().snapshot();
        let Ok(version) = snapshot.version().as_str().parse::<u64>() else { return };
        let (behind, behind_for) = self.behind(&kind.name, version);
        let outcome = difference(&self.server, &kind.name, version, &snapshot, with_bytes);
        let Some(checked) = self.kinds.get_mut(at) else { return };
        (checked.behind, checked.behind_for) = (behind, behind_for);
        match outcome {
            Err(NoTruth::Forgotten(_)) => {
                checked.not_comparable += 1;
                return;
            }
            Err(error) => _ = checked.difference.get_or_insert_with(|| error.to_string()),
            Ok(Some(difference)) => _ = checked.difference.get_or_insert(difference),
            Ok(None) => checked.equal_at = Some(version),
        }
        checked.compared += 1;
        checked.compared_bytes += u64::from(with_bytes);
    }

    /// How many changes of a kind there are after a version, and how old the first of them is.
    fn behind(&self, name: &str, version: u64) -> (u64, Duration) {
        let unseen = self.server.storage().journal_since(version);
        let mut unseen = unseen.iter().filter(|entry| entry.kind.resource() == name);
        let Some(first) = unseen.next() else { return (0, Duration::ZERO) };
        let reached = self.moments.iter().find(|(_, revision)| *revision >= first.revision);
        let age = reached.map_or(Duration::ZERO, |(then, _)| then.elapsed());
        (1 + unseen.count() as u64, age)
    }

    fn note_moment(&mut self) {
        if self.moments.len() >= MOMENTS {
            self.moments.pop_front();
        }
        self.moments.push_back((Instant::now(), self.server.storage().revision()));
    }
}

impl Verdict {
    /// What differed, of each kind of which something did.
    pub(crate) fn differences(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().filter_map(|kind| kind.difference.as_deref())
    }

    /// Whether something ever differed.
    pub(crate) fn has_differed(&self) -> bool {
        self.differences().next().is_some()
    }

    /// The version up to which every kind is known to have been equal; none while one has not been compared.
    pub(crate) fn equal_at(&self) -> Option<u64> {
        self.kinds.iter().map(|kind| kind.equal_at).min().flatten()
    }
}

/// What differs between a store and the server at the store's version.
fn difference(
    server: &ApiServer,
    name: &str,
    version: u64,
    snapshot: &Snapshot<Object>,
    with_bytes: bool,
) -> Result<Option<String>, NoTruth> {
    let truth = server.truth().at(name, version)?;
    if truth.revision() < version {
        return Ok(Some(format!("{name} at revision {version}: the server is at {} only", truth.revision())));
    }
    let pairs = snapshot.iter().map(|(key, object)| (key, object.resource_version()));
    if let Err(differences) = truth.compare(pairs) {
        return Ok(Some(differences.to_string()));
    }
    if with_bytes {
        let all =
            snapshot.iter().map(|(key, object)| (key, object.resource_version(), object.json().unwrap_or_default()));
        return Ok(truth.compare_bytes(all).err().map(|differences| differences.to_string()));
    }
    Ok(None)
}

/// Compares for ever, with rests that are long beside the work, and tells each time.
pub(crate) async fn keep_checking(mut check: Check, observed: Arc<[Observed]>, tell: impl Fn(Verdict)) {
    /// How often at most.
    const EVERY: Duration = Duration::from_millis(400);
    /// How much longer one rests than it took.
    const SHARE: u32 = 24;
    loop {
        let kinds = observed.clone();
        let begun = Instant::now();
        // A thread of its own: a large cluster takes a while.
        let compared = tokio::task::spawn_blocking(move || {
            let verdict = check.round(&kinds);
            (check, verdict)
        });
        // It does not panic; if it did, there would be nothing more to tell.
        let Ok((next, verdict)) = compared.await else { return };
        check = next;
        tell(verdict);
        tokio::time::sleep(EVERY.max(begun.elapsed() * SHARE)).await;
    }
}
