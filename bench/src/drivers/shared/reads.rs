//! What does reading a cache cost?
//!
//! One thread reads, outside the runtime, as a request handler of the user's would. Keys and selectors are made ahead: what is
//! measured is the cache.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::Outcome;
use super::control::Place;
use super::figures::{ReadTimes, micros};
use super::library::Cache;

/// How long each way of reading is measured.
const SPAN: Duration = Duration::from_millis(500);
/// The most calls between two looks at the clock.
const LARGEST_BATCH: u64 = 4096;

/// Reads name and version of what is found.
#[derive(Debug, Default)]
pub(crate) struct Look {
    found: u64,
    sum: u64,
}

impl Look {
    /// An object was found. Its texts are looked at, so that they have to be there.
    pub(crate) fn at(&mut self, name: &str, version: &str) {
        let last = |text: &str| u64::from(text.as_bytes().last().copied().unwrap_or_default());
        self.found += 1;
        self.sum = self.sum.wrapping_add(last(name) + last(version));
    }
}

/// What is read, in the library's own terms.
pub(crate) struct Targets<C: Cache> {
    pods: Vec<(C::Key, Place, C::Selector)>,
}

impl<C: Cache> Targets<C> {
    pub(crate) fn new(places: Vec<Place>) -> Outcome<Self> {
        let target = |place: Place| Ok((C::key(&place.namespace, &place.name), C::selector("app", &place.app)?, place));
        let pods = places.into_iter().map(|place| target(place).map(|(key, selector, place)| (key, place, selector)));
        Ok(Self { pods: pods.collect::<Outcome<_>>()? })
    }

    /// Reads in all ways, for about two seconds.
    pub(crate) fn read(&self, cache: &C) -> Outcome<ReadTimes> {
        let mut random = fastrand::Rng::with_seed(1);
        let mut any = || &self.pods[random.usize(..self.pods.len())];
        let get = measure(|look| cache.get(&any().0, look));
        if get.found < 1.0 {
            return Err("a pod that the server has is not in the cache".into());
        }
        let namespace = measure(|look| cache.namespace(&any().1.namespace, look));
        let index = measure(|look| cache.node(&any().1.node, look));
        let selector = measure(|look| cache.matching(&any().2, look));
        Ok(ReadTimes {
            get_ns: get.micros * 1e3,
            namespace_us: namespace.micros,
            namespace_found: namespace.found,
            index_us: index.micros,
            index_found: index.found,
            selector_us: selector.micros,
            selector_found: selector.found,
        })
    }
}

/// Of one call, on average.
struct Average {
    micros: f64,
    found: f64,
}

fn measure(mut call: impl FnMut(&mut Look)) -> Average {
    let (mut look, mut calls, mut batch) = (Look::default(), 0, 1);
    let started = Instant::now();
    let took = loop {
        for _ in 0..batch {
            call(&mut look);
        }
        calls += batch;
        batch = (2 * batch).min(LARGEST_BATCH);
        let took = started.elapsed();
        if took >= SPAN {
            break took;
        }
        // Calls that take long are counted one by one.
        if took / u32::try_from(calls).unwrap_or(u32::MAX) > SPAN / 100 {
            batch = 1;
        }
    };
    black_box(look.sum);
    Average { micros: micros(took) / calls as f64, found: look.found as f64 / calls as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_counts_what_is_found_and_reads_it() {
        let mut look = Look::default();
        look.at("web-0", "10");
        look.at("", "1");
        assert_eq!((look.found, look.sum), (2, u64::from(b'0' + b'0' + b'1')));
    }
}
