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

/// A cache that does not move for so long, while its kind does, never will: whatever goes wrong here heals within seconds.
const STUCK: Duration = Duration::from_secs(60);
/// No more of a pause between two rounds counts for that: the whole program may have stood still.
const LONGEST_STEP: Duration = Duration::from_secs(2);

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
    /// The version that it was last seen at, and for how long it has been there while there were newer ones.
    pub(crate) stuck: (u64, Duration),
    /// What differed, the first time. It stays.
    pub(crate) difference: Option<String>,
}

/// Compares the caches with the server.
pub(crate) struct Check {
    server: ApiServer,
    kinds: Vec<Checked>,
    rounds: usize,
    last_round: Option<Instant>,
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
        Self { server, kinds: vec![Checked::default(); kinds], rounds: 0, last_round: None, moments: VecDeque::new() }
    }

    /// Compares all kinds, and gives what is known since the beginning.
    pub(crate) fn round(&mut self, observed: &[Observed]) -> Verdict {
        let now = Instant::now();
        let passed = self.last_round.replace(now).map_or(Duration::ZERO, |last| now.duration_since(last));
        // In each round the bytes of one kind.
        let for_bytes = self.rounds % observed.len().max(1);
        self.compare_all(observed, passed, |at| at == for_bytes);
        self.rounds += 1;
        self.verdict()
    }

    /// Compares the bytes of all kinds.
    pub(crate) fn last_round(&mut self, observed: &[Observed]) -> Verdict {
        self.compare_all(observed, Duration::ZERO, |_| true);
        self.verdict()
    }

    fn compare_all(&mut self, observed: &[Observed], passed: Duration, with_bytes: impl Fn(usize) -> bool) {
        self.note_moment();
        for (at, kind) in observed.iter().enumerate() {
            if kind.informer.has_synced() {
                self.compare(at, kind, passed, with_bytes(at));
            }
        }
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

    fn compare(&mut self, at: usize, kind: &Observed, passed: Duration, with_bytes: bool) {
        // Objects and version of one moment.
        let snapshot = kind.informer.store().snapshot();
        let Ok(version) = snapshot.version().as_str().parse::<u64>() else { return };
        let (behind, behind_for) = self.behind(&kind.name, version);
        let outcome = difference(&self.server, &kind.name, version, &snapshot, with_bytes);
        let Some(checked) = self.kinds.get_mut(at) else { return };
        (checked.behind, checked.behind_for) = (behind, behind_for);
        checked.note_version(&kind.name, version, passed);
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

impl Checked {
    /// One that stays where it is while there is more to see is no copy, however equal it is to what was.
    fn note_version(&mut self, name: &str, version: u64, passed: Duration) {
        let (before, stuck_for) = self.stuck;
        let is_stuck = self.behind > 0 && version == before;
        let stuck_for = if is_stuck { stuck_for + passed.min(LONGEST_STEP) } else { Duration::ZERO };
        self.stuck = (version, stuck_for);
        if stuck_for >= STUCK {
            let text = format!("{name} stands still at revision {version}, {} changes behind", self.behind);
            self.difference.get_or_insert(text);
        }
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

#[cfg(test)]
mod tests {
    use kube_client::core::ApiResource;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;
    use watchkeeper::{Backoff, InformerFactory, InformerOptions, ObjectKey};

    use super::*;

    /// A server with two ConfigMaps, and a cache of it.
    async fn watched() -> (ApiServer, [Observed; 1], InformerFactory) {
        let server = ApiServer::new();
        for name in ["a", "b"] {
            let object =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name}});
            server.create(object).expect("an object");
        }
        let factory = InformerFactory::new(server.client());
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        let observed =
            Observed::new(&factory, &resource, InformerOptions::new(), false, &Backoff::default(), &Arc::default());
        factory.start(CancellationToken::new()).expect("a start");
        factory.wait_synced().await.into_result().expect("a list");
        (server, [observed.expect("an informer")], factory)
    }

    /// What is said of a cache to whose store this was done.
    async fn said_of(change: impl Fn(&watchkeeper::Indexer<Object>)) -> String {
        let (server, observed, _factory) = watched().await;
        let mut check = Check::new(server, 1);
        assert!(!check.last_round(&observed).has_differed());
        change(observed[0].informer.store());
        check.round(&observed).differences().collect()
    }

    fn object(name: &str, version: &str, value: &str) -> Object {
        let metadata = json!({"namespace": "default", "name": name, "resourceVersion": version});
        Object::from_json(json!({"metadata": metadata, "data": {"key": value}}).to_string()).expect("an object")
    }

    #[tokio::test(start_paused = true)]
    async fn every_way_to_be_wrong_is_found_out() {
        let key = ObjectKey::namespaced("default", "a");
        let missing = said_of(|store| store.delete_by_key(&key)).await;
        assert!(missing.ends_with(": missing default/a (6)"), "{missing}");
        let extra = said_of(|store| store.add(object("c", "7", "")).expect("a key")).await;
        assert!(extra.ends_with(": extra default/c (7)"), "{extra}");
        let stale = said_of(|store| {
            store.add(object("b", "6", "")).expect("a key");
            store.bookmark(&"7".into());
        })
        .await;
        assert!(stale.ends_with(": stale default/b (6, is 7)"), "{stale}");
        let altered = said_of(|store| store.add(object("b", "7", "other")).expect("a key")).await;
        assert!(altered.ends_with(": altered default/b"), "{altered}");
    }

    #[test]
    fn a_cache_that_stands_still_is_wrong_and_a_pause_of_all_is_not() {
        let second = Duration::from_secs(1);
        let mut checked = Checked { behind: 3, ..Checked::default() };
        // Somebody stopped the program for a day, and again.
        for _ in 0..20 {
            checked.note_version("pods", 7, Duration::from_secs(86_400));
        }
        assert_eq!(checked.difference, None);
        // It moves, or there is nothing to see.
        for version in 8..1_000 {
            checked.note_version("pods", version, second);
        }
        checked.behind = 0;
        (0..1_000).for_each(|_| checked.note_version("pods", 1_000, second));
        assert_eq!(checked.difference, None);
        checked.behind = 3;
        (0..61).for_each(|_| checked.note_version("pods", 1_000, second));
        assert_eq!(checked.difference.as_deref(), Some("pods stands still at revision 1000, 3 changes behind"));
    }
}
