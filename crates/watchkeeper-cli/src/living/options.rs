//! What can be said of a living cluster.

use jiff::Timestamp;

/// The fewest objects that make a cluster.
pub(crate) const FEWEST: usize = 10;
/// The most that are made.
pub(crate) const MOST: usize = 100_000;

/// How large a cluster is, how busy, and which one of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LivingOptions {
    /// How many objects there are in all, roughly: from [`FEWEST`] to [`MOST`]; what is beyond is taken for the limit.
    pub(crate) objects: usize,
    /// The same seed makes the same cluster: names, images, labels, sizes.
    pub(crate) seed: u64,
    /// Writes in a second, roughly, and over time: there are quiet moments and bursts. At zero nothing happens by itself,
    /// and the controllers only answer to what others do.
    pub(crate) rate: f64,
    /// What time it is at the beginning; now, if nothing is said. It has to be the server's time.
    pub(crate) now: Option<Timestamp>,
}

impl Default for LivingOptions {
    fn default() -> Self {
        Self { objects: 3000, seed: 1, rate: 30.0, now: None }
    }
}

impl LivingOptions {
    /// The number of objects, within the limits.
    pub(super) fn size(&self) -> usize {
        self.objects.clamp(FEWEST, MOST)
    }

    /// The rate, whatever number it was.
    pub(super) fn writes_per_second(&self) -> f64 {
        if self.rate.is_finite() { self.rate.clamp(0.0, 10_000.0) } else { 0.0 }
    }
}
