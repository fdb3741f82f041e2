//! What is true? The server's own state, now or at a revision, to compare a cache with.
//!
//! ```
//! use serde_json::json;
//! use watchkeeper_apiserver::ApiServer;
//!
//! let server = ApiServer::new();
//! server.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}))?;
//! let then = server.storage().revision();
//! server.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}))?;
//!
//! let nodes = server.truth().now("nodes")?;
//! assert!(nodes.compare([("a", 6), ("b", 7)]).is_ok());
//! let wrong = nodes.compare([("a", 2), ("c", 7)]).unwrap_err();
//! assert_eq!(wrong.to_string(), "nodes at revision 7: missing b (7); extra c (7); stale a (2, is 6)");
//! assert!(server.truth().at("nodes", then)?.compare([("a", 6)]).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::kinds::Kind;
use crate::server::Inner;
use crate::storage::Stored;

/// How many of each a [`Differences`] shows.
const SHOWN: usize = 10;

/// Gives the server's state. [`ApiServer::truth`](crate::ApiServer::truth) makes it.
pub struct Truth<'a> {
    server: &'a Inner,
}

/// Why there is no such state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTruth {
    /// No kind has this plural.
    #[error("there is no kind {0}")]
    UnknownKind(String),
    /// The journal no longer reaches back to this revision.
    #[error("the journal does not reach back to revision {0}")]
    Forgotten(u64),
}

/// All objects of one kind at one revision.
#[derive(Debug, Clone)]
pub struct State {
    kind: Arc<Kind>,
    revision: u64,
    objects: BTreeMap<Arc<str>, Arc<Stored>>,
}

/// How a cache differs from the truth. Shows keys and versions, never a part of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct Differences {
    kind: Box<str>,
    revision: u64,
    /// Keys and versions of what the cache lacks.
    pub missing: Vec<(String, String)>,
    /// Keys and versions of what only the cache has, or has twice.
    pub extra: Vec<(String, String)>,
    /// Keys of what the cache has in another version, that version, and the true one.
    pub stale: Vec<(String, String, String)>,
    /// Keys of what the cache has in the true version, but with other bytes.
    pub altered: Vec<String>,
}

impl<'a> Truth<'a> {
    pub(crate) fn new(server: &'a Inner) -> Self {
        Self { server }
    }

    /// The objects of a kind, a plural (`pods`) or a plural with its group (`deployments.apps`), as they are.
    pub fn now(&self, kind: &str) -> Result<State, NoTruth> {
        Ok(self.of_kind(&self.kind(kind)?))
    }

    /// The objects of a kind as they were at a revision, as far as the journal reaches back.
    pub fn at(&self, kind: &str, revision: u64) -> Result<State, NoTruth> {
        self.of_kind_at(&self.kind(kind)?, revision)
    }

    pub(crate) fn of_kind(&self, kind: &Arc<Kind>) -> State {
        // The present is never too old.
        let (revision, objects) = match self.server.storage.list(kind, "", "", None) {
            Ok(snapshot) => (snapshot.revision, snapshot.objects),
            Err(_) => Default::default(),
        };
        State { kind: kind.clone(), revision, objects: by_key(objects) }
    }

    pub(crate) fn of_kind_at(&self, kind: &Arc<Kind>, revision: u64) -> Result<State, NoTruth> {
        let now = self.of_kind(kind);
        if revision >= now.revision {
            return Ok(now);
        }
        let journal = self.server.storage.journal_since(0);
        // The first write of a server has revision 2: whoever begins there has seen all of them.
        let is_complete = journal.first().is_some_and(|first| first.revision <= 2);
        if !is_complete && journal.first().is_none_or(|first| first.revision > revision + 1) {
            return Err(NoTruth::Forgotten(revision));
        }
        // What nobody has written since the journal began is as it was.
        let mut objects = now.objects;
        let of_kind = || journal.iter().filter(|entry| entry.kind.id == kind.id);
        // The last word on each key until then.
        let earlier: BTreeMap<&Arc<str>, &Option<Arc<Stored>>> =
            of_kind().take_while(|entry| entry.revision <= revision).map(|entry| (&entry.key, &entry.state)).collect();
        for entry in of_kind().filter(|entry| entry.revision > revision) {
            match earlier.get(&entry.key) {
                Some(Some(state)) => drop(objects.insert(entry.key.clone(), state.clone())),
                None if !is_complete => return Err(NoTruth::Forgotten(revision)),
                _ => drop(objects.remove(&entry.key)),
            }
        }
        Ok(State { kind: kind.clone(), revision, objects })
    }

    fn kind(&self, name: &str) -> Result<Arc<Kind>, NoTruth> {
        let kinds = self.server.registry.all();
        let exact = kinds.iter().find(|kind| kind.resource() == name);
        let found = exact.or_else(|| kinds.iter().find(|kind| kind.plural == name));
        found.cloned().ok_or_else(|| NoTruth::UnknownKind(name.to_owned()))
    }
}

