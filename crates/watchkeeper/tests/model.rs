//! Tries out in which orders the threads around a queue can run: `cargo xtask model`.
//!
//! A producer changes a truth at random and tells the queue, another thread resyncs, a consumer applies what comes
//! out to a store, which a `DeltaFifo` knows as its known objects, and now and then puts something back. Whatever the
//! order, in the end the store is the truth, and on the way no object is overwritten with an older state or comes
//! back from the dead.
//!
//! For work queues: producers add, workers get and are done, somebody shuts down. Each addition is followed by work that began
//! after it, no item is with two, and nobody waits for ever. Workers wait on threads (the model checker's condition variable),
//! in tasks (tokio's `Notify`, whose calls are single steps here), or give up waiting.

use std::collections::{BTreeMap, BTreeSet};

use shuttle::rand::{Rng as _, thread_rng};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread;
use watchkeeper::queue::{AtomicFifo, Closed, Delta, DeltaFifo, DeltaFifoConsumer, Entry};
use watchkeeper::workqueue::{Item as WorkItem, ShutDown, WorkQueue};
use watchkeeper::{KnownObjects, ResourceVersion};

const RANDOM: usize = 6_000;
const PCT: usize = 3_000;
const STEPS: usize = 6;
const KEYS: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item {
    key: u8,
    version: u32,
}

fn check(model: fn()) {
    shuttle::check_random(model, RANDOM);
    shuttle::check_pct(model, PCT, 3);
    shuttle::check_pct(model, PCT, 6);
}

/// What the consumer has applied.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Stored>>);

#[derive(Default)]
struct Stored {
    items: BTreeMap<u8, Item>,
    /// The newest version of each key that was ever seen, deleted ones included.
    seen: BTreeMap<u8, u32>,
}

impl Store {
    fn apply(&self, key: u8, delta: &Delta<Item>) {
        let stored = &mut *self.0.lock().unwrap();
        let seen = stored.seen.entry(key).or_default();
        match delta {
            Delta::Deleted { object, .. } => {
                *seen = (*seen).max(object.map_or(0, |object| object.version));
                stored.items.remove(&key);
            }
            Delta::Sync(item) => {
                assert!(item.version >= *seen, "a resync says something old: {item:?}, seen {seen}");
                assert_eq!(stored.items.get(&key), Some(item), "a resync changes something");
            }
            Delta::Added(item) | Delta::Updated(item) | Delta::Replaced(item) => {
                assert!(item.version >= *seen, "overwritten with something old: {item:?}, seen {seen}");
                *seen = item.version;
                stored.items.insert(key, *item);
            }
        }
    }

    fn replace(&self, items: &[Item]) {
        let stored = &mut *self.0.lock().unwrap();
        for item in items {
            let seen = stored.seen.entry(item.key).or_default();
            assert!(item.version >= *seen, "overwritten with something old: {item:?}, seen {seen}");
            *seen = item.version;
        }
        stored.items = items.iter().map(|item| (item.key, *item)).collect();
    }

    fn items(&self) -> Vec<Item> {
        self.0.lock().unwrap().items.values().copied().collect()
    }
}

impl KnownObjects<Item, u8> for Store {
    fn list_keys(&self) -> Vec<u8> {
        self.0.lock().unwrap().items.keys().copied().collect()
    }

    fn get_by_key(&self, key: &u8) -> Option<Item> {
        self.0.lock().unwrap().items.get(key).copied()
    }
}

/// What a producer tells a queue.
enum Change {
    Added(Item),
    Updated(Item),
    Deleted(Item),
    Listed(Vec<Item>),
}

