//! How often has each item failed?
//!
//! Whoever forgets to call `forget` must not fill the memory: an operator that deletes ten thousand objects a day would,
//! within a year. So the counts are kept in two generations. An item that fails is in the young one; when that is full, the
//! old one is dropped and the young one takes its place. An item that fails again comes back into the young one. So the
//! items that failed last are known, at least half as many as there may be in all.

use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::defaults::LIMITER_ITEMS;

pub(crate) struct Failures<T> {
    generations: Mutex<Generations<T>>,
    capacity: usize,
}

struct Generations<T> {
    young: HashMap<T, u32>,
    old: HashMap<T, u32>,
}

impl<T: Eq + Hash + Clone> Failures<T> {
    pub(crate) fn new() -> Self {
        Self::with_capacity(LIMITER_ITEMS)
    }

    /// Of so many items at most; two at least.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let generations = Generations { young: HashMap::new(), old: HashMap::new() };
        Self { generations: Mutex::new(generations), capacity: capacity.max(2) }
    }

    /// Counts another failure. Returns how many there were before.
    pub(crate) fn count(&self, item: &T) -> u32 {
        let mut generations = self.generations();
        if let Some(failures) = generations.young.get_mut(item) {
            *failures = failures.saturating_add(1);
            return *failures - 1;
        }
        let before = generations.old.remove(item).unwrap_or(0);
        let mut gone = None;
        if generations.young.len() >= self.capacity / 2 {
            let full = std::mem::take(&mut generations.young);
            gone = Some(std::mem::replace(&mut generations.old, full));
        }
        generations.young.insert(item.clone(), before.saturating_add(1));
        drop(generations);
        drop(gone);
        before
    }

    pub(crate) fn forget(&self, item: &T) {
        let mut generations = self.generations();
        let known = (generations.young.remove_entry(item), generations.old.remove_entry(item));
        drop(generations);
        drop(known);
    }

    pub(crate) fn get(&self, item: &T) -> u32 {
        let generations = self.generations();
        generations.young.get(item).or_else(|| generations.old.get(item)).copied().unwrap_or(0)
    }

    fn generations(&self) -> MutexGuard<'_, Generations<T>> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_never_forgotten_is_bounded_and_what_fails_again_and_again_is_known() {
        let failures = Failures::with_capacity(100);
        for item in 1..100_000 {
            assert_eq!(failures.count(&0), item - 1, "the one that always fails is counted rightly");
            failures.count(&item);
        }
        let generations = failures.generations();
        assert!(generations.young.len() + generations.old.len() <= 100);
        drop(generations);
        for recent in 99_960..100_000 {
            assert_eq!(failures.get(&recent), 1, "{recent} failed lately");
        }
    }

    #[test]
    fn what_was_forgotten_begins_anew_whatever_its_generation() {
        let failures = Failures::with_capacity(4);
        for item in [1, 2, 3] {
            failures.count(&item);
        }
        for item in [1, 3] {
            failures.forget(&item);
            assert_eq!(failures.get(&item), 0);
        }
        assert_eq!(failures.get(&2), 1);
    }
}