impl State {
    /// The revision that it shows.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The object of a key, `namespace/name` or `name`.
    pub fn get(&self, key: &str) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    /// All objects, by their keys.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.objects.values()
    }

    /// Compares keys and versions of a cache with it.
    pub fn compare<K: Display, V: Display>(
        &self,
        observed: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), Differences> {
        let observed = observed.into_iter().map(|(key, version)| (key.to_string(), version.to_string(), None));
        self.compare_all(observed)
    }

    /// Compares keys, versions and JSON of a cache with it. The JSON must be the server's own, byte by byte, in the
    /// version that the kind is stored in.
    pub fn compare_bytes<K: Display, V: Display, B: AsRef<[u8]>>(
        &self,
        observed: impl IntoIterator<Item = (K, V, B)>,
    ) -> Result<(), Differences> {
        let observed = observed.into_iter();
        self.compare_all(observed.map(|(key, version, json)| {
            let is_same = self.get(&key.to_string()).map(|object| object.json() == json.as_ref());
            (key.to_string(), version.to_string(), is_same)
        }))
    }

    /// One number for all keys and versions: equal states have equal ones. See [`digest`].
    pub fn digest(&self) -> u64 {
        digest(self.objects().map(|object| (object.key(), object.revision())))
    }

    fn compare_all(&self, observed: impl Iterator<Item = (String, String, Option<bool>)>) -> Result<(), Differences> {
        let mut differences = Differences {
            kind: self.kind.resource().into(),
            revision: self.revision,
            missing: Vec::new(),
            extra: Vec::new(),
            stale: Vec::new(),
            altered: Vec::new(),
        };
        let mut unseen = self.objects.clone();
        for (key, version, is_same) in observed {
            match unseen.remove(key.as_str()).map(|object| object.revision().to_string()) {
                None => differences.extra.push((key, version)),
                Some(truth) if truth != version => differences.stale.push((key, version, truth)),
                Some(_) if is_same == Some(false) => differences.altered.push(key),
                Some(_) => {}
            }
        }
        let missing = unseen.values().map(|object| (object.key().to_owned(), object.revision().to_string()));
        differences.missing = missing.collect();
        if differences.len() == 0 { Ok(()) } else { Err(differences) }
    }
}

impl Differences {
    /// How many objects differ.
    #[allow(clippy::len_without_is_empty, reason = "there are none without a difference")]
    pub fn len(&self) -> usize {
        self.missing.len() + self.extra.len() + self.stale.len() + self.altered.len()
    }
}

impl Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at revision {}", self.kind, self.revision)?;
        let pair = |(key, version): &(String, String)| format!("{key} ({version})");
        let groups = [
            ("missing", self.missing.iter().map(pair).collect::<Vec<_>>()),
            ("extra", self.extra.iter().map(pair).collect()),
            (
                "stale",
                self.stale.iter().map(|(key, version, truth)| format!("{key} ({version}, is {truth})")).collect(),
            ),
            ("altered", self.altered.clone()),
        ];
        let mut separator = ": ";
        for (name, entries) in groups.into_iter().filter(|(_, entries)| !entries.is_empty()) {
            let shown = &entries[..entries.len().min(SHOWN)];
            write!(f, "{separator}{name} {}", shown.join(", "))?;
            if entries.len() > SHOWN {
                write!(f, " and {} more", entries.len() - SHOWN)?;
            }
            separator = "; ";
        }
        Ok(())
    }
}

/// One number for the keys and versions of a cache, in whatever order they come.
///
/// ```
/// use watchkeeper_apiserver::{ApiServer, digest};
///
/// let truth = ApiServer::new().truth().now("namespaces").unwrap();
/// let cache = truth.objects().map(|object| (object.key(), object.revision()));
/// assert_eq!(digest(cache), truth.digest());
/// assert_ne!(digest([("default", "1")]), truth.digest());
/// ```
pub fn digest<K: Display, V: Display>(observed: impl IntoIterator<Item = (K, V)>) -> u64 {
    let hashes = observed.into_iter().map(|(key, version)| {
        let mut hasher = DefaultHasher::new();
        (key.to_string(), version.to_string()).hash(&mut hasher);
        hasher.finish()
    });
    hashes.fold(0, u64::wrapping_add)
}

fn by_key(objects: Vec<Arc<Stored>>) -> BTreeMap<Arc<str>, Arc<Stored>> {
    objects.into_iter().map(|object| (object.key().into(), object)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{ApiServer, NoTruth};

    fn config_map(server: &ApiServer, name: &str, value: u32) {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value.to_string()},
            "metadata": {"name": name, "namespace": "default"},
        });
        server.put(object).unwrap();
    }

    #[test]
    fn the_journal_tells_every_state_of_the_past() {
        let server = ApiServer::new();
        let kind = server.kind("", "configmaps").unwrap();
        let mut states = Vec::new();
        for i in 0..40 {
            config_map(&server, &format!("m{}", i % 7), i);
            if i % 5 == 0 {
                server.remove(&kind, &format!("default/m{}", i % 3));
            }
            let now = server.truth().now("configmaps").unwrap();
            states.push((now.revision(), now.digest()));
        }
        for (revision, digest) in states {
            assert_eq!(server.truth().at("configmaps", revision).unwrap().digest(), digest, "at {revision}");
        }
    }

    #[test]
    fn what_the_journal_has_forgotten_is_not_guessed() {
        let server = ApiServer::builder().journal(3).build();
        for i in 0..9 {
            config_map(&server, "a", i);
        }
        assert_eq!(server.truth().at("configmaps", 7).unwrap_err(), NoTruth::Forgotten(7));
        assert!(server.truth().at("configmaps", server.storage().revision() - 1).is_ok());
        assert_eq!(server.truth().now("unicorns").unwrap_err(), NoTruth::UnknownKind("unicorns".to_owned()));
    }

    #[test]
    fn other_bytes_in_the_same_version_are_noticed_too() {
        let server = ApiServer::new();
        config_map(&server, "a", 1);
        let truth = server.truth().now("configmaps").unwrap();
        let object = truth.get("default/a").unwrap();
        let same = [("default/a", object.revision(), object.json().clone())];
        assert!(truth.compare_bytes(same).is_ok());
        let other = truth.compare_bytes([("default/a", object.revision(), b"{}")]).unwrap_err();
        assert_eq!(other.altered, ["default/a"]);
    }
}