/// Changes the truth at random, step by step, and tells each change. Returns the truth.
fn produce(tell: impl Fn(Change)) -> Vec<Item> {
    let mut truth = BTreeMap::new();
    for version in 1..=STEPS as u32 {
        let key = thread_rng().gen_range(0..KEYS);
        let item = Item { key, version };
        match (thread_rng().gen_range(0..3), truth.contains_key(&key)) {
            (0 | 1, false) => {
                truth.insert(key, item);
                tell(Change::Added(item));
            }
            (0, true) => {
                truth.insert(key, item);
                tell(Change::Updated(item));
            }
            (1, true) => {
                truth.remove(&key);
                tell(Change::Deleted(item));
            }
            // Nobody was told of what happens here, until the list.
            (_, known) => {
                if known {
                    truth.remove(&key);
                } else {
                    truth.insert(key, item);
                }
                tell(Change::Listed(truth.values().copied().collect()));
            }
        }
    }
    truth.into_values().collect()
}

fn tell_delta_fifo(queue: &DeltaFifo<Item, u8>, change: Change) {
    match change {
        Change::Added(item) => queue.add(item),
        Change::Updated(item) => queue.update(item),
        Change::Deleted(item) => queue.delete(item),
        Change::Listed(items) => queue.replace(items, ResourceVersion::unset()),
    }
    .unwrap();
}

/// Processes until the queue is closed. Puts back what it got, now and then.
fn consume(mut consumer: DeltaFifoConsumer<Item, u8>, mut requeues: usize, process: impl Fn(u8, &Delta<Item>)) {
    loop {
        match consumer.try_pop() {
            Err(Closed) => return,
            Ok(None) => thread::yield_now(),
            Ok(Some(deltas)) if requeues > 0 && thread_rng().gen_bool(0.3) => {
                requeues -= 1;
                thread::yield_now();
                deltas.requeue();
            }
            Ok(Some(deltas)) => {
                for delta in &*deltas {
                    process(*deltas.key(), delta);
                }
            }
        }
    }
}

#[test]
fn a_delta_fifo_loses_no_deletion_and_brings_nothing_back() {
    check(|| {
        let store = Store::default();
        let (queue, consumer) =
            DeltaFifo::builder(|item: &Item| Ok(item.key)).known_objects(store.clone()).emit_replaced(true).build();
        let (producer, resyncing, applied) = (queue.clone(), queue.clone(), store.clone());
        let producer = thread::spawn(move || produce(|change| tell_delta_fifo(&producer, change)));
        let resyncing = thread::spawn(move || (0..2).for_each(|_| resyncing.resync()));
        let consumer = thread::spawn(move || consume(consumer, 2, |key, delta| applied.apply(key, delta)));
        let truth = producer.join().unwrap();
        resyncing.join().unwrap();
        queue.close();
        consumer.join().unwrap();
        assert_eq!(store.items(), truth);
    });
}

#[test]
fn an_atomic_fifo_ends_up_with_the_truth() {
    check(|| {
        let store = Store::default();
        let (queue, mut consumer) = AtomicFifo::builder(|item: &Item| Ok(item.key)).build();
        let (producer, resyncing, applied) = (queue.clone(), queue.clone(), store.clone());
        let producer = thread::spawn(move || {
            produce(|change| {
                match change {
                    Change::Added(item) => producer.add(item),
                    Change::Updated(item) => producer.update(item),
                    Change::Deleted(item) => producer.delete(item),
                    Change::Listed(items) => producer.replace(items, ResourceVersion::unset()),
                }
                .unwrap();
            })
        });
        let resyncing = thread::spawn(move || (0..2).for_each(|_| resyncing.resync()));
        let consumer = thread::spawn(move || {
            let mut requeues = 2;
            loop {
                let batch = if thread_rng().gen_bool(0.5) { consumer.try_pop() } else { consumer.try_pop_batch() };
                match batch {
                    Err(Closed) => return,
                    Ok(None) => thread::yield_now(),
                    Ok(Some(batch)) if requeues > 0 && thread_rng().gen_bool(0.3) => {
                        requeues -= 1;
                        batch.requeue();
                    }
                    Ok(Some(batch)) => {
                        for entry in &*batch {
                            match entry {
                                Entry::Object { key, delta } => applied.apply(*key, delta),
                                Entry::ReplacedAll(all) => applied.replace(&all.items),
                                Entry::SyncAll | Entry::Bookmark(_) => {}
                            }
                        }
                    }
                }
            }
        });
        let truth = producer.join().unwrap();
        resyncing.join().unwrap();
        queue.close();
        consumer.join().unwrap();
        assert_eq!(store.items(), truth);
    });
}

