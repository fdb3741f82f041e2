//! Items that wait for their time.

use std::time::Duration;

use tokio::time::{Instant, advance};
use tokio_test::task::spawn;
use tokio_test::{assert_pending, assert_ready};
use watchkeeper::workqueue::{AddOptions, DelayingQueue};

use super::{SECOND, after, take, take_all};

const MILLI: Duration = Duration::from_millis(1);

#[tokio::test(start_paused = true)]
async fn an_item_comes_once_its_time_has_come_and_only_once() {
    let queue = DelayingQueue::new();
    queue.add_after("foo", 50 * MILLI);
    assert_eq!((queue.len(), queue.waiting_len()), (0, 1));
    advance(49 * MILLI).await;
    assert_eq!(queue.len(), 0);
    advance(11 * MILLI).await;
    assert_eq!((queue.len(), queue.waiting_len()), (1, 0));
    take(&queue).done();
    advance(10 * SECOND).await;
    assert_eq!(queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_two_times_the_earlier_counts_whichever_is_said_first() {
    let queue = DelayingQueue::new();
    for [first, second] in [[50, 70], [70, 50]] {
        queue.add_after("foo", first * MILLI);
        queue.add_after("foo", second * MILLI);
        assert_eq!(queue.waiting_len(), 1);
        advance(49 * MILLI).await;
        assert_eq!(queue.len(), 0, "{first} and {second}");
        advance(MILLI).await;
        assert_eq!(take_all(&queue), ["foo"], "{first} and {second}");
        advance(SECOND).await;
        assert_eq!((queue.len(), queue.waiting_len()), (0, 0), "not at the other time");
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_due_earlier_comes_first_though_it_was_added_later() {
    let queue = DelayingQueue::new();
    queue.add_after("foo", SECOND);
    queue.add_after("bar", 50 * MILLI);
    advance(60 * MILLI).await;
    assert_eq!(take_all(&queue), ["bar"]);
    advance(SECOND).await;
    assert_eq!(take_all(&queue), ["foo"]);
}

#[tokio::test(start_paused = true)]
async fn items_come_in_the_order_of_their_times() {
    let queue = DelayingQueue::new();
    for (item, delay) in [("foo", 1000), ("bar", 500), ("baz", 200)] {
        queue.add_after(item, delay * MILLI);
    }
    advance(2 * SECOND).await;
    assert_eq!(take_all(&queue), ["baz", "bar", "foo"]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_each_item_when_its_time_has_come() {
    let (queue, start) = (DelayingQueue::new(), Instant::now());
    for delay in [30_u32, 10, 20] {
        queue.add_after(delay, delay * MILLI);
    }
    for expected in [10, 20, 30] {
        let item = queue.get().await.expect("an item");
        assert_eq!((*item, start.elapsed()), (expected, expected * MILLI));
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_far_one_is_told_of_a_near_one() {
    let (queue, start) = (DelayingQueue::new(), Instant::now());
    queue.add_after("far", 3600 * SECOND);
    let other = queue.clone();
    let waiting = tokio::spawn(async move { other.get().await.map(|item| *item) });
    tokio::time::sleep(SECOND).await;
    queue.add_after("near", SECOND);
    assert_eq!((waiting.await.unwrap(), start.elapsed()), (Ok("near"), 2 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_no_wait() {
    let queue = DelayingQueue::new();
    queue.add_after("foo", Duration::ZERO);
    assert_eq!((queue.len(), queue.waiting_len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_longest_delay_that_there_is_is_never_and_disturbs_nobody() {
    let queue = DelayingQueue::new();
    for (item, delay) in [(1, Duration::MAX), (2, Duration::from_secs(u64::MAX)), (3, Duration::from_secs(1 << 40))] {
        queue.add_after(item, delay);
    }
    let mut waiting = spawn(queue.get());
    assert_pending!(waiting.poll());
    advance(3600 * 24 * 365 * SECOND).await;
    assert_pending!(waiting.poll());
    assert_eq!(queue.waiting_len(), 3);
    queue.add_after(4, SECOND);
    assert!(waiting.is_woken());
    assert_pending!(waiting.poll());
    advance(SECOND).await;
    assert_eq!(*assert_ready!(waiting.poll()).expect("an item"), 4);
    queue.add_after(1, Duration::ZERO);
    assert_eq!(*take(&queue), 1);
}

#[tokio::test(start_paused = true)]
async fn a_time_for_an_item_that_can_be_taken_already_is_not_lost() {
    let queue = DelayingQueue::new();
    queue.add("foo");
    queue.add_after("foo", SECOND);
    assert_eq!((queue.len(), queue.waiting_len()), (1, 1));
    assert_eq!(take_all(&queue), ["foo"]);
    advance(SECOND).await;
    assert_eq!(take_all(&queue), ["foo"]);
}

#[tokio::test(start_paused = true)]
async fn a_time_for_an_item_that_somebody_works_on_is_not_lost() {
    let queue = DelayingQueue::new();
    queue.add("foo");
    let item = take(&queue);
    queue.add_after("foo", SECOND);
    item.done();
    assert_eq!((queue.len(), queue.waiting_len()), (0, 1));
    advance(SECOND).await;
    let item = take(&queue);
    // The time can come during the work, too.
    queue.add_after("foo", SECOND);
    advance(SECOND).await;
    assert_eq!((queue.len(), queue.waiting_len()), (0, 0));
    item.done();
    assert_eq!(take_all(&queue), ["foo"]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_waits_can_be_added_now_and_still_comes_at_its_time() {
    let queue = DelayingQueue::new();
    queue.add_after("foo", SECOND);
    queue.add("foo");
    assert_eq!(take_all(&queue), ["foo"]);
    advance(SECOND).await;
    assert_eq!(take_all(&queue), ["foo"]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_was_due_while_nobody_looked_comes_before_what_was_added_since() {
    let queue = DelayingQueue::new();
    queue.add_after("due at 1", SECOND);
    advance(5 * SECOND).await;
    queue.add("added at 5");
    assert_eq!(take_all(&queue), ["due at 1", "added at 5"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_drops_what_waits_and_not_what_was_due() {
    let queue = DelayingQueue::new();
    queue.add_after("due", SECOND);
    queue.add_after("waits", 10 * SECOND);
    advance(5 * SECOND).await;
    queue.shut_down();
    queue.add_after("late", SECOND);
    assert_eq!((take_all(&queue), queue.waiting_len()), (vec!["due"], 0));
    advance(10 * SECOND).await;
    assert!(queue.get().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_wakes_those_who_wait_for_a_time() {
    let queue = DelayingQueue::new();
    queue.add_after("waits", 10 * SECOND);
    let mut waiting = spawn(queue.get());
    assert_pending!(waiting.poll());
    queue.shut_down();
    assert!(waiting.is_woken());
    assert!(assert_ready!(waiting.poll()).is_err());
}

#[tokio::test(start_paused = true)]
async fn the_higher_priority_counts_though_its_time_is_later() {
    let queue = DelayingQueue::new();
    queue.add_with("foo", AddOptions { priority: 1, after: Some(SECOND), ..AddOptions::default() });
    queue.add_with("foo", AddOptions { priority: 9, after: Some(10 * SECOND), ..AddOptions::default() });
    queue.add_with("bar", AddOptions { priority: 5, after: Some(SECOND), ..AddOptions::default() });
    advance(SECOND).await;
    assert_eq!(take_all(&queue), ["foo", "bar"]);
    // Which holds for that time only.
    queue.add_with("foo", AddOptions { priority: 1, ..after(SECOND) });
    queue.add_with("bar", AddOptions { priority: 5, ..after(SECOND) });
    advance(SECOND).await;
    assert_eq!(take_all(&queue), ["bar", "foo"]);
}

#[tokio::test(start_paused = true)]
async fn the_queue_has_no_task_of_its_own() {
    let queue = DelayingQueue::new();
    for item in 0..1000 {
        queue.add_after(item, SECOND);
    }
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    advance(SECOND).await;
    assert_eq!(queue.len(), 1000);
}

#[tokio::test(start_paused = true)]
async fn times_that_become_earlier_again_and_again_leave_nothing_behind() {
    let queue = DelayingQueue::new();
    for delay in (1..10_000_u32).rev() {
        queue.add_after("foo", delay * MILLI);
    }
    assert_eq!(queue.waiting_len(), 1);
    advance(MILLI).await;
    assert_eq!((take_all(&queue), queue.waiting_len()), (vec!["foo"], 0));
    advance(20 * SECOND).await;
    assert_eq!(queue.len(), 0);
}
