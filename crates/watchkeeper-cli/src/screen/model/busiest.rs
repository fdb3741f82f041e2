//! Which objects change most, however many there are?
//!
//! Counting all would need room for all. This keeps a few hundred counters; when none is free, the smallest is given to the
//! newcomer, which inherits its count (the "space-saving" algorithm). Whatever changes more often than one in so many changes
//! is certainly among them. Two windows take turns, so that what was busy long ago is forgotten.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use watchkeeper::ObjectKey;

/// How many counters a window has.
const COUNTERS: usize = 256;
/// How long a window is filled.
const WINDOW: Duration = Duration::from_secs(60);

/// An object: the name of its kind, and its key.
pub(crate) type Name = (Arc<str>, ObjectKey);

/// The busiest objects of the last one to two minutes.
#[derive(Debug)]
pub(crate) struct Busiest {
    now: HashMap<Name, u64>,
    before: HashMap<Name, u64>,
    since: Instant,
}

impl Busiest {
    /// Nothing has changed yet.
    pub(crate) fn new(now: Instant) -> Self {
        Self { now: HashMap::new(), before: HashMap::new(), since: now }
    }

    /// An object changed.
    pub(crate) fn changed(&mut self, now: Instant, kind: &Arc<str>, key: &ObjectKey) {
        self.turn(now);
        let name = (kind.clone(), key.clone());
        if let Some(count) = self.now.get_mut(&name) {
            *count += 1;
            return;
        }
        let inherited = if self.now.len() < COUNTERS { 0 } else { self.give_up_smallest() };
        self.now.insert(name, inherited + 1);
    }

    /// The busiest ones, the busiest first; ties by name, so that they do not jump about.
    pub(crate) fn top(&mut self, now: Instant, most: usize) -> Vec<(Name, u64)> {
        self.turn(now);
        let mut all = self.before.clone();
        for (name, count) in &self.now {
            *all.entry(name.clone()).or_default() += count;
        }
        let mut all: Vec<(Name, u64)> = all.into_iter().collect();
        all.sort_by(|(name, count), (other, others)| others.cmp(count).then_with(|| name.cmp(other)));
        all.truncate(most);
        all
    }

    fn turn(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        if passed < WINDOW {
            return;
        }
        self.before = if passed < 2 * WINDOW { std::mem::take(&mut self.now) } else { HashMap::new() };
        self.now.clear();
        self.since = now;
    }

    fn give_up_smallest(&mut self) -> u64 {
        let smallest = self.now.iter().min_by_key(|(_, count)| **count).map(|(name, _)| name.clone());
        smallest.and_then(|name| self.now.remove(&name)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_ones_are_found_among_very_many() {
        let start = Instant::now();
        let mut busiest = Busiest::new(start);
        let pods: Arc<str> = "pods".into();
        for i in 0..20_000 {
            busiest.changed(start, &pods, &ObjectKey::namespaced("shop", format!("once-{i}")));
            if i % 10 == 0 {
                busiest.changed(start, &pods, &ObjectKey::namespaced("shop", "often"));
            }
        }
        let top = busiest.top(start, 1);
        assert_eq!(top.first().map(|((_, key), _)| key.name()), Some("often"));
        assert!(top.first().is_some_and(|(_, count)| *count >= 2_000));
        assert!(busiest.now.len() <= COUNTERS);
    }

    #[test]
    fn what_was_busy_long_ago_is_forgotten() {
        let start = Instant::now();
        let mut busiest = Busiest::new(start);
        let pods: Arc<str> = "pods".into();
        busiest.changed(start, &pods, &ObjectKey::cluster("a"));
        assert_eq!(busiest.top(start + WINDOW, 9).len(), 1);
        assert_eq!(busiest.top(start + 3 * WINDOW, 9).len(), 0);
    }
}
