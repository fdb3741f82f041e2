//! However the work ends, no key is lost and none is locked; and whoever stops waiting takes no wake-up along.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::advance;
use tokio_test::task::spawn;
use tokio_test::{assert_pending, assert_ready};
use watchkeeper::workqueue::{DelayingQueue, WorkQueue};

use super::{SECOND, take, take_all};

/// Nobody holds the item: added, it comes.
fn assert_free(queue: &WorkQueue<&'static str>) {
    queue.add("foo");
    assert_eq!(take_all(queue), ["foo"]);
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_is_done() {
    let queue = WorkQueue::new();
    queue.add("foo");
    let working = queue.clone();
    let panicked = tokio::spawn(async move {
        let item = working.get().await.expect("an item");
        working.add("foo");
        panic!("work on {} has failed", *item);
    });
    assert!(panicked.await.expect_err("a panic").is_panic());
    assert_eq!(take_all(&queue), ["foo"], "what was added meanwhile comes");
    assert_free(&queue);
}

#[tokio::test(start_paused = true)]
async fn work_that_returns_early_is_done() {
    async fn work(queue: &WorkQueue<&'static str>) -> Result<(), &'static str> {
        let item = queue.get().await.map_err(|_| "over")?;
        Err(*item)?;
        item.done();
        Ok(())
    }
    let queue = WorkQueue::new();
    queue.add("foo");
    assert_eq!(work(&queue).await, Err("foo"));
    assert_free(&queue);
}

#[tokio::test(start_paused = true)]
async fn work_whose_task_is_cancelled_is_done() {
    let queue = WorkQueue::new();
    queue.add("foo");
    let working = queue.clone();
    let task = tokio::spawn(async move {
        let _item = working.get().await;
        std::future::pending::<()>().await;
    });
    tokio::time::sleep(SECOND).await;
    queue.add("foo");
    assert_eq!(queue.len(), 0, "it is being worked on");
    task.abort();
    assert!(task.await.expect_err("cancelled").is_cancelled());
    assert_eq!(take_all(&queue), ["foo"]);
    assert_free(&queue);
}

#[tokio::test(start_paused = true)]
async fn who_was_woken_and_stops_waiting_passes_it_on() {
    let queue = WorkQueue::new();
    let (mut one, mut other) = (spawn(queue.get()), spawn(queue.get()));
    assert_pending!(one.poll());
    assert_pending!(other.poll());
    queue.add("foo");
    assert!(one.is_woken() && !other.is_woken(), "one item wakes one");
    drop(one);
    assert!(other.is_woken());
    assert_eq!(*assert_ready!(other.poll()).expect("an item"), "foo");
}

#[tokio::test(start_paused = true)]
async fn who_was_woken_by_the_end_of_other_work_and_stops_waiting_passes_it_on() {
    let queue = WorkQueue::new();
    queue.add("foo");
    let item = take(&queue);
    queue.add("foo");
    let (mut one, mut other) = (spawn(queue.get()), spawn(queue.get()));
    assert_pending!(one.poll());
    assert_pending!(other.poll());
    item.done();
    assert!(one.is_woken() && !other.is_woken());
    drop(one);
    assert!(other.is_woken());
    assert_ready!(other.poll()).expect("an item").done();
}

#[tokio::test(start_paused = true)]
async fn who_keeps_the_time_and_stops_waiting_leaves_others_who_do() {
    let queue = DelayingQueue::new();
    queue.add_after("far", 100 * SECOND);
    let (mut one, mut other) = (spawn(queue.get()), spawn(queue.get()));
    assert_pending!(one.poll());
    assert_pending!(other.poll());
    queue.add_after("near", 10 * SECOND);
    assert!(one.is_woken() && other.is_woken(), "all have to look at the clock anew");
    assert_pending!(other.poll());
    // The one never did.
    drop(one);
    advance(10 * SECOND).await;
    assert!(other.is_woken());
    assert_eq!(*assert_ready!(other.poll()).expect("an item"), "near");
}

#[tokio::test(start_paused = true)]
async fn who_was_woken_by_the_clock_and_stops_waiting_leaves_others_who_were() {
    let queue = DelayingQueue::new();
    queue.add_after("foo", 10 * SECOND);
    let (mut one, mut other) = (spawn(queue.get()), spawn(queue.get()));
    assert_pending!(one.poll());
    assert_pending!(other.poll());
    advance(10 * SECOND).await;
    assert!(one.is_woken() && other.is_woken());
    drop(one);
    assert_eq!(*assert_ready!(other.poll()).expect("an item"), "foo");
}

#[tokio::test(start_paused = true)]
async fn several_items_that_are_due_at_once_go_to_as_many() {
    let queue = DelayingQueue::new();
    (0..3).for_each(|item| queue.add_after(item, SECOND));
    let mut waiting = [(); 3].map(|()| spawn(queue.get()));
    waiting.iter_mut().for_each(|waiting| assert!(waiting.poll().is_pending()));
    advance(SECOND).await;
    // Somebody else notices first.
    assert_eq!(queue.len(), 3);
    for waiting in &mut waiting {
        assert!(waiting.is_woken());
        assert_ready!(waiting.poll()).expect("an item").done();
    }
}

#[tokio::test(start_paused = true)]
async fn who_takes_an_urgent_item_leaves_one_that_has_become_due_to_another() {
    let queue = DelayingQueue::new();
    queue.add_after("due", SECOND);
    let (mut one, mut other) = (spawn(queue.get()), spawn(queue.get()));
    assert_pending!(one.poll());
    assert_pending!(other.poll());
    queue.add_with("urgent", super::priority(1));
    advance(SECOND).await;
    assert_eq!(*assert_ready!(one.poll()).expect("an item"), "urgent");
    assert!(other.is_woken());
    assert_eq!(*assert_ready!(other.poll()).expect("an item"), "due");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_always_finds_something_lets_others_run_and_can_be_dropped_there() {
    let queue = WorkQueue::new();
    (0..10_000).for_each(|item| queue.add(item));
    let mut got = 0;
    {
        let mut busy = spawn(async {
            loop {
                queue.get().await.expect("an item").done();
                got += 1;
            }
        });
        tokio::task::yield_now().await;
        assert_pending!(busy.poll());
    }
    assert!((1..10_000).contains(&got), "{got} without a pause");
    assert_eq!(queue.len(), 10_000 - got, "none is lost where it was dropped");
}

#[tokio::test(start_paused = true)]
async fn workers_that_are_cancelled_at_random_lose_no_key_and_lock_none() {
    for seed in 0..50 {
        let mut random = fastrand::Rng::with_seed(seed);
        let queue = DelayingQueue::new();
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let mut workers = JoinSet::new();
        for item in 0..200_u32 {
            match random.u8(..3) {
                0 => queue.add(item),
                _ => queue.add_after(item, Duration::from_millis(random.u64(..50))),
            }
            let (queue, seen) = (queue.clone(), seen.clone());
            let life = Duration::from_millis(random.u64(..20));
            workers.spawn(tokio::time::timeout(life, async move {
                while let Ok(item) = queue.get().await {
                    // Marked with the item in hand: what was begun counts as work.
                    seen.lock().unwrap().insert(*item);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }));
            if random.u8(..4) == 0 {
                workers.abort_all();
            }
            tokio::time::sleep(Duration::from_millis(random.u64(..2))).await;
        }
        while workers.join_next().await.is_some() {}
        advance(SECOND).await;
        seen.lock().unwrap().extend(take_all(&queue));
        assert!(seen.lock().unwrap().iter().copied().eq(0..200), "seed {seed}");
        (0..200).for_each(|item| queue.add(item));
        assert_eq!(queue.len(), 200, "one is locked: seed {seed}");
    }
}
