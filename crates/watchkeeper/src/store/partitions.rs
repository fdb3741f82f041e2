//! How far each part of a store has come.
//!
//! An informer over several namespaces lists and watches each of them on its own, a partition each, and keeps all their
//! objects in one store. So each partition has a version of its own, and those who wait for one wait for that of their
//! namespace. The store itself is where the partition is that is furthest behind: whoever waits for the store's version
//! has waited for all of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use super::WaitError;
use super::waiting::Waiting;
use crate::ResourceVersion;

/// The versions of the partitions of a store, which have the numbers of their namespaces' places.
pub(crate) struct PartitionVersions {
    numbers: HashMap<Arc<str>, usize>,
    waiting: Box<[Waiting]>,
    versions: Mutex<Versions>,
}

struct Versions {
    each: Box<[ResourceVersion]>,
    lowest: ResourceVersion,
}

impl PartitionVersions {
    /// A partition for each namespace, each of which comes once. None has a version yet.
    pub(crate) fn new(namespaces: impl IntoIterator<Item = Arc<str>>) -> Self {
        let numbers: HashMap<Arc<str>, usize> = namespaces.into_iter().zip(0..).collect();
        let waiting: Box<[Waiting]> = numbers.iter().map(|_| Waiting::default()).collect();
        let each = vec![ResourceVersion::unset(); waiting.len()].into();
        Self { numbers, waiting, versions: Mutex::new(Versions { each, lowest: ResourceVersion::unset() }) }
    }

    /// All changes of a partition up to this version can be read. Those who wait for it are let go. Returns the version
    /// of the partition that is furthest behind, if that is another one now; it is to be made the store's before the next
    /// move.
    pub(crate) fn move_to(&self, partition: usize, version: ResourceVersion) -> Option<ResourceVersion> {
        let waiting = &self.waiting[partition];
        let (news, lowest) = {
            let mut versions = self.versions();
            (waiting.news(&version), versions.move_to(partition, version))
        };
        // With no lock held: they may go on at once.
        news.iter().for_each(|news| waiting.let_go(news));
        lowest
    }

    /// The version of a namespace's partition, which is unset until it has one. None if there is no such partition.
    pub(crate) fn version(&self, namespace: &str) -> Option<ResourceVersion> {
        self.numbers.get(namespace).map(|number| self.versions().each[*number].clone())
    }

    /// Returns as soon as a namespace's partition has come to this version or a later one: see
    /// [`ThreadSafeStore::wait_for`](crate::ThreadSafeStore::wait_for).
    pub(crate) async fn wait_for(&self, namespace: &str, version: &ResourceVersion) -> Result<(), WaitError> {
        let Some(number) = self.numbers.get(namespace).copied() else {
            return Err(WaitError::UnknownNamespace { namespace: namespace.into() });
        };
        self.waiting[number].wait_for(version, || self.versions().each[number].clone()).await
    }

    fn versions(&self) -> MutexGuard<'_, Versions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Versions {
    /// Returns the lowest version, if it is another one now. All are gone through only if the one that was lowest moves.
    fn move_to(&mut self, partition: usize, version: ResourceVersion) -> Option<ResourceVersion> {
        let before = std::mem::replace(&mut self.each[partition], version);
        let now = &self.each[partition];
        let lowest = if how_far(now) < how_far(&self.lowest) {
            now
        } else if before == self.lowest {
            self.each.iter().min_by_key(|version| how_far(version))?
        } else {
            return None;
        };
        if *lowest == self.lowest {
            return None;
        }
        self.lowest = lowest.clone();
        Some(self.lowest.clone())
    }
}

