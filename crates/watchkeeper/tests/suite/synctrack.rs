//! Trackers and lazy values: client-go's `synctrack_test.go` and `lazy_test.go`, and what waiting is here.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout};
use watchkeeper::defaults::SYNCED_POLL;
use watchkeeper::synctrack::{AsyncTracker, Lazy, SingleFileTracker};

use crate::support::{seconds, without_deadlock};

/// What both trackers can do, with one key.
trait Tracker: Send + Sync {
    fn follow(&self, has_synced: Box<dyn Fn() -> bool + Send + Sync>);
    fn start(&self);
    fn finished(&self);
    fn has_synced(&self) -> bool;
    fn synced(&self) -> BoxFuture<'_, ()>;
}

impl Tracker for AsyncTracker<&'static str> {
    fn follow(&self, has_synced: Box<dyn Fn() -> bool + Send + Sync>) {
        self.set_upstream(has_synced);
    }

    fn start(&self) {
        self.start("key");
    }

    fn finished(&self) {
        self.finished(&"key");
    }

    fn has_synced(&self) -> bool {
        self.has_synced()
    }

    fn synced(&self) -> BoxFuture<'_, ()> {
        self.synced().boxed()
    }
}

impl Tracker for SingleFileTracker {
    fn follow(&self, has_synced: Box<dyn Fn() -> bool + Send + Sync>) {
        self.set_upstream(has_synced);
    }

    fn start(&self) {
        self.start();
    }

    fn finished(&self) {
        self.finished();
    }

    fn has_synced(&self) -> bool {
        self.has_synced()
    }

    fn synced(&self) -> BoxFuture<'_, ()> {
        self.synced().boxed()
    }
}

/// One of each. Their upstream is what the flag says.
fn both() -> [(Arc<dyn Tracker>, Arc<AtomicBool>); 2] {
    let trackers: [Arc<dyn Tracker>; 2] = [Arc::new(AsyncTracker::new()), Arc::new(SingleFileTracker::new())];
    trackers.map(|tracker| {
        let upstream = Arc::new(AtomicBool::new(false));
        let flag = upstream.clone();
        tracker.follow(Box::new(move || flag.load(Ordering::SeqCst)));
        (tracker, upstream)
    })
}

#[test]
fn a_tracker_has_synced_when_upstream_has_and_what_was_started_is_finished() {
    for (upstream_has, finishes, synced) in
        [(false, true, false), (true, false, false), (false, false, false), (true, true, true)]
    {
        for (tracker, upstream) in both() {
            upstream.store(upstream_has, Ordering::SeqCst);
            tracker.start();
            if finishes {
                tracker.finished();
            }
            assert_eq!(tracker.has_synced(), synced, "upstream {upstream_has}, finished {finishes}");
        }
    }
}

