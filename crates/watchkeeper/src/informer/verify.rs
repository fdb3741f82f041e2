//! Is the copy right?
//!
//! A watch that leaves something out looks like one that does not. So the copy can be compared with the server: by a digest
//! of each object (uid, version, hash of the body), with a list that is read page by page. Objects that are the same travel
//! as the handle that the store has already; of the others only the digest is kept.
//!
//! The server moves on while it is being compared with. So first the state is asked for that the store is at, unless that may
//! be an old one. If it is the same, all is well. If not, or if the server does not have that state any more, what differs is
//! a suspect, and there is a second look, with a newer list. A suspect is guilty if the cache still has the same wrong state of it, though it had the
//! time to come to what the list shows: then that state can be neither too new nor late.

use std::time::Duration;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet};
use std::hash::BuildHasher as _;
use tokio::time::{Instant, sleep};

use super::SharedInformer;
use super::core::{Core, Partition};
use super::verification::{Difference, Found, Verification};
use crate::defaults::{STALE_FLOOR, VERIFY_ATTEMPTS, VERIFY_DIFFERENCES, VERIFY_PAUSE, VERIFY_POLL, VERIFY_WAIT};
use crate::{
    Error, ErrorKind, ListOptions, ListPart, Object, ObjectKey, Pager, Phase, ResourceVersion, Snapshot, StatusReader,
    VersionMatch,
};

impl<K> SharedInformer<K> {
    /// Compares the cache with the server, object by object, and says what differs. Nothing is changed by that:
    /// [`relist`](Self::relist) puts it right.
    ///
    /// An informer need not be asked to do this: it is for those who doubt a proxy, a server or this library, and for tests.
    /// It costs the server a list, and a second one if there are differences. For each it waits then, up to a minute and a
    /// half, for changes that may be on their way. Changes that come meanwhile are no differences. While the first list is
    /// read, the states that the cache had at its beginning are held in memory.
    ///
    /// ```
    /// # use watchkeeper::SharedInformer;
    /// # async fn example(pods: SharedInformer<k8s_openapi::api::core::v1::Pod>) -> Result<(), watchkeeper::Error> {
    /// let verification = pods.verify_against_server().await?;
    /// if !verification.is_same() {
    ///     eprintln!("{verification}");
    ///     pods.relist();
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn verify_against_server(&self) -> Result<Verification, Error> {
        let core = self.core();
        tokio::select! {
            biased;
            () = core.stopped.raised() => Err(core.is_over("its cache is not kept up to date")),
            verified = core.verify() => verified,
        }
    }

    /// Lists everything again soon, with a consistent read: see [`Relister::relist`](crate::Relister::relist). Handlers hear
    /// of what that changes. With several namespaces each is listed again.
    pub fn relist(&self) {
        for partition in &self.core().partitions {
            partition.relister.relist();
        }
    }
}

impl Core {
    async fn verify(&self) -> Result<Verification, Error> {
        if !self.processor.synced.is_raised() {
            let name = &self.name;
            return Err(Error::new(
                ErrorKind::NotSynced,
                format_args!("the informer of {name} has nothing to compare yet: wait for synced() first"),
            ));
        }
        let mut verification = Verification::default();
        for at in 0..self.partitions.len() {
            let Look { list, suspects, .. } = Verifier { core: self, at }.verify().await?;
            verification.objects += list.objects;
            verification.versions.push((self.partitions[at].namespace.clone(), list.version));
            verification.difference_count += suspects.len() as u64;
            let mut suspects: Vec<(ObjectKey, Suspect)> = suspects.into_iter().collect();
            suspects.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            let room = VERIFY_DIFFERENCES - verification.differences.len();
            let differences = suspects.into_iter().take(room).filter_map(|(key, suspect)| suspect.difference(key));
            verification.differences.extend(differences);
        }
        Ok(verification)
    }
}

/// Compares one partition.
struct Verifier<'a> {
    core: &'a Core,
    at: usize,
}