/// The order of versions by how much can be said to have been reached. One that is no number comes before all others,
/// since nobody can wait for more as long as it is there; then none, and any.
fn how_far(version: &ResourceVersion) -> (u8, usize, &str) {
    let comparable = match (version.is_exact(), version.is_decimal()) {
        (true, false) => 0,
        (false, _) => 1,
        (true, true) => 2,
    };
    (comparable, version.as_str().len(), version.as_str())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures::FutureExt as _;

    use super::*;

    fn partitions() -> PartitionVersions {
        PartitionVersions::new(["shop", "bank", "mill"].map(Arc::from))
    }

    fn version(text: &str) -> ResourceVersion {
        ResourceVersion::from(text)
    }

    /// Moves a partition, and tells what is lowest then, if that changed.
    fn lowest(partitions: &PartitionVersions, partition: usize, to: &str) -> Option<String> {
        partitions.move_to(partition, version(to)).map(|lowest| lowest.to_string())
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn there_is_no_lowest_version_until_every_partition_has_one() {
        let partitions = partitions();
        assert_eq!(lowest(&partitions, 0, "30"), None);
        assert_eq!(lowest(&partitions, 2, "9"), None);
        assert_eq!(lowest(&partitions, 2, "0"), None, "any version is none yet");
        assert_eq!(lowest(&partitions, 1, "100"), some("0"), "it has listed, and nobody can say what");
        assert_eq!(lowest(&partitions, 2, "9"), some("9"));
    }

    #[test]
    fn the_lowest_version_moves_with_the_partition_that_is_furthest_behind() {
        let partitions = partitions();
        for (partition, to) in [(0, "30"), (1, "100"), (2, "9")] {
            partitions.move_to(partition, version(to));
        }
        assert_eq!(lowest(&partitions, 1, "101"), None, "another one is behind");
        assert_eq!(lowest(&partitions, 2, "200"), some("30"));
        assert_eq!(lowest(&partitions, 0, "30"), None, "it is where it was");
        assert_eq!(lowest(&partitions, 1, "30"), None, "two are behind");
        assert_eq!(lowest(&partitions, 0, "31"), None, "and one still is");
        assert_eq!(lowest(&partitions, 1, "40"), some("31"));
    }

    #[test]
    fn a_partition_that_goes_back_takes_the_lowest_version_with_it() {
        let partitions = partitions();
        for partition in 0..3 {
            partitions.move_to(partition, version("50"));
        }
        assert_eq!(lowest(&partitions, 1, "7"), some("7"));
        assert_eq!(partitions.version("bank"), Some(version("7")));
        assert!(partitions.wait_for("bank", &version("50")).now_or_never().is_none());
        assert_eq!(partitions.wait_for("shop", &version("50")).now_or_never(), Some(Ok(())));
        assert_eq!(lowest(&partitions, 1, "60"), some("50"));
    }

    #[test]
    fn a_version_that_is_no_number_is_lower_than_all_others() {
        let partitions = partitions();
        assert_eq!(lowest(&partitions, 0, "v7"), some("v7"), "also while others have none");
        assert_eq!(lowest(&partitions, 1, "5"), None);
        assert_eq!(lowest(&partitions, 2, "6"), None);
        let incomparable = Some(Err(WaitError::Incomparable { here: version("v7") }));
        assert_eq!(partitions.wait_for("shop", &version("1")).now_or_never(), incomparable);
        assert_eq!(partitions.wait_for("bank", &version("1")).now_or_never(), Some(Ok(())), "others are at numbers");
        assert_eq!(lowest(&partitions, 0, "8"), some("5"));
    }

    /// The lowest version is found in a shortcut. This is how one would find it.
    #[test]
    fn the_lowest_version_is_that_of_all_of_them_whatever_the_moves() {
        let all = ["", "0", "v1", "w22", "5", "6", "10", "11", "100"];
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let partitions = partitions();
            let mut known = version("");
            for _ in 0..50 {
                let to = version(random.choice(all).expect("some"));
                known = partitions.move_to(random.usize(0..3), to).unwrap_or(known);
                let each = ["shop", "bank", "mill"].map(|namespace| partitions.version(namespace).expect("known"));
                let strange = each.iter().find(|version| version.is_exact() && !version.is_decimal());
                if let Some(strange) = strange {
                    assert_eq!(how_far(&known).0, 0, "seed {seed}: {known} and not {strange}");
                } else if let Some(none) = each.iter().find(|version| !version.is_exact()) {
                    assert!(!known.is_exact(), "seed {seed}: {known} and not {none}");
                } else {
                    let number = |version: &ResourceVersion| version.as_str().parse::<u64>().expect("decimal");
                    assert_eq!(Some(number(&known)), each.iter().map(number).min(), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn those_who_wait_for_a_namespace_are_let_go_by_its_version_and_no_other() {
        let partitions = partitions();
        let ten = version("10");
        let mut shop = Box::pin(partitions.wait_for("shop", &ten));
        let mut bank = Box::pin(partitions.wait_for("bank", &ten));
        assert!((&mut shop).now_or_never().is_none() && (&mut bank).now_or_never().is_none());
        partitions.move_to(1, version("11"));
        partitions.move_to(0, version("9"));
        assert!((&mut shop).now_or_never().is_none());
        assert_eq!(bank.now_or_never(), Some(Ok(())));
        partitions.move_to(0, version("v10"));
        assert_eq!(shop.now_or_never(), Some(Err(WaitError::Incomparable { here: version("v10") })));
    }

    #[test]
    fn one_who_is_dropped_leaves_the_others_waiting() {
        let partitions = partitions();
        let ten = version("10");
        let mut waits: Vec<_> = (0..3).map(|_| Box::pin(partitions.wait_for("mill", &ten))).collect();
        assert!(waits.iter_mut().all(|wait| wait.now_or_never().is_none()));
        drop(waits.remove(1));
        partitions.move_to(2, ten.clone());
        assert!(waits.into_iter().all(|wait| wait.now_or_never() == Some(Ok(()))));
        assert!(partitions.waiting[2].news(&ten).is_none(), "nobody is left");
    }

    #[test]
    fn a_namespace_that_is_not_watched_is_an_error_that_names_it() {
        let partitions = partitions();
        let error = partitions.wait_for("farm", &version("1")).now_or_never().expect("at once").expect_err("unknown");
        assert_eq!(error, WaitError::UnknownNamespace { namespace: "farm".into() });
        assert!(error.to_string().contains("\"farm\""), "{error}");
        assert_eq!((partitions.version("farm"), partitions.version("shop")), (None, Some(version(""))));
        let error = partitions.wait_for("shop", &version("0")).now_or_never();
        assert_eq!(error, Some(Err(WaitError::NoNumber { version: version("0") })));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_wake_up_is_lost_between_moves_and_waits_on_threads() {
        const LAST: u64 = 2000;
        let partitions = Arc::new(partitions());
        let moved = Arc::new([const { AtomicU64::new(0) }; 3]);
        let mut tasks = Vec::new();
        for (number, namespace) in ["shop", "bank", "mill"].into_iter().enumerate() {
            for step in [1, 3, 7] {
                let (partitions, moved) = (partitions.clone(), moved.clone());
                tasks.push(tokio::spawn(async move {
                    for wanted in (1..=LAST).step_by(step) {
                        let version = version(&wanted.to_string());
                        partitions.wait_for(namespace, &version).await.expect("numbers");
                        assert!(moved[number].load(Ordering::Relaxed) >= wanted, "let go before its time");
                    }
                }));
            }
        }
        let movers = [0, 1, 2].map(|number| {
            let (partitions, moved) = (partitions.clone(), moved.clone());
            std::thread::spawn(move || {
                for at in 1..=LAST {
                    moved[number].store(at, Ordering::Relaxed);
                    partitions.move_to(number, version(&at.to_string()));
                    if at % 5 == 0 {
                        std::thread::yield_now();
                    }
                }
            })
        });
        for task in tasks {
            let waited = tokio::time::timeout(std::time::Duration::from_secs(60), task).await;
            waited.expect("nobody waits for what has come").expect("no panic");
        }
        for mover in movers {
            mover.join().expect("no panic");
        }
    }
}