#[test]
fn keys_that_are_started_and_finished_on_many_threads_are_all_accounted_for() {
    let tracker = Arc::new(AsyncTracker::new());
    tracker.set_upstream(|| true);
    for round in 0..50 {
        let barrier = Arc::new(Barrier::new(11));
        let threads: Vec<_> = (0..11)
            .map(|key| {
                let (tracker, barrier) = (tracker.clone(), barrier.clone());
                thread::spawn(move || {
                    barrier.wait();
                    tracker.start(key);
                    assert!(!tracker.has_synced(), "this one is pending");
                    let other = tracker.clone();
                    thread::spawn(move || other.finished(&key)).join().expect("no panic");
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert!(tracker.has_synced(), "round {round}: {tracker:?}");
    }
}

#[test]
fn a_hundred_starts_need_a_hundred_finishes() {
    let tracker = SingleFileTracker::new();
    tracker.set_upstream(|| true);
    (0..100).for_each(|_| tracker.start());
    for left in (1..=100).rev() {
        assert!(!tracker.has_synced(), "{left} are left");
        tracker.finished();
    }
    assert!(tracker.has_synced());
}

#[test]
fn to_finish_what_was_not_started_is_a_bug_that_panics_and_changes_nothing() {
    let tracker = SingleFileTracker::new();
    tracker.set_upstream(|| true);
    tracker.start();
    tracker.finished();
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tracker.finished())).expect_err("nothing is pending");
    assert!(tracker.has_synced());
    tracker.start();
    assert!(!tracker.has_synced(), "it does not count against the next one");
}

#[test]
fn the_order_of_starts_finishes_and_upstream_does_not_matter() {
    let orders: [&[&str]; 6] = [
        &["upstream", "start", "start", "finish", "finish"],
        &["start", "upstream", "start", "finish", "finish"],
        &["start", "finish", "upstream", "start", "finish"],
        &["start", "start", "finish", "upstream", "finish"],
        &["start", "finish", "start", "finish", "upstream"],
        &["start", "start", "finish", "finish", "upstream"],
    ];
    for order in orders {
        let [_, (tracker, upstream)] = both();
        let (mut pending, mut known) = (0, false);
        for step in order {
            match *step {
                "start" => {
                    tracker.start();
                    pending += 1;
                }
                "finish" => {
                    tracker.finished();
                    pending -= 1;
                }
                _ => {
                    upstream.store(true, Ordering::SeqCst);
                    known = true;
                }
            }
            assert_eq!(tracker.has_synced(), known && pending == 0, "{step} of {order:?}");
        }
        assert!(tracker.has_synced());
    }
}

#[test]
fn what_upstream_starts_while_it_is_asked_is_not_overlooked() {
    for (tracker, _) in both() {
        // As if the last initial object were handed on, and upstream synced, just after it was asked.
        let late = Arc::downgrade(&tracker);
        tracker.follow(Box::new(move || {
            late.upgrade().expect("it is asked").start();
            true
        }));
        let asked = tracker.clone();
        without_deadlock(move || assert!(!asked.has_synced()));
        assert!(tracker.synced().now_or_never().is_none());
    }
}

#[test]
fn without_an_upstream_a_tracker_has_not_synced() {
    for tracker in [Arc::new(AsyncTracker::new()) as Arc<dyn Tracker>, Arc::new(SingleFileTracker::new())] {
        assert!(!tracker.has_synced());
        let mut synced = tracker.synced();
        assert!((&mut synced).now_or_never().is_none());
        tracker.follow(Box::new(|| true));
        assert!(synced.now_or_never().is_some(), "whoever waits is told of it");
    }
}

#[test]
fn a_key_that_is_started_twice_is_finished_once_and_another_one_does_no_harm() {
    let tracker = AsyncTracker::new();
    tracker.set_upstream(|| true);
    tracker.start("a");
    tracker.start("a");
    tracker.start("b");
    tracker.finished(&"c");
    tracker.finished(&"a");
    assert!(!tracker.has_synced());
    assert_eq!(format!("{tracker:?}"), "AsyncTracker(1 pending)");
    tracker.finished(&"b");
    assert!(tracker.has_synced());
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_tracker_goes_on_with_the_last_finish() {
    for (tracker, upstream) in both() {
        upstream.store(true, Ordering::SeqCst);
        tracker.start();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let tracker = tracker.clone();
                tokio::spawn(async move { tracker.synced().await })
            })
            .collect();
        tokio::time::sleep(seconds(5)).await;
        assert!(waiting.iter().all(|task| !task.is_finished()));
        let began = Instant::now();
        tracker.finished();
        for task in waiting {
            task.await.expect("no panic");
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_tracker_learns_that_upstream_has_synced() {
    for (tracker, upstream) in both() {
        let waiting = tracker.clone();
        let task = tokio::spawn(async move { waiting.synced().await });
        tokio::time::sleep(seconds(5)).await;
        assert!(!task.is_finished());
        let began = Instant::now();
        upstream.store(true, Ordering::SeqCst);
        task.await.expect("no panic");
        assert!(began.elapsed() <= SYNCED_POLL, "{:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_finish_is_missed_between_threads() {
    for round in 0..300 {
        for (tracker, upstream) in both() {
            upstream.store(true, Ordering::SeqCst);
            tracker.start();
            let waiting = tracker.clone();
            let task = tokio::spawn(async move { waiting.synced().await });
            let worker = thread::spawn(move || tracker.finished());
            timeout(seconds(20), task).await.unwrap_or_else(|_| panic!("round {round}")).expect("no panic");
            worker.join().expect("no panic");
        }
    }
}

/// A value whose evaluations say that they have begun, and end when they are told to. Each gives its number.
struct Stepped {
    lazy: Arc<Lazy<usize, Infallible>>,
    begun: mpsc::Receiver<usize>,
    ends: Vec<mpsc::Sender<()>>,
    count: Arc<AtomicUsize>,
}

impl Stepped {
    fn new() -> Self {
        let (begin, begun) = mpsc::channel();
        let (ends, waits): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel()).unzip();
        let waits: Vec<_> = waits.into_iter().map(Mutex::new).collect();
        let count = Arc::new(AtomicUsize::new(0));
        let evaluations = count.clone();
        let lazy = Arc::new(Lazy::new(move || {
            let number = evaluations.fetch_add(1, Ordering::SeqCst);
            begin.send(number).expect("the test listens");
            let wait = waits[number].lock().expect("not poisoned");
            wait.recv_timeout(seconds(20)).expect("the test lets it end");
            Ok(number)
        }));
        Self { lazy, begun, ends, count }
    }

    /// Asks for the value on a thread of its own.
    fn get(&self) -> JoinHandle<usize> {
        let lazy = self.lazy.clone();
        thread::spawn(move || *lazy.get().expect("no error"))
    }

    fn wait_until_it_begins(&self, number: usize) {
        assert_eq!(self.begun.recv_timeout(seconds(20)), Ok(number));
    }

    fn end(&self, number: usize) {
        self.ends[number].send(()).expect("it waits");
    }
}

fn value(get: JoinHandle<usize>) -> usize {
    get.join().expect("no panic")
}

#[test]
fn what_was_notified_before_a_get_is_in_what_it_returns() {
    let reality = Arc::new(AtomicUsize::new(0));
    let seen = reality.clone();
    let lazy = Arc::new(Lazy::new(move || Ok::<_, Infallible>(seen.load(Ordering::SeqCst))));
    let threads: Vec<_> = (0..10)
        .map(|_| {
            let (lazy, reality) = (lazy.clone(), reality.clone());
            thread::spawn(move || {
                for _ in 0..500 {
                    let set = reality.fetch_add(1, Ordering::SeqCst) + 1;
                    lazy.notify();
                    let got = *lazy.get().expect("no error");
                    assert!(got >= set, "time went backwards: {got} after {set}");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(lazy.get().map(|value| *value), Ok(5000));
}

#[test]
fn a_slow_evaluation_holds_up_nobody_who_asks_after_the_next_notification() {
    without_deadlock(|| {
        // None of the four ends before all have begun.
        let ((begin, begun), barrier) = (mpsc::channel(), Barrier::new(4));
        let lazy = Arc::new(Lazy::new(move || {
            begin.send(()).expect("the test listens");
            barrier.wait();
            Ok::<_, Infallible>(())
        }));
        let get = |_| {
            lazy.notify();
            let lazy = lazy.clone();
            let get = thread::spawn(move || lazy.get().expect("no error"));
            begun.recv().expect("an evaluation of its own");
            get
        };
        let gets: Vec<_> = (0..4).map(get).collect();
        for get in gets {
            get.join().expect("no panic");
        }
    });
}

#[test]
fn a_stale_evaluation_that_ends_last_is_not_kept() {
    let stepped = Stepped::new();
    let stale = stepped.get();
    stepped.wait_until_it_begins(0);
    stepped.lazy.notify();
    let fresh = stepped.get();
    stepped.wait_until_it_begins(1);
    stepped.end(1);
    assert_eq!(value(fresh), 1);
    stepped.end(0);
    assert_eq!(value(stale), 0, "it asked before the notification");
    assert_eq!(value(stepped.get()), 1);
    assert_eq!(stepped.count.load(Ordering::SeqCst), 2, "nothing had to be made again");
}

#[test]
fn a_stale_evaluation_that_ends_first_is_replaced() {
    let stepped = Stepped::new();
    let stale = stepped.get();
    stepped.wait_until_it_begins(0);
    stepped.lazy.notify();
    let fresh = stepped.get();
    stepped.wait_until_it_begins(1);
    stepped.end(0);
    assert_eq!(value(stale), 0);
    stepped.end(1);
    assert_eq!((value(fresh), value(stepped.get())), (1, 1));
    assert_eq!(stepped.count.load(Ordering::SeqCst), 2);
}

#[test]
fn many_who_ask_at_once_get_one_evaluation() {
    let stepped = Stepped::new();
    stepped.lazy.notify();
    let first = stepped.get();
    stepped.wait_until_it_begins(0);
    let others = [stepped.get(), stepped.get(), stepped.get()];
    // Time to get to where they wait. If it is too short they come later, which must not matter.
    thread::sleep(Duration::from_millis(20));
    assert!(others.iter().all(|other| !other.is_finished()));
    stepped.end(0);
    assert_eq!(value(first), 0);
    assert_eq!(others.map(value), [0; 3]);
    assert_eq!(stepped.count.load(Ordering::SeqCst), 1);
    assert_eq!(format!("{:?}", stepped.lazy), "Lazy(made)");
    stepped.lazy.notify();
    assert_eq!(format!("{:?}", stepped.lazy), "Lazy(not made)");
}

#[test]
fn an_error_or_a_panic_is_not_kept() {
    let calls = AtomicUsize::new(0);
    let lazy = Lazy::new(move || match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Err("deliberate"),
        1 => panic!("deliberate"),
        number => Ok(number),
    });
    assert_eq!(lazy.get(), Err("deliberate"));
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lazy.get())).expect_err("the panic");
    assert_eq!(lazy.get(), Ok(Arc::new(2)));
    assert_eq!(lazy.get(), Ok(Arc::new(2)), "and now it is kept");
}
