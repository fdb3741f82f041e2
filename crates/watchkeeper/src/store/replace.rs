//! Puts a list in the place of what a store has.
//!
//! As a rule the new tables are made aside, while readers go on with the old ones, and swapped. That takes as long as the
//! store is large. Where several watches fill one store, each list is about a part of it, and most of the rest stays: if
//! there is little to be changed, it is changed as a batch is, in place.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::HashSet;

use super::ThreadSafeStore;
use super::tables::Aside;
use crate::{Key, ResourceVersion};

/// The most changes that a replacement makes in place, while readers wait...
const FEW: usize = 1000;
/// ... and at most one of so many of what the store has.
const ONE_OF: usize = 8;

impl<T: Clone + Send + Sync + 'static, K: Key> ThreadSafeStore<T, K> {
    /// Puts these in the place of everything, except that what is under a key that is to be kept, and that none of them
    /// has, stays. The version stays where none is given.
    ///
    /// What is here already and comes again, the very same, is carried over with its index values, as what stays is:
    /// nothing has to be computed for it.
    pub(super) fn replace_some(
        &self,
        mut values: Vec<(K, T)>,
        version: Option<ResourceVersion>,
        keep: &dyn Fn(&K) -> bool,
    ) {
        if self.replace_few(&values, version.as_ref(), keep) {
            return;
        }
        let mut here = Vec::new();
        let (mut ledger, mut aside) = loop {
            let definitions = self.definitions();
            let mut aside = Aside::new(values.len() + here.len(), definitions.len());
            for (key, value) in std::mem::take(&mut values) {
                // Behind another one of its key it takes that one's place, in front of it that one takes its own.
                if self.is_here(&key, &value) && !aside.has(&key, &self.hasher) {
                    here.push((key, value));
                } else {
                    aside.put(key, value, &definitions, &self.hasher);
                }
            }
            let ledger = self.ledger();
            if Arc::ptr_eq(&definitions, &self.shared().definitions) {
                break (ledger, aside);
            }
            let slots = aside.tables.slots.view();
            values.extend(slots.iter().flat_map(|chunk| chunk.iter().flatten()).cloned());
        };
        {
            let shared = self.shared();
            for (key, value) in &here {
                if aside.has(key, &self.hasher) {
                    continue;
                }
                let slot = shared.tables.slots.find(self.hasher.hash_one(key), key);
                let still_here = slot.filter(|slot| {
                    let here = shared.tables.slots.get(*slot);
                    here.is_some_and(|(_, here)| self.is_same.is_some_and(|is_same| is_same(here, value)))
                });
                match still_here {
                    Some(slot) => aside.carry(&shared.tables, &ledger, slot, &shared.definitions, &self.hasher),
                    None => aside.put(key.clone(), value.clone(), &shared.definitions, &self.hasher),
                }
            }
            for (slot, key) in shared.tables.slots.keys() {
                if keep(key) && !aside.has(key, &self.hasher) {
                    aside.carry(&shared.tables, &ledger, slot, &shared.definitions, &self.hasher);
                }
            }
        }
        let news = self.install(&mut ledger, &mut aside, version);
        drop(ledger);
        self.tell(news);
    }

    /// Makes the changes in place, if they are few. Which they are is found out with no lock held; if anybody writes
    /// meanwhile, nothing is done.
    fn replace_few(&self, values: &[(K, T)], version: Option<&ResourceVersion>, keep: &dyn Fn(&K) -> bool) -> bool {
        let few = FEW.min(self.len() / ONE_OF);
        // A write while this is held makes another spine.
        let view = self.shared().tables.slots.view();
        let (mut keys, mut writes) = (HashSet::with_capacity(values.len()), Vec::new());
        for (key, value) in values {
            // Of equal keys the last counts, which is not so easily told here.
            if !keys.insert(key) || writes.len() > few {
                return false;
            }
            if !self.is_here(key, value) {
                writes.push(self.put_of(key.clone(), value.clone()));
            }
        }
        for (key, _) in view.iter().flat_map(|chunk| chunk.iter().flatten()) {
            if !keys.contains(key) && !keep(key) {
                writes.push(self.delete_of(key.clone(), None));
            }
            if writes.len() > few {
                return false;
            }
        }
        writes.iter_mut().for_each(|write| write.version = None);
        let (index_values, ledger) = self.compute(&writes);
        if !Arc::ptr_eq(&view, &self.shared().tables.slots.view()) {
            return false;
        }
        // What somebody holds would be copied.
        drop(view);
        self.write_computed(&mut writes, &index_values, ledger, version.cloned());
        true
    }

    /// The very same value is under this key.
    fn is_here(&self, key: &K, value: &T) -> bool {
        self.is_same.is_some_and(|is_same| self.get(key).is_some_and(|here| is_same(&here, value)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Index;

    /// Values in four parts, by which they are indexed.
    type Numbers = ThreadSafeStore<Arc<u32>, (u8, u32)>;

    fn numbers() -> Numbers {
        let mut store = ThreadSafeStore::new();
        store.is_same = Some(Arc::ptr_eq);
        store.with_index("tens", Index::of(|number: &Arc<u32>| [(**number / 10).to_string()])).expect("a name")
    }

    /// All lists are of one part, some with few changes and some with many, some with handles that are known and some
    /// with a key that comes twice. Whatever the way, the store ends up as a map does.
    #[test]
    fn a_replacement_of_a_part_ends_up_the_same_in_place_and_aside() {
        let (mut in_place, mut aside) = (0, 0);
        for seed in 0..12 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (store, mut model) = (numbers(), BTreeMap::<(u8, u32), Arc<u32>>::new());
            for round in 0..40 {
                let part = random.u8(0..4);
                let chance = if random.bool() { 0.01 } else { 0.6 };
                let mut list = Vec::new();
                for number in 0..100 {
                    let key = (part, number);
                    let known = model.get(&key).cloned();
                    match (random.f64() < chance, known) {
                        (false, Some(known)) => list.push((key, known)),
                        (false, None) if round > 8 => {}
                        (true, Some(_)) if random.bool() => {}
                        (_, known) => {
                            list.push((key, Arc::new(random.u32(0..500))));
                            // Now and then the one that is known comes behind it, and counts.
                            list.extend(known.filter(|_| random.u8(0..20) == 0).map(|known| (key, known)));
                        }
                    }
                }
                model.retain(|key, _| key.0 != part);
                model.extend(list.iter().cloned());

                let before = store.snapshot();
                store.replace_some(list, Some(ResourceVersion::from(&*format!("{round}"))), &|key| key.0 != part);
                // Tables that were made aside are new, and have copied nothing.
                *(if store.copies().0 > 0 { &mut in_place } else { &mut aside }) += 1;
                drop(before);

                let here: BTreeMap<_, _> = store.snapshot().iter().map(|(key, value)| (*key, value.clone())).collect();
                assert!(here.keys().eq(model.keys()), "seed {seed}, round {round}");
                assert!(here.values().zip(model.values()).all(|(here, model)| Arc::ptr_eq(here, model)), "seed {seed}");
                for ten in 0..50 {
                    let of_ten: Vec<_> = model.iter().filter(|(_, n)| ***n / 10 == ten).map(|(key, _)| *key).collect();
                    let indexed = store.index_keys("tens", &ten.to_string()).expect("an index");
                    assert_eq!(indexed, of_ten, "seed {seed}, round {round}, ten {ten}");
                }
                assert_eq!(store.last_version().as_str(), round.to_string());
            }
        }
        assert!(in_place > 100 && aside > 100, "{in_place} in place, {aside} aside");
    }

    #[test]
    fn what_is_written_while_a_replacement_looks_around_is_replaced_too() {
        let store = numbers();
        store.replace((0..100).map(|number| (((number % 2) as u8, number), Arc::new(number))), "1".into());
        let list: Vec<_> =
            store.snapshot().iter().filter(|(key, _)| key.0 == 0).map(|(key, value)| (*key, value.clone())).collect();
        let wrote = std::sync::Once::new();
        // Which keys are kept is asked with no lock held: so this can write.
        let keep = |key: &(u8, u32)| {
            wrote.call_once(|| {
                store.add((0, 6), Arc::new(66));
                store.add((0, 500), Arc::new(5));
                store.add((1, 500), Arc::new(5));
            });
            key.0 != 0
        };
        store.replace_some(list, None, &keep);
        assert!(wrote.is_completed());
        assert_eq!(store.get(&(0, 6)).as_deref(), Some(&6), "the list has it so");
        assert_eq!(store.get(&(0, 500)), None, "the list has it not");
        assert_eq!(store.get(&(1, 500)).as_deref(), Some(&5), "the list is not about it");
    }

    /// Lists of one part, each of one generation, while others write into another part, delete from it and add to it.
    #[test]
    fn whoever_reads_sees_a_list_that_is_applied_in_place_as_a_whole() {
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
        const PART: u32 = 40;
        let mut store: Numbers = ThreadSafeStore::new();
        store.is_same = Some(Arc::ptr_eq);
        let store = store.with_index("generation", Index::of(|value: &Arc<u32>| [value.to_string()])).expect("a name");
        let list = |generation: u32| -> Vec<_> {
            (0..PART).map(|key| ((0, generation % 7 * PART + key), Arc::new(generation))).collect()
        };
        let others = |from: u32| (from..from + 2000).map(|key| ((1, key), Arc::new(0)));
        store.replace(list(1).into_iter().chain(others(0)), "1".into());
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for generation in 2..600_u32 {
                    let version = ResourceVersion::from(&*generation.to_string());
                    store.replace_some(list(generation), Some(version), &|key| key.0 != 0);
                }
                over.store(true, Relaxed);
            });
            scope.spawn(|| {
                let mut random = fastrand::Rng::with_seed(3);
                while !over.load(Relaxed) {
                    let key = (1, random.u32(0..4000));
                    if random.bool() {
                        store.add(key, Arc::new(0))
                    } else {
                        store.delete(&key)
                    }
                    std::thread::yield_now();
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        let snapshot = store.snapshot();
                        let part: Vec<u32> =
                            snapshot.iter().filter(|(key, _)| key.0 == 0).map(|(_, value)| **value).collect();
                        assert_eq!(part.len(), PART as usize);
                        assert!(part.iter().all(|value| value.to_string() == snapshot.version().as_str()), "{part:?}");
                        assert_eq!(snapshot.iter().count(), snapshot.len());
                        let newest = store.last_version();
                        let found = store.by_index("generation", newest.as_str()).expect("an index");
                        assert!(found.len() == PART as usize || found.is_empty(), "{}", found.len());
                        assert_eq!(found.iter().count(), found.len());
                    }
                });
            }
        });
    }
}
