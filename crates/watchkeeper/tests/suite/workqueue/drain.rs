//! Shutdowns that wait for the work.

use tokio_test::task::spawn;
use tokio_test::{assert_pending, assert_ready};
use watchkeeper::workqueue::WorkQueue;

use super::{SECOND, after, take};

#[tokio::test(start_paused = true)]
async fn a_drain_waits_until_the_work_that_is_being_done_has_ended() {
    let queue = WorkQueue::new();
    queue.add("foo");
    queue.add("bar");
    let items = [take(&queue), take(&queue)];
    let mut drain = spawn(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    assert!(queue.shutting_down());
    for item in items {
        assert_pending!(drain.poll());
        item.done();
    }
    assert!(drain.is_woken());
    assert_ready!(drain.poll());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_without_a_drain_waits_for_nobody() {
    let queue = WorkQueue::new();
    queue.add("foo");
    let item = take(&queue);
    queue.shut_down();
    assert!(queue.try_get().is_err(), "and it is over");
    drop(item);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_go_of_those_who_wait_for_a_drain() {
    let queue = WorkQueue::new();
    queue.add("foo");
    let _item = take(&queue);
    let (mut one, mut other) = (spawn(queue.shut_down_with_drain()), spawn(queue.shut_down_with_drain()));
    assert_pending!(one.poll());
    assert_pending!(other.poll());
    queue.shut_down();
    assert!(one.is_woken() && other.is_woken());
    assert_ready!(one.poll());
    assert_ready!(other.poll());
}

#[tokio::test(start_paused = true)]
async fn what_was_added_during_the_work_is_worked_on_again_before_a_drain_ends() {
    let queue = WorkQueue::new();
    queue.add("foo");
    let item = take(&queue);
    queue.add("foo");
    let mut drain = spawn(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    item.done();
    assert_pending!(drain.poll());
    let item = take(&queue);
    assert_eq!(*item, "foo");
    assert_pending!(drain.poll());
    item.done();
    assert_ready!(drain.poll());
    assert!(queue.try_get().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_what_nobody_has_taken_yet_too() {
    let queue = WorkQueue::new();
    queue.add("foo");
    let mut drain = spawn(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    let item = take(&queue);
    assert_pending!(drain.poll());
    item.done();
    assert_ready!(drain.poll());
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_nothing_that_waits_for_its_time() {
    let queue = WorkQueue::new();
    queue.add_with("later", after(SECOND));
    let mut drain = spawn(queue.shut_down_with_drain());
    assert_ready!(drain.poll());
    assert_eq!(queue.waiting_len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_drain_after_a_shutdown_waits_as_any_does() {
    let queue = WorkQueue::new();
    queue.add("foo");
    queue.shut_down();
    let mut drain = spawn(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    take(&queue).done();
    assert_ready!(drain.poll());
}

#[tokio::test(start_paused = true)]
async fn who_stops_waiting_for_a_drain_has_shut_the_queue_down_all_the_same() {
    let queue = WorkQueue::new();
    queue.add("foo");
    let item = take(&queue);
    let mut drain = spawn(queue.shut_down_with_drain());
    assert_pending!(drain.poll());
    drop(drain);
    queue.add("bar");
    item.done();
    assert!(queue.try_get().is_err());
}