/// A list, without its objects.
struct Listed {
    version: ResourceVersion,
    /// How many objects there were.
    objects: u64,
    /// Their keys, as hashes.
    keys: HashSet<u64>,
    /// Those that the store did not have like this when they came.
    others: HashMap<ObjectKey, (Digest, Option<&'static str>)>,
    hasher: DefaultHashBuilder,
}

/// What a list was compared with, and what came of it.
struct Look {
    list: Listed,
    /// The list shows the state of the version that the store was said to be at.
    exact: bool,
    suspects: HashMap<ObjectKey, Suspect>,
}

/// An object that is not in the cache as the server has it.
struct Suspect {
    cached: Option<Digest>,
    server: Option<Digest>,
    unusable: Option<&'static str>,
}

/// Tells states of an object apart. One that could not be used has no hash.
#[derive(Clone, PartialEq)]
struct Digest {
    uid: Option<Box<str>>,
    version: ResourceVersion,
    hash: Option<u64>,
}

impl Verifier<'_> {
    async fn verify(&self) -> Result<Look, Error> {
        let first = match self.exact_look().await? {
            Some(look) => look,
            None => self.newest_look().await?,
        };
        if first.suspects.is_empty() {
            return Ok(first);
        }
        sleep(VERIFY_PAUSE).await;
        self.second_look(&first).await
    }

