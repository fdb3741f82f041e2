//! What the server makes up: uids, generated names, jitter. All of it follows from one seed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::FOR_EVER;
use crate::defaults::GENERATED_SUFFIX;

/// The letters and digits of generated names: no vowels, so that no words come out.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A source of made-up values.
pub(crate) struct Random(Mutex<fastrand::Rng>);

impl Random {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        Self(Mutex::new(seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)))
    }

    /// A random UUID.
    pub(crate) fn uid(&self) -> String {
        let bits = self.with(|rng| rng.u128(..));
        // Version 4, variant 1.
        let bits = bits & !(0xf << 76) | (0x4 << 76);
        let bits = bits & !(0x3 << 62) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// What is put behind a `generateName`.
    pub(crate) fn suffix(&self) -> String {
        self.with(|rng| (0..GENERATED_SUFFIX).map(|_| char::from(ALPHABET[rng.usize(..ALPHABET.len())])).collect())
    }

    /// A number below `end`.
    pub(crate) fn below(&self, end: u32) -> u32 {
        self.with(|rng| rng.u32(..end.max(1)))
    }

    /// A duration between one and `factor` times `base`.
    pub(crate) fn jittered(&self, base: Duration, factor: f64) -> Duration {
        base.min(FOR_EVER).mul_f64(1.0 + self.with(|rng| rng.f64()) * (factor - 1.0).max(0.0))
    }

    fn with<T>(&self, make: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        make(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
