//! How many bytes are the objects of a kind?
//!
//! What an object takes in memory is known; how long its JSON is, only after unpacking it. So kinds are measured one after
//! the other, a few milliseconds in each tenth of a second, and what is shown is the average times the number of objects.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use watchkeeper::{Indexer, Object};

/// How long one goes on measuring before others may do something.
const SLICE: Duration = Duration::from_millis(4);
/// How long the others may.
const PAUSE: Duration = Duration::from_millis(80);
/// How long all rest between two rounds.
const REST: Duration = Duration::from_secs(2);

/// The sizes of a kind's objects, as they were when they were last measured.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    json_per_object: AtomicU64,
    memory_per_object: AtomicU64,
}

impl Sizes {
    /// JSON and memory of this many objects, in bytes; none before anything was measured.
    pub(crate) fn of(&self, objects: usize) -> Option<(u64, u64)> {
        let (json, memory) = (self.json_per_object.load(Relaxed), self.memory_per_object.load(Relaxed));
        let objects = objects as u64;
        (memory > 0 || objects == 0).then(|| (json.saturating_mul(objects), memory.saturating_mul(objects)))
    }

    fn set(&self, objects: u64, json: u64, memory: u64) {
        if let (Some(json), Some(memory)) = (json.checked_div(objects), memory.checked_div(objects)) {
            self.json_per_object.store(json, Relaxed);
            self.memory_per_object.store(memory, Relaxed);
        }
    }

    /// Measures all objects of a store, with pauses.
    async fn measure(&self, store: &Indexer<Object>) {
        let snapshot = store.snapshot();
        let (mut objects, mut json, mut memory) = (0, 0, 0);
        let mut begun = Instant::now();
        let is_first = self.memory_per_object.load(Relaxed) == 0;
        for (_, object) in snapshot.iter() {
            objects += 1;
            memory += object.memory() as u64;
            json += object.json().map_or(0, |json| json.len() as u64);
            if begun.elapsed() >= SLICE {
                // At first, something is better than nothing.
                if is_first {
                    self.set(objects, json, memory);
                }
                tokio::time::sleep(PAUSE).await;
                begun = Instant::now();
            }
        }
        self.set(objects, json, memory);
    }
}

/// Measures the stores for ever, one after the other.
pub(crate) async fn measure<'a, I>(kinds: impl Fn() -> I, token: CancellationToken)
where
    I: Iterator<Item = (&'a Indexer<Object>, &'a Sizes)>,
{
    let forever = async {
        loop {
            for (store, sizes) in kinds() {
                sizes.measure(store).await;
            }
            tokio::time::sleep(REST).await;
        }
    };
    let _ = token.run_until_cancelled(forever).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn sizes_are_those_of_the_average_object() {
        let store = Indexer::objects();
        let sizes = Sizes::default();
        assert_eq!((sizes.of(0), sizes.of(1)), (Some((0, 0)), None));
        for name in ["a", "b"] {
            let json = format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"1"}}}}"#);
            assert!(Object::from_json(json).is_ok_and(|object| store.add(object).is_ok()));
        }
        sizes.measure(&store).await;
        assert_eq!(sizes.of(3).map(|(json, _)| json), Some(3 * 47));
        assert!(sizes.of(3).is_some_and(|(_, memory)| memory > 3 * 47), "there is a header too");
    }
}
