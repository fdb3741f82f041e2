//! Items that are tried again, less and less often.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::advance;
use watchkeeper::workqueue::limiter::{Bucket, Exponential, MaxOf, RateLimiter, default_controller};
use watchkeeper::workqueue::{AddOptions, RateLimitingQueue, WorkQueue};

use super::{SECOND, take, take_all};

const MILLI: Duration = Duration::from_millis(1);

fn exponential() -> Exponential<&'static str> {
    Exponential::new(MILLI, SECOND)
}

#[tokio::test(start_paused = true)]
async fn each_item_waits_longer_with_each_failure_until_it_is_forgotten() {
    let queue = RateLimitingQueue::new(exponential());
    for (failures, wait) in [1, 2, 4, 8].into_iter().enumerate() {
        assert_eq!(queue.num_requeues(&"one"), failures as u32);
        queue.add_rate_limited("one");
        advance((wait - 1) * MILLI).await;
        assert_eq!(queue.len(), 0, "after {failures} failures");
        advance(MILLI).await;
        assert_eq!(take_all(&queue), ["one"]);
    }
    queue.add_rate_limited("two");
    assert_eq!((queue.num_requeues(&"one"), queue.num_requeues(&"two")), (4, 1));
    queue.forget(&"one");
    assert_eq!((queue.num_requeues(&"one"), queue.num_requeues(&"two")), (0, 1));
    advance(MILLI).await;
    assert_eq!(take_all(&queue), ["two"]);
    queue.add_rate_limited("one");
    advance(MILLI).await;
    assert_eq!(take_all(&queue), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_stays_in_the_queue() {
    let queue = RateLimitingQueue::new(exponential());
    queue.add_rate_limited("waits");
    queue.add("ready");
    for item in ["waits", "ready"] {
        queue.forget(&item);
    }
    advance(MILLI).await;
    assert_eq!(take_all(&queue), ["ready", "waits"]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_fails_while_it_is_worked_on_comes_again_after_its_wait() {
    let queue = RateLimitingQueue::new(exponential());
    queue.add("foo");
    let item = take(&queue);
    queue.add_rate_limited("foo");
    item.done();
    assert_eq!((queue.len(), queue.waiting_len()), (0, 1));
    advance(MILLI).await;
    assert_eq!(take_all(&queue), ["foo"]);
}

#[tokio::test(start_paused = true)]
async fn the_default_begins_with_5_ms_and_lets_ten_a_second_through_after_the_first_hundred() {
    let queue = RateLimitingQueue::new(default_controller());
    (0..102).for_each(|item| queue.add_rate_limited(item));
    advance(4 * MILLI).await;
    assert_eq!(queue.len(), 0);
    advance(MILLI).await;
    assert_eq!(take_all(&queue).len(), 100);
    advance(95 * MILLI).await;
    assert_eq!(take_all(&queue), [100]);
    advance(100 * MILLI).await;
    assert_eq!(take_all(&queue), [101]);
}

#[tokio::test(start_paused = true)]
async fn the_default_waits_1000_s_at_most_however_often_an_item_has_failed() {
    let limiter = default_controller();
    let mut waits = Vec::new();
    for _ in 0..40 {
        waits.push(limiter.when(&"foo"));
        advance(SECOND).await;
    }
    assert_eq!(waits[..4], [5 * MILLI, 10 * MILLI, 20 * MILLI, 40 * MILLI]);
    assert_eq!(waits[30], 1000 * SECOND);
    assert_eq!(limiter.num_requeues(&"foo"), 40);
}

#[tokio::test(start_paused = true)]
async fn with_a_delay_and_a_limiter_the_later_time_counts_and_the_failure_is_counted() {
    let queue = RateLimitingQueue::new(exponential());
    let limited = |after| AddOptions { after: Some(after), rate_limited: true, ..AddOptions::default() };
    queue.add_with("foo", limited(10 * MILLI));
    queue.add_with("bar", limited(Duration::ZERO));
    advance(MILLI).await;
    assert_eq!(take_all(&queue), ["bar"]);
    advance(9 * MILLI).await;
    assert_eq!(take_all(&queue), ["foo"]);
    assert_eq!((queue.num_requeues(&"foo"), queue.num_requeues(&"bar")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_item_without_a_limit_is_not_asked_about() {
    let queue = RateLimitingQueue::new(exponential());
    queue.add("foo");
    queue.add_with("foo", AddOptions { priority: 3, ..AddOptions::default() });
    queue.add_after("foo", SECOND);
    assert_eq!((queue.num_requeues(&"foo"), queue.len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_queue_without_a_limiter_adds_at_once_what_is_to_be_limited() {
    let queue = WorkQueue::new();
    queue.add_with("foo", AddOptions { rate_limited: true, ..AddOptions::default() });
    assert_eq!(queue.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_several_limiters_each_is_asked_and_a_shared_one_counts_for_all_queues() {
    let bucket = Arc::new(Bucket::new(1.0, 1));
    let queue = |_| RateLimitingQueue::new(MaxOf::new().and(exponential()).and(bucket.clone()));
    let queues = [0, 1].map(queue);
    queues[0].add_rate_limited("foo");
    queues[1].add_rate_limited("foo");
    advance(MILLI).await;
    assert_eq!((queues[0].len(), queues[1].len()), (1, 0), "there was one token");
    advance(SECOND).await;
    assert_eq!(queues[1].len(), 1);
}
