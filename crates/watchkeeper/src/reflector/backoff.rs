//! How long to wait before trying again.

use std::time::Duration;

use tokio::time::Instant;

use crate::defaults::{BACKOFF_FACTOR, BACKOFF_INITIAL, BACKOFF_JITTER, BACKOFF_MAX, BACKOFF_RESET};
use crate::source::later;

/// Waits that grow with each failure, and begin anew after a time without one.
///
/// A reflector has one, for all that can fail: a list that fails after a watch that failed waits longer, and a success
/// in between changes nothing until two minutes have passed without a wait. (A backoff that each success resets never
/// grows when every second request fails.)
#[derive(Debug, Clone)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    factor: f64,
    jitter: f64,
    reset_after: Duration,
    next: Duration,
    /// When the last wait ends. A longer one than `reset_after` is no time without a wait.
    last_end: Option<Instant>,
    random: fastrand::Rng,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(BACKOFF_INITIAL, BACKOFF_MAX)
    }
}

impl Backoff {
    /// Waits that double from `initial` to `max`, jittered.
    pub fn new(initial: Duration, max: Duration) -> Self {
        Self {
            initial,
            max,
            factor: BACKOFF_FACTOR,
            jitter: BACKOFF_JITTER,
            reset_after: BACKOFF_RESET,
            next: initial,
            last_end: None,
            random: fastrand::Rng::new(),
        }
    }

    /// What each wait is of the one before.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor.max(1.0);
        self
    }

    /// A wait of `d` becomes one between `d` and `d * (1 + jitter)`. Without jitter, clients that failed together try
    /// again together.
    pub fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = jitter.max(0.0);
        self
    }

    /// After this long without a wait the next one is the first again.
    pub fn reset_after(mut self, time: Duration) -> Self {
        self.reset_after = time;
        self
    }

    /// Makes the jitter repeatable.
    pub fn seed(mut self, seed: u64) -> Self {
        self.random = fastrand::Rng::with_seed(seed);
        self
    }

    /// The next wait.
    pub fn next_wait(&mut self) -> Duration {
        let now = Instant::now();
        if self.last_end.is_some_and(|end| now.saturating_duration_since(end) > self.reset_after) {
            self.next = self.initial;
        }
        let wait = scale(self.next, 1.0 + self.jitter * self.random.f64());
        self.next = scale(self.next, self.factor).min(self.max);
        self.last_end = Some(later(now, wait));
        wait
    }
}

/// Multiplies without the panic that `Duration::mul_f64` has for what is too large or no number.
fn scale(time: Duration, by: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * by).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(backoff: &mut Backoff, count: usize) -> Vec<Duration> {
        (0..count).map(|_| backoff.next_wait()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_the_maximum() {
        let mut backoff = Backoff::default().jitter(0.0);
        let seconds: Vec<f64> = waits(&mut backoff, 8).iter().map(Duration::as_secs_f64).collect();
        assert_eq!(seconds, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn jitter_stays_between_one_and_two_times_the_wait_and_differs() {
        let mut base = Duration::from_millis(800);
        let (mut a, mut b) = (Backoff::default().seed(1), Backoff::default().seed(2));
        let (a, b) = (waits(&mut a, 7), waits(&mut b, 7));
        assert_ne!(a, b);
        for wait in a {
            assert!(wait >= base && wait < base * 2, "{wait:?} after a base of {base:?}");
            base = (base * 2).min(BACKOFF_MAX);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn two_minutes_without_a_wait_begin_anew() {
        let mut backoff = Backoff::default().jitter(0.0);
        let last = waits(&mut backoff, 5)[4];
        tokio::time::advance(last + BACKOFF_RESET).await;
        assert_eq!(
            backoff.next_wait(),
            Duration::from_secs_f64(25.6),
            "exactly two minutes are not more than two minutes"
        );
        tokio::time::advance(Duration::from_secs_f64(25.6) + BACKOFF_RESET + Duration::from_millis(1)).await;
        assert_eq!(backoff.next_wait(), BACKOFF_INITIAL);
    }

    #[tokio::test(start_paused = true)]
    async fn no_number_of_failures_overflows() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::MAX).factor(f64::MAX).jitter(f64::MAX);
        waits(&mut backoff, 100);
    }
}
