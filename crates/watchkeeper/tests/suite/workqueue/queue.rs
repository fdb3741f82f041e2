//! The queue itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use watchkeeper::workqueue::{ShutDown, WorkQueue};

use super::{SECOND, after, take, take_all};

/// Who holds what, and how often each item was worked on.
#[derive(Default)]
struct Work {
    held: BTreeSet<u32>,
    runs: BTreeMap<u32, usize>,
}

/// Works until the queue is over. Each item takes a few milliseconds.
async fn worker(queue: WorkQueue<u32>, work: Arc<Mutex<Work>>, again_until: usize) {
    while let Ok(item) = queue.get().await {
        let runs = {
            let mut work = work.lock().unwrap();
            assert!(work.held.insert(*item), "two work on {}", *item);
            let runs = work.runs.entry(*item).or_default();
            *runs += 1;
            *runs
        };
        if runs < again_until {
            queue.add(*item);
        }
        tokio::time::sleep(Duration::from_millis(3)).await;
        work.lock().unwrap().held.remove(&item);
    }
}

/// Fifty who add the same item fifty times each, and ten who work on them.
async fn crowd(drain: bool) -> Work {
    let (queue, work) = (WorkQueue::new(), Arc::new(Mutex::new(Work::default())));
    let mut workers = JoinSet::new();
    for _ in 0..10 {
        workers.spawn(worker(queue.clone(), work.clone(), 0));
    }
    let mut producers = JoinSet::new();
    for producer in 0..50 {
        let queue = queue.clone();
        producers.spawn(async move {
            for _ in 0..50 {
                queue.add(producer);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
    producers.join_all().await;
    if drain {
        queue.shut_down_with_drain().await;
    } else {
        queue.shut_down();
    }
    queue.add(1000);
    workers.join_all().await;
    assert_eq!(queue.len(), 0);
    drop(queue);
    Arc::into_inner(work).expect("nobody else has it").into_inner().unwrap()
}

#[tokio::test(start_paused = true)]
async fn everything_is_worked_on_by_one_at_a_time_and_nothing_after_a_shutdown() {
    let work = crowd(false).await;
    assert!(work.runs.keys().copied().eq(0..50), "{:?}", work.runs);
    assert!(work.runs.values().all(|runs| (2..50).contains(runs)), "some additions are merged: {:?}", work.runs);
}

#[tokio::test(start_paused = true)]
async fn everything_is_worked_on_by_one_at_a_time_and_nothing_after_a_drain() {
    assert!(crowd(true).await.runs.keys().copied().eq(0..50));
}

#[tokio::test(start_paused = true)]
async fn what_is_added_while_somebody_works_on_it_is_never_lost() {
    let (queue, work) = (WorkQueue::new(), Arc::new(Mutex::new(Work::default())));
    (0..50).for_each(|item| queue.add(item));
    let mut workers = JoinSet::new();
    for _ in 0..10 {
        workers.spawn(worker(queue.clone(), work.clone(), 3));
    }
    // Three runs of fifty items by ten workers take 45 ms.
    tokio::time::sleep(SECOND).await;
    queue.shut_down_with_drain().await;
    workers.join_all().await;
    let runs: Vec<usize> = work.lock().unwrap().runs.values().copied().collect();
    assert_eq!(runs, [3; 50]);
}

#[test]
fn what_is_added_twice_counts_once() {
    let queue = WorkQueue::new();
    queue.add("foo");
    assert_eq!(queue.len(), 1);
    queue.add("bar");
    assert_eq!(queue.len(), 2);
    queue.add("foo");
    assert_eq!(queue.len(), 2);
}

#[test]
fn what_was_added_while_somebody_worked_on_it_comes_again_when_that_is_done_and_then_no_more() {
    let queue = WorkQueue::new();
    queue.add("foo");
    let item = take(&queue);
    queue.add("foo");
    item.done();
    let item = take(&queue);
    assert_eq!(*item, "foo");
    item.done();
    assert_eq!(queue.len(), 0);
    assert!(queue.try_get().expect("not shut down").is_none());
}

#[test]
fn two_additions_before_the_work_begins_are_one_piece_of_work() {
    let queue = WorkQueue::new();
    queue.add("bar");
    queue.add("bar");
    assert_eq!(take_all(&queue), ["bar"]);
}

#[tokio::test(start_paused = true)]
async fn two_additions_during_the_work_are_one_more_piece_of_work_which_waits_for_its_end() {
    let queue = WorkQueue::new();
    queue.add("bar");
    let item = take(&queue);
    queue.add("bar");
    queue.add("bar");
    assert_eq!(queue.len(), 0);
    let other = queue.clone();
    let second = tokio::spawn(async move { other.get().await.map(|item| *item) });
    tokio::time::sleep(SECOND).await;
    assert!(!second.is_finished(), "the first one is still at it");
    item.done();
    assert_eq!(second.await.unwrap(), Ok("bar"));
    assert_eq!(queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_was_shut_down_gives_out_what_it_has_and_then_says_that_it_is_over() {
    let queue = WorkQueue::new();
    queue.add(1);
    queue.add(2);
    queue.shut_down();
    queue.add(3);
    queue.add_with(4, after(SECOND));
    assert!(queue.shutting_down());
    assert_eq!((*queue.get().await.unwrap(), *queue.get().await.unwrap()), (1, 2));
    assert_eq!(queue.get().await.map(|item| *item), Err(ShutDown));
    assert_eq!(queue.try_get().map(|item| item.is_some()), Err(ShutDown));
    queue.shut_down();
    assert!(queue.get().await.is_err(), "it stays so");
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_are_told_of_the_shutdown() {
    let queue = WorkQueue::<u32>::new();
    let mut waiting = JoinSet::new();
    for _ in 0..10 {
        let queue = queue.clone();
        waiting.spawn(async move { queue.get().await.is_err() });
    }
    tokio::time::sleep(SECOND).await;
    queue.shut_down();
    assert_eq!(waiting.join_all().await, [true; 10]);
}

#[test]
fn what_was_worked_on_is_not_kept() {
    let queue = WorkQueue::new();
    let item = Arc::new("a large one");
    let weak = Arc::downgrade(&item);
    queue.add(item.clone());
    queue.add(item);
    take(&queue).done();
    assert!(weak.upgrade().is_none());
}

/// An item that looks at its queue when it is dropped.
#[derive(Clone)]
struct Nosy(u32, WorkQueueOf);

type WorkQueueOf = Arc<Mutex<Option<WorkQueue<Nosy>>>>;

impl PartialEq for Nosy {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Nosy {}

impl std::hash::Hash for Nosy {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Drop for Nosy {
    fn drop(&mut self) {
        if let Some(queue) = self.1.lock().unwrap().clone() {
            queue.len();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_item_is_dropped_while_the_queue_is_locked() {
    let home = WorkQueueOf::default();
    let queue = WorkQueue::new();
    *home.lock().unwrap() = Some(queue.clone());
    // It would hang.
    for item in [1, 1, 2] {
        queue.add(Nosy(item, home.clone()));
    }
    take(&queue).done();
    queue.add_with(Nosy(3, home.clone()), after(SECOND));
    queue.add_with(Nosy(3, home.clone()), after(SECOND));
    queue.shut_down();
    queue.add(Nosy(4, home.clone()));
    queue.add_with(Nosy(4, home.clone()), after(SECOND));
    assert_eq!(take_all(&queue).len(), 1);
    *home.lock().unwrap() = None;
}

/// An item whose clone panics if it is told to.
#[derive(PartialEq, Eq, Hash)]
struct Brittle(bool);

impl Clone for Brittle {
    fn clone(&self) -> Self {
        assert!(self.0, "this one cannot be cloned");
        Self(self.0)
    }
}

#[test]
fn an_item_whose_clone_panics_locks_nothing() {
    let queue = WorkQueue::new();
    queue.add(Brittle(false));
    queue.add(Brittle(true));
    let taking = queue.clone();
    let panicked = std::thread::spawn(move || taking.try_get().is_ok()).join();
    assert!(panicked.is_err());
    assert_eq!(queue.len(), 1);
    queue.add(Brittle(false));
    assert_eq!(queue.len(), 2, "it can be added again");
    assert!(take(&queue).0, "and the others are served");
}

/// An item that cannot be compared if it is told so.
#[derive(Clone)]
struct Incomparable(u32, Arc<AtomicBool>);

impl PartialEq for Incomparable {
    fn eq(&self, other: &Self) -> bool {
        assert!(!self.1.load(Relaxed), "this one cannot be compared");
        self.0 == other.0
    }
}

impl Eq for Incomparable {}

impl std::hash::Hash for Incomparable {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn an_item_whose_comparison_panics_keeps_no_other_from_being_done() {
    let queue = WorkQueue::new();
    let (yes, no) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    queue.add(Incomparable(1, no.clone()));
    queue.add(Incomparable(2, yes.clone()));
    let (one, two) = (take(&queue), take(&queue));
    yes.store(true, Relaxed);
    let adding = queue.clone();
    let added = yes.clone();
    let _may_panic = std::thread::spawn(move || adding.add(Incomparable(2, added))).join();
    // Two panics at once would end the process.
    let panicked = std::thread::spawn(move || {
        let _one = one;
        panic!("work has failed");
    });
    assert!(panicked.join().is_err());
    yes.store(false, Relaxed);
    two.done();
    queue.add(Incomparable(1, no));
    assert_eq!(take(&queue).0, 1, "it was done, and comes again");
}

#[test]
fn queues_and_items_can_go_to_other_threads() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let queue = WorkQueue::new();
    queue.add(1);
    shared(&queue);
    shared(&take(&queue));
    assert!(format!("{queue:?}").contains("len: 0"));
}
