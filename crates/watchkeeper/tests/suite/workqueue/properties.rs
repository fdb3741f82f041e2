//! Each queue beside a naive one, a million steps in all.
//!
//! The naive one keeps everything in lists and looks through them. After each step both must say the same: what is taken, how
//! much can be taken, how much waits. With tenants the order within a priority is the queue's own; then it is checked that what
//! is taken is of the highest priority, the first of its tenant, and that no tenant waits for more than a turn of all others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, advance};
use watchkeeper::workqueue::limiter::Exponential;
use watchkeeper::workqueue::{AddOptions, Item, RateLimitingQueue, ShutDown, WorkQueue};

const KEYS: u8 = 12;
const TENANTS: u8 = 4;
const STEPS: usize = 250;
const CASES: u64 = 1_000;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An item that can be taken: its priority, its turn within it, its age and its turn by age.
#[derive(Debug, Clone, Copy)]
struct Ready {
    item: u8,
    priority: i32,
    place: u64,
    since: u64,
    age: u64,
}

#[derive(Default)]
struct Naive {
    now: u64,
    max_age: u64,
    fair: bool,
    count: u64,
    ready: Vec<Ready>,
    /// Item, time, turn within it, priority.
    waiting: Vec<(u8, u64, u64, i32)>,
    processing: BTreeSet<u8>,
    again: BTreeMap<u8, i32>,
    failures: BTreeMap<u8, u32>,
    aged_last: bool,
    over: bool,
}

impl Naive {
    fn count(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Time passes, and what is due is added.
    fn advance(&mut self, by: u64) {
        self.now += by;
        self.waiting.sort_by_key(|(_, due, turn, _)| (*due, *turn));
        while let Some((item, due, _, priority)) = self.waiting.first().copied().filter(|(_, due, ..)| *due <= self.now)
        {
            self.waiting.remove(0);
            self.mark(item, priority, due);
        }
    }

    fn add(&mut self, item: u8, priority: i32, after: u64) {
        if self.over {
            return;
        }
        if after == 0 {
            return self.mark(item, priority, self.now);
        }
        let (due, turn) = (self.now + after, self.count());
        match self.waiting.iter_mut().find(|(waiting, ..)| *waiting == item) {
            None => self.waiting.push((item, due, turn, priority)),
            Some((_, earlier, old_turn, higher)) => {
                *higher = (*higher).max(priority);
                if due < *earlier {
                    (*earlier, *old_turn) = (due, turn);
                }
            }
        }
    }

    fn mark(&mut self, item: u8, priority: i32, since: u64) {
        let count = self.count();
        if self.processing.contains(&item) {
            let again = self.again.entry(item).or_insert(priority);
            *again = (*again).max(priority);
            return;
        }
        match self.ready.iter_mut().find(|ready| ready.item == item) {
            None => self.ready.push(Ready { item, priority, place: count, since, age: count }),
            Some(ready) if ready.priority < priority => (ready.priority, ready.place) = (priority, count),
            Some(_) => {}
        }
    }

    /// The one that is next by its age, or else by its priority.
    fn next(&mut self) -> Option<(Ready, bool)> {
        let oldest = self.ready.iter().min_by_key(|ready| ready.age).copied();
        let aged = oldest.filter(|oldest| self.now - oldest.since >= self.max_age && !self.aged_last);
        let first = self.ready.iter().min_by_key(|ready| (-i64::from(ready.priority), ready.place)).copied();
        // One that is next anyway is not taken because of its age.
        let is_out_of_turn = |aged: Ready| self.fair || first.is_none_or(|first| first.item != aged.item);
        self.aged_last = aged.is_some_and(is_out_of_turn);
        aged.or(first).map(|next| (next, aged.is_some()))
    }

    fn take(&mut self, item: u8) {
        self.ready.retain(|ready| ready.item != item);
        assert!(self.processing.insert(item), "two have {item}");
    }

    fn done(&mut self, item: u8) {
        self.processing.remove(&item);
        if let Some(priority) = self.again.remove(&item) {
            self.mark(item, priority, self.now);
        }
    }

    fn shut_down(&mut self) {
        self.over = true;
        self.waiting.clear();
    }
}

/// Which of the three queues is looked at: what it can do is what is done with it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Delaying,
    RateLimiting,
    Fair,
}

struct Pair {
    kind: Kind,
    random: Rng,
    queue: RateLimitingQueue<u8>,
    naive: Naive,
    held: Vec<Item<u8>>,
    /// Of each tenant with something of the highest priority, how often others were served since.
    passed_over: BTreeMap<u8, u8>,
}

fn tenant(item: u8) -> u8 {
    item % TENANTS
}

