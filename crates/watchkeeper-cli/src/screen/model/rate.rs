//! How often does something happen?

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How finely time is divided.
const STEP: Duration = Duration::from_millis(100);
/// How many steps are remembered: a minute.
const STEPS: usize = 600;
const STEPS_PER_SECOND: usize = 10;

/// How much a counter grew in each tenth of the last minute's seconds.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    /// The newest last, which still grows.
    steps: VecDeque<u32>,
    /// When the newest step began.
    since: Instant,
    total: u64,
}

impl Rate {
    /// Nothing has happened yet.
    pub(crate) fn new(now: Instant) -> Self {
        Self { steps: VecDeque::from([0]), since: now, total: 0 }
    }

    /// The counter has come to this.
    pub(crate) fn sample(&mut self, now: Instant, total: u64) {
        let passed = now.saturating_duration_since(self.since);
        let steps = u32::try_from(passed.as_millis() / STEP.as_millis()).unwrap_or(u32::MAX);
        for _ in 0..steps.min(STEPS as u32) {
            self.steps.push_back(0);
        }
        self.since += STEP * steps;
        while self.steps.len() > STEPS {
            self.steps.pop_front();
        }
        let grown = u32::try_from(total.saturating_sub(self.total)).unwrap_or(u32::MAX);
        self.total = total;
        if let Some(newest) = self.steps.back_mut() {
            *newest = newest.saturating_add(grown);
        }
    }

    /// How often it happened in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// How often it happened within the last second.
    pub(crate) fn last_second(&self) -> u64 {
        self.last_steps(STEPS_PER_SECOND)
    }

    /// How often it happened within the last minute.
    pub(crate) fn last_minute(&self) -> u64 {
        self.last_steps(STEPS)
    }

    /// How often it happened in each of the last seconds, the newest last. Seconds before the beginning are zero.
    pub(crate) fn seconds(&self, count: usize) -> Vec<u64> {
        let steps: Vec<u32> = self.steps.iter().rev().copied().collect();
        let mut seconds: Vec<u64> = steps
            .chunks(STEPS_PER_SECOND)
            .take(count)
            .map(|second| second.iter().copied().map(u64::from).sum())
            .collect();
        seconds.resize(count, 0);
        seconds.reverse();
        seconds
    }

    fn last_steps(&self, count: usize) -> u64 {
        self.steps.iter().rev().take(count).copied().map(u64::from).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_minutes_are_those_before_now() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut rate = Rate::new(start);
        rate.sample(at(50), 3);
        rate.sample(at(1_050), 10);
        assert_eq!((rate.last_second(), rate.last_minute(), rate.total()), (7, 10, 10));
        assert_eq!(rate.seconds(3), [0, 3, 7]);
        rate.sample(at(30_000), 10);
        assert_eq!((rate.last_second(), rate.last_minute()), (0, 10));
        rate.sample(at(90_000), 11);
        assert_eq!((rate.last_second(), rate.last_minute(), rate.total()), (1, 1, 11));
    }

    #[test]
    fn a_long_sleep_and_a_counter_that_goes_back_do_no_harm() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        rate.sample(start + Duration::from_secs(1_000_000), 5);
        rate.sample(start, 2);
        assert_eq!((rate.last_second(), rate.total()), (5, 2));
        assert_eq!(rate.steps.len(), STEPS);
    }
}