#[test]
fn a_delta_fifo_is_synced_only_after_each_key_of_the_first_list_was_processed() {
    check(|| {
        let store = Store::default();
        store.apply(2, &Delta::Added(Item { key: 2, version: 1 }));
        let (queue, consumer) =
            DeltaFifo::builder(|item: &Item| Ok(item.key)).known_objects(store.clone()).emit_replaced(true).build();
        let processed = Arc::new(Mutex::new(BTreeSet::new()));
        let (resyncing, updating, watching) = (queue.clone(), queue.clone(), queue.clone());
        let resyncing = thread::spawn(move || resyncing.resync());
        let applied = processed.clone();
        let consumer = thread::spawn(move || {
            consume(consumer, 3, |key, delta| {
                if !matches!(delta, Delta::Sync(_)) {
                    applied.lock().unwrap().insert(key);
                }
                store.apply(key, delta);
            });
        });
        let watcher = thread::spawn(move || {
            for _ in 0..4 {
                if watching.has_synced() {
                    assert_eq!(*processed.lock().unwrap(), BTreeSet::from([0, 1, 2]));
                }
                thread::yield_now();
            }
        });
        queue
            .replace(vec![Item { key: 0, version: 2 }, Item { key: 1, version: 3 }], ResourceVersion::unset())
            .unwrap();
        updating.update(Item { key: 0, version: 4 }).unwrap();
        resyncing.join().unwrap();
        watcher.join().unwrap();
        queue.close();
        consumer.join().unwrap();
        assert!(queue.has_synced());
    });
}