    /// Compares with the state that the store is at. None if the server cannot show that, or it would not say enough.
    async fn exact_look(&self) -> Result<Option<Look>, Error> {
        let partition = self.partition();
        if !partition.ordered || !is_beyond_doubt(&partition.status) {
            return Ok(None);
        }
        let mut before = ResourceVersion::unset();
        for _ in 0..VERIFY_ATTEMPTS {
            let (objects, version) = self.snapshot();
            if !version.is_exact() || version == before {
                return Ok(None);
            }
            let exactly = ListOptions {
                resource_version: version.clone(),
                resource_version_match: Some(VersionMatch::Exact),
                ..ListOptions::default()
            };
            match self.list(self.pager()?, exactly).await {
                Ok(list) if list.version == version => {
                    let suspects = self.compare(&list, &objects);
                    return Ok(Some(Look { list, exact: true, suspects }));
                }
                // A server that passes over what it does not know: this is another state.
                Ok(list) => return Ok(Some(self.later_look(list).await)),
                Err(error) if error.is_expired() => before = version,
                Err(error) if cannot_be_exact(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Compares with the newest state.
    async fn newest_look(&self) -> Result<Look, Error> {
        Ok(self.later_look(self.newest_list().await?).await)
    }

    /// Compares with a list, once the store has had the time to come to it.
    async fn later_look(&self, list: Listed) -> Look {
        let mut suspects = self.compare(&list, &self.snapshot().0);
        let mut wait = Wait::new();
        while !suspects.is_empty() && !self.has_come_to(&list.version) && wait.a_little().await {
            suspects = self.compare(&list, &self.snapshot().0);
        }
        if !suspects.is_empty() {
            suspects = self.compare(&list, &self.snapshot().0);
        }
        Look { list, exact: false, suspects }
    }

    /// Of the suspects of a first look, those that are guilty.
    async fn second_look(&self, first: &Look) -> Result<Look, Error> {
        let list = self.newest_list().await?;
        let mut suspects = self.compare(&list, &self.snapshot().0);
        suspects.retain(|key, now| first.suspects.get(key).is_some_and(|before| before.is_still(now)));
        // What the server has not changed between the lists, the cache cannot have newer or later.
        let is_settled = |key: &ObjectKey, now: &Suspect| {
            first.suspects.get(key).is_some_and(|before| match (&before.server, &now.server, &now.cached) {
                (Some(before), Some(now), _) => before == now,
                (None, None, Some(cached)) => first.exact && is_at_most(&cached.version, &first.list.version),
                _ => false,
            })
        };
        let mut wait = Wait::new();
        while suspects.iter().any(|(key, now)| !is_settled(key, now)) {
            let has_come = self.has_come_to(&list.version);
            let later = self.compare(&list, &self.snapshot().0);
            suspects.retain(|key, now| later.get(key).is_some_and(|later| now.is_still(later)));
            if has_come || !wait.a_little().await {
                break;
            }
        }
        Ok(Look { list, exact: false, suspects })
    }

    /// The newest state that the server has, as far as it can be had in pages; else all at once.
    async fn newest_list(&self) -> Result<Listed, Error> {
        for _ in 1..VERIFY_ATTEMPTS {
            match self.list(self.pager()?, ListOptions::default()).await {
                Err(error) if error.is_expired() => {}
                list => return list,
            }
        }
        self.list(self.pager()?.page_size(0), ListOptions::default()).await
    }

    async fn list(&self, pager: Pager, options: ListOptions) -> Result<Listed, Error> {
        let store = &self.core.processor.store;
        let mut version = None;
        let mut list = Listed {
            version: ResourceVersion::unset(),
            objects: 0,
            keys: HashSet::new(),
            others: HashMap::new(),
            hasher: DefaultHashBuilder::default(),
        };
        let mut unreadable = 0;
        let each = |part| match part {
            // What is not of the namespace that was asked for, the informer has ignored too.
            ListPart::Item(object) if !self.core.processor.is_of(self.at, object.key()) => {}
            ListPart::Item(object) => {
                list.objects += 1;
                list.keys.insert(list.hasher.hash_one(object.key()));
                let stored = store.get_by_key(object.key());
                if stored.is_some_and(|stored| stored.is_same_state(&object)) {
                    list.others.remove(object.key());
                } else {
                    list.others.insert(object.key().clone(), (Digest::of(&object), None));
                }
            }
            ListPart::Bad(object) => match object.key {
                Some(key) => {
                    list.objects += 1;
                    list.keys.insert(list.hasher.hash_one(&key));
                    let digest = Digest { uid: None, version: object.resource_version, hash: None };
                    list.others.insert(key, (digest, Some(object.problem)));
                }
                None => unreadable += 1,
            },
            ListPart::Metadata(metadata) => drop(version.get_or_insert(metadata.resource_version)),
            ListPart::Progress => {}
        };
        pager.each_part(options, each).await?;
        if unreadable > 0 {
            let description = &self.partition().description;
            return Err(Error::new(
                ErrorKind::Malformed,
                format_args!(
                    "{unreadable} objects of a list of {description} have no readable key: nothing can be compared"
                ),
            ));
        }
        list.version = version.unwrap_or_default();
        Ok(list)
    }

    /// What differs between a list and the objects of a moment.
    fn compare(&self, list: &Listed, objects: &Snapshot<Object>) -> HashMap<ObjectKey, Suspect> {
        let stale = self.partition().status.get().stale_objects;
        let unusable = |key: &ObjectKey| stale.get(key).copied();
        let mut suspects = HashMap::new();
        let mut there = HashSet::new();
        for (key, object) in objects.iter().filter(|(key, _)| self.core.processor.is_of(self.at, key)) {
            match list.others.get(key) {
                Some((server, problem)) => {
                    there.insert(key);
                    let cached = Digest::of(object);
                    if !cached.is_same(server) {
                        let (server, unusable) = (Some(server.clone()), problem.or_else(|| unusable(key)));
                        suspects.insert(key.clone(), Suspect { cached: Some(cached), server, unusable });
                    }
                }
                None if list.keys.contains(&list.hasher.hash_one(key)) => {}
                None => {
                    let cached = Some(Digest::of(object));
                    suspects.insert(key.clone(), Suspect { cached, server: None, unusable: unusable(key) });
                }
            }
        }
        for (key, (server, problem)) in list.others.iter().filter(|(key, _)| !there.contains(key)) {
            let (server, unusable) = (Some(server.clone()), problem.or_else(|| unusable(key)));
            suspects.insert(key.clone(), Suspect { cached: None, server, unusable });
        }
        suspects
    }

    /// The objects of the store and the version that this partition is at, between two batches.
    fn snapshot(&self) -> (Snapshot<Object>, ResourceVersion) {
        let processor = &self.core.processor;
        processor.at_rest(|| {
            let objects = processor.store.snapshot();
            let version = match (&processor.versions, &self.partition().namespace) {
                (Some(versions), Some(namespace)) => versions.version(namespace).unwrap_or_default(),
                _ => objects.version().clone(),
            };
            (objects, version)
        })
    }

    /// The store shows everything up to a version.
    fn has_come_to(&self, version: &ResourceVersion) -> bool {
        let partition = self.partition();
        if partition.ordered {
            return is_at_most(version, &self.snapshot().1);
        }
        // Here the store's own version says nothing. With nothing waiting or in hand, all of it has been applied.
        is_at_most(version, &partition.status.get().resource_version) && (partition.queue)() == 0
    }

    fn pager(&self) -> Result<Pager, Error> {
        let source = self.partition().source().ok_or_else(|| self.core.is_over("nothing can be compared"))?;
        Ok(Pager::over(source))
    }

    fn partition(&self) -> &Partition {
        &self.core.partitions[self.at]
    }
}

impl Suspect {
    /// The cache has the same state as before, and the server the same object.
    fn is_still(&self, later: &Self) -> bool {
        let uid = |digest: &Option<Digest>| digest.as_ref().and_then(|digest| digest.uid.clone());
        self.cached == later.cached && (self.cached.is_some() || uid(&self.server) == uid(&later.server))
    }

    fn difference(self, key: ObjectKey) -> Option<Difference> {
        let found = match (self.cached, self.server) {
            (None, Some(server)) => Found::Missing { server: server.version },
            (Some(cached), None) => Found::Extra { cached: cached.version },
            (Some(cached), Some(server)) => Found::Different { cached: cached.version, server: server.version },
            (None, None) => return None,
        };
        Some(Difference { key, found, unusable: self.unusable })
    }
}

impl Digest {
    fn of(object: &Object) -> Self {
        let uid = object.uid().map(Box::from);
        Self { uid, version: object.resource_version(), hash: Some(object.body_hash()) }
    }

    /// Of what could not be used the version is all that there is.
    fn is_same(&self, server: &Self) -> bool {
        if server.hash.is_some() { self == server } else { self.version == server.version }
    }
}

/// Pauses that grow, up to a time in all.
struct Wait {
    end: Instant,
    pause: Duration,
}

impl Wait {
    fn new() -> Self {
        Self { end: Instant::now() + VERIFY_WAIT, pause: VERIFY_POLL }
    }

    /// False when the time is over.
    async fn a_little(&mut self) -> bool {
        if Instant::now() >= self.end {
            return false;
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(VERIFY_PAUSE);
        true
    }
}

/// Nothing speaks against it that the version is the one of the newest state. One that went back may be of a state that was
/// once, so may one of a silent watch, however often that is opened; and what could not be used has moved no version.
fn is_beyond_doubt(reader: &StatusReader) -> bool {
    let status = reader.get();
    status.phase == Phase::Watching
        && status.versions_backwards == 0
        && status.stale_object_count == 0
        && reader.version_told().is_some_and(|told| told.elapsed() < STALE_FLOOR)
}

/// A server that was not reached, or that refuses any list, is no reason to try another one.
fn cannot_be_exact(error: &Error) -> bool {
    let refused = error.is_unauthorized() || error.is_forbidden() || error.is_not_found();
    error.kind() == ErrorKind::Api && !refused && !error.is_too_many_requests()
}

fn is_at_most(version: &ResourceVersion, other: &ResourceVersion) -> bool {
    version == other || version.compare(other).is_some_and(std::cmp::Ordering::is_le)
}