impl Pair {
    fn new(kind: Kind, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let max_age = random.choice([0, 20, 100_000]).unwrap_or(0);
        let mut builder = WorkQueue::builder().max_age(millis(max_age));
        if kind == Kind::Fair {
            builder = builder.fair_by(|item: &u8| tenant(*item));
        }
        let queue = RateLimitingQueue::over(builder.build(), Exponential::new(millis(1), millis(64)));
        let naive = Naive { max_age, fair: kind == Kind::Fair, ..Naive::default() };
        Self { kind, random, queue, naive, held: Vec::new(), passed_over: BTreeMap::new() }
    }

    async fn step(&mut self) {
        let item = self.random.u8(..KEYS);
        match self.random.u8(..100) {
            0..25 => {
                self.queue.add(item);
                self.naive.add(item, 0, 0);
            }
            25..40 => self.add_with(item),
            40..65 => self.get(),
            65..85 if !self.held.is_empty() => {
                let held = self.held.swap_remove(self.random.usize(..self.held.len()));
                self.naive.done(*held);
                held.done();
            }
            85..95 => {
                let by = self.random.u64(..20);
                advance(millis(by)).await;
                self.naive.advance(by);
            }
            95..99 if self.kind == Kind::RateLimiting => {
                self.queue.forget(&item);
                self.naive.failures.remove(&item);
            }
            99 if self.random.u8(..10) == 0 => {
                self.queue.shut_down();
                self.naive.shut_down();
            }
            _ => {}
        }
        assert_eq!(self.queue.len(), self.naive.ready.len());
        assert_eq!(self.queue.waiting_len(), self.naive.waiting.len());
        let failures = self.naive.failures.get(&item).copied().unwrap_or_default();
        assert_eq!(self.queue.num_requeues(&item), failures);
    }

    fn add_with(&mut self, item: u8) {
        let priority = self.random.i32(-2..=2);
        let mut after = if self.kind == Kind::Plain || self.random.bool() { None } else { Some(self.random.u64(..40)) };
        let rate_limited = self.kind == Kind::RateLimiting && self.random.bool();
        self.queue.add_with(item, AddOptions { priority, after: after.map(millis), rate_limited });
        if rate_limited {
            let failures = self.naive.failures.entry(item).or_default();
            after = after.max(Some(64.min(1 << *failures)));
            *failures += 1;
        }
        self.naive.add(item, priority, after.unwrap_or(0));
    }

    fn get(&mut self) {
        let got = self.queue.try_get();
        let Some((next, aged)) = self.naive.next() else {
            return assert_eq!(got.map(|got| got.is_some()), if self.naive.over { Err(ShutDown) } else { Ok(false) });
        };
        let got = got.expect("it is not over").expect("something can be taken");
        if self.kind != Kind::Fair || aged {
            assert_eq!(*got, next.item);
        } else {
            self.check_turn(*got, next.priority);
        }
        self.naive.take(*got);
        self.held.push(got);
    }

    fn check_turn(&mut self, got: u8, highest: i32) {
        let band = || self.naive.ready.iter().filter(|ready| ready.priority == highest);
        let first = band().filter(|ready| tenant(ready.item) == tenant(got)).min_by_key(|ready| ready.place);
        assert_eq!(first.map(|first| first.item), Some(got), "not the highest, or not the first of its tenant");
        let waiting: BTreeSet<u8> = band().map(|ready| tenant(ready.item)).collect();
        self.passed_over.retain(|tenant, _| waiting.contains(tenant));
        for waiting in waiting {
            let passed_over = self.passed_over.entry(waiting).or_default();
            *passed_over += 1;
            assert!(*passed_over <= 2 * TENANTS, "tenant {waiting} waits for too long");
        }
        self.passed_over.remove(&tenant(got));
    }

    /// Whatever was added comes out in the end, and then it is over.
    fn finish(&mut self) {
        self.queue.shut_down();
        self.naive.shut_down();
        while !(self.held.is_empty() && self.naive.ready.is_empty()) {
            for held in self.held.drain(..) {
                self.naive.done(*held);
            }
            self.get();
        }
        assert!(self.queue.try_get().is_err());
    }
}

/// Says with which seed it went wrong.
struct Seed(Kind, u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}, seed {}", self.0, self.1);
        }
    }
}

async fn compare(kind: Kind) {
    let start = Instant::now();
    for seed in 0..CASES {
        let _seed = Seed(kind, seed);
        let mut pair = Pair::new(kind, seed);
        for _ in 0..STEPS {
            pair.step().await;
        }
        pair.finish();
    }
    assert!(start.elapsed() > Duration::ZERO, "time has passed");
}

#[tokio::test(start_paused = true)]
async fn a_work_queue_does_what_a_naive_one_does() {
    compare(Kind::Plain).await;
}

#[tokio::test(start_paused = true)]
async fn a_delaying_queue_does_what_a_naive_one_does() {
    compare(Kind::Delaying).await;
}

#[tokio::test(start_paused = true)]
async fn a_rate_limiting_queue_does_what_a_naive_one_does() {
    compare(Kind::RateLimiting).await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_with_tenants_keeps_their_order_and_lets_none_wait_for_long() {
    compare(Kind::Fair).await;
}
