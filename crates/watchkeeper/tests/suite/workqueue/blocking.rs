//! Workers on threads. The only tests with real time: threads know no other.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use watchkeeper::workqueue::{DelayingQueue, WorkQueue};

/// Long enough to say that something hangs.
const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(20);

#[test]
fn a_thread_gets_what_is_added_and_is_told_of_the_end() {
    let queue = WorkQueue::new();
    let (sender, receiver) = channel();
    let working = queue.clone();
    let worker = thread::spawn(move || {
        while let Ok(item) = working.get_blocking() {
            sender.send(*item).unwrap();
        }
    });
    for item in 0..3 {
        queue.add(item);
        assert_eq!(receiver.recv_timeout(PATIENCE), Ok(item));
        // Now it waits, or will.
        thread::sleep(Duration::from_millis(2));
    }
    queue.shut_down();
    assert!(receiver.recv_timeout(PATIENCE).is_err(), "the worker is gone");
    worker.join().unwrap();
}

#[test]
fn a_thread_keeps_the_time_without_a_runtime() {
    let (queue, start) = (DelayingQueue::new(), Instant::now());
    queue.add_after("later", 2 * SHORT);
    queue.add_after("soon", SHORT);
    assert_eq!(*queue.get_blocking().unwrap(), "soon");
    assert!(start.elapsed() >= SHORT);
    assert_eq!(*queue.get_blocking().unwrap(), "later");
    assert!(start.elapsed() >= 2 * SHORT);
}

#[test]
fn a_thread_that_waits_for_a_far_time_is_told_of_a_near_one() {
    let queue = DelayingQueue::new();
    queue.add_after("far", Duration::MAX);
    let (sender, receiver) = channel();
    let working = queue.clone();
    let worker = thread::spawn(move || sender.send(*working.get_blocking().unwrap()).unwrap());
    thread::sleep(SHORT);
    queue.add_after("near", SHORT);
    assert_eq!(receiver.recv_timeout(PATIENCE), Ok("near"));
    worker.join().unwrap();
}

#[test]
fn all_threads_that_wait_are_told_of_the_shutdown() {
    let queue = WorkQueue::<u32>::new();
    let workers = [(); 4].map(|()| {
        let queue = queue.clone();
        thread::spawn(move || queue.get_blocking().is_err())
    });
    thread::sleep(SHORT);
    queue.shut_down();
    assert_eq!(workers.map(|worker| worker.join().unwrap()), [true; 4]);
}

/// What was seen, and who holds what.
#[derive(Default)]
struct Work {
    held: BTreeSet<u32>,
    seen: BTreeSet<u32>,
}

fn begin(work: &Mutex<Work>, item: u32) {
    let mut work = work.lock().unwrap();
    assert!(work.held.insert(item), "two work on {item}");
    work.seen.insert(item);
}

#[test]
fn threads_and_tasks_share_the_work_and_neither_misses_a_wake_up() {
    const ITEMS: u32 = 3_000;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let (queue, work) = (DelayingQueue::new(), Arc::new(Mutex::new(Work::default())));
    let threads = [(); 3].map(|()| {
        let (queue, work) = (queue.clone(), work.clone());
        thread::spawn(move || {
            while let Ok(item) = queue.get_blocking() {
                begin(&work, *item);
                work.lock().unwrap().held.remove(&item);
            }
        })
    });
    let tasks = [(); 3].map(|()| {
        let (queue, work) = (queue.clone(), work.clone());
        runtime.spawn(async move {
            while let Ok(item) = queue.get().await {
                begin(&work, *item);
                tokio::task::yield_now().await;
                work.lock().unwrap().held.remove(&item);
            }
        })
    });
    for item in 0..ITEMS {
        match item % 3 {
            0 => queue.add(item),
            1 => queue.add_after(item, Duration::from_micros(u64::from(item % 700))),
            _ => {
                queue.add(item);
                queue.add(item - 1);
            }
        }
    }
    let start = Instant::now();
    while work.lock().unwrap().seen.len() < ITEMS as usize {
        assert!(start.elapsed() < PATIENCE, "some are never seen");
        thread::sleep(Duration::from_millis(1));
    }
    runtime.block_on(async { tokio::time::timeout(PATIENCE, queue.shut_down_with_drain()).await.unwrap() });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
}