#[test]
fn closing_loses_nothing_that_was_added_before() {
    check(|| {
        let (queue, consumer) = DeltaFifo::builder(|item: &Item| Ok(item.key)).build();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let processed = seen.clone();
        let consumer = thread::spawn(move || {
            consume(consumer, 2, |_, delta| processed.lock().unwrap().extend(delta.object().copied()));
        });
        let producers: Vec<_> = (0..2)
            .map(|key| {
                let queue = queue.clone();
                thread::spawn(move || {
                    for version in 1..=2 {
                        queue.add(Item { key, version }).unwrap();
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join().unwrap();
        }
        queue.close();
        consumer.join().unwrap();
        let seen = seen.lock().unwrap();
        for key in 0..2 {
            let versions: Vec<u32> = seen.iter().filter(|item| item.key == key).map(|item| item.version).collect();
            assert_eq!(versions, [1, 2], "of key {key}");
        }
    });
}

#[test]
fn a_consumer_that_goes_away_leaves_nothing_behind() {
    check(|| {
        let (queue, mut consumer) = DeltaFifo::builder(|item: &Item| Ok(item.key)).build();
        let producer = queue.clone();
        let producer = thread::spawn(move || {
            for version in 1..=3 {
                producer.add(Item { key: 0, version }).unwrap();
            }
        });
        let consumer = thread::spawn(move || drop(consumer.try_pop().unwrap()));
        producer.join().unwrap();
        consumer.join().unwrap();
        assert!(queue.is_empty());
    });
}

/// How often each key was added, how often it had been when the last work on it began, and who is at work.
#[derive(Default)]
struct Work {
    added: BTreeMap<u8, usize>,
    seen: BTreeMap<u8, usize>,
    held: BTreeSet<u8>,
}

type Works = Arc<Mutex<Work>>;

/// Counts before it adds: what is added is seen.
fn add(queue: &WorkQueue<u8>, work: &Works, key: u8) {
    *work.lock().unwrap().added.entry(key).or_default() += 1;
    queue.add(key);
}

fn process(work: &Works, item: WorkItem<u8>) {
    {
        let work = &mut *work.lock().unwrap();
        assert!(work.held.insert(*item), "two work on {}", *item);
        work.seen.insert(*item, work.added[&*item]);
    }
    work.lock().unwrap().held.remove(&item);
    item.done();
}

/// How a worker waits.
#[derive(Clone, Copy)]
enum Wait {
    OnAThread,
    InATask,
    /// Looks, waits a little, gives up, and waits anew.
    GivesUp,
}

fn get(queue: &WorkQueue<u8>, wait: Wait) -> Result<WorkItem<u8>, ShutDown> {
    match wait {
        Wait::OnAThread => queue.get_blocking(),
        Wait::InATask => shuttle::future::block_on(queue.get()),
        Wait::GivesUp => {
            for _ in 0..2 {
                let mut get = Box::pin(queue.get());
                let ready = shuttle::future::block_on(std::future::poll_fn(|context| {
                    std::task::Poll::Ready(get.as_mut().poll(context))
                }));
                // Others run here. `yield_now` would also wake this task, and hide a wake-up that is lost.
                queue.len();
                if let std::task::Poll::Ready(item) = ready {
                    return item;
                }
            }
            shuttle::future::block_on(queue.get())
        }
    }
}

fn works(waits: [Wait; 2], drain: bool) {
    let (queue, work) = (WorkQueue::new(), Works::default());
    let workers = waits.map(|wait| {
        let (queue, work) = (queue.clone(), work.clone());
        thread::spawn(move || {
            while let Ok(item) = get(&queue, wait) {
                process(&work, item);
            }
        })
    });
    let (adding, counting) = (queue.clone(), work.clone());
    let producer = thread::spawn(move || (0..3).for_each(|_| add(&adding, &counting, thread_rng().gen_range(0..KEYS))));
    add(&queue, &work, 0);
    producer.join().unwrap();
    if drain {
        shuttle::future::block_on(queue.shut_down_with_drain());
        assert!(work.lock().unwrap().held.is_empty(), "drained, and somebody is at work");
    } else {
        queue.shut_down();
    }
    // One who waits for ever is a deadlock, which the checker reports.
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let work = work.lock().unwrap();
    assert_eq!(work.added, work.seen, "the last addition of each is followed by work");
    assert!(queue.try_get().is_err());
}

#[test]
fn each_addition_is_followed_by_work_of_one_thread_and_nobody_waits_for_ever() {
    check(|| works([Wait::OnAThread, Wait::OnAThread], false));
}

#[test]
fn tasks_and_threads_that_wait_for_work_miss_nothing() {
    check(|| works([Wait::OnAThread, Wait::InATask], false));
    check(|| works([Wait::InATask, Wait::InATask], true));
}

#[test]
fn a_worker_that_gives_up_waiting_takes_no_wake_up_along() {
    check(|| works([Wait::GivesUp, Wait::InATask], false));
    check(|| works([Wait::GivesUp, Wait::GivesUp], true));
}

#[test]
fn what_comes_while_workers_wait_is_served_without_a_shutdown() {
    // Nothing but the additions can wake them: a wake-up that is lost is a deadlock.
    check(|| {
        let queue = WorkQueue::new();
        let kinds = [Wait::OnAThread, Wait::InATask, Wait::GivesUp];
        let wait = || kinds[thread_rng().gen_range(0..kinds.len())];
        let workers = [wait(), wait()].map(|wait| {
            let queue = queue.clone();
            thread::spawn(move || get(&queue, wait).map(|item| *item))
        });
        let adding = queue.clone();
        let producer = thread::spawn(move || adding.add(1));
        queue.add(2);
        producer.join().unwrap();
        let mut got = workers.map(|worker| worker.join().unwrap().unwrap());
        got.sort();
        assert_eq!(got, [1, 2]);
    });
}
