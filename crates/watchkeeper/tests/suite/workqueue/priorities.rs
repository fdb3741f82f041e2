//! What is urgent comes first, and what is not comes too.

use std::time::Duration;

use tokio::time::advance;
use watchkeeper::workqueue::{AddOptions, WorkQueue};

use super::{SECOND, priority, take, take_all};

const MAX_AGE: Duration = Duration::from_secs(30);

#[test]
fn the_higher_priority_comes_first_and_within_one_who_came_first() {
    let queue = WorkQueue::new();
    for (item, level) in [("a", 0), ("b", -5), ("c", 7), ("d", 0), ("e", 7), ("f", i32::MIN), ("g", i32::MAX)] {
        queue.add_with(item, priority(level));
    }
    assert_eq!(take_all(&queue), ["g", "c", "e", "a", "d", "b", "f"]);
}

#[test]
fn adding_again_raises_the_priority_and_never_lowers_it() {
    let queue = WorkQueue::new();
    queue.add_with("low", priority(-1));
    queue.add_with("raised", priority(-1));
    queue.add("middle");
    queue.add_with("raised", priority(1));
    queue.add_with("raised", priority(-9));
    queue.add("raised");
    assert_eq!(queue.len(), 3);
    assert_eq!(take_all(&queue), ["raised", "middle", "low"]);
    queue.add("middle");
    queue.add_with("raised", priority(-1));
    assert_eq!(take_all(&queue), ["middle", "raised"], "it was raised for that time only");
}

#[test]
fn what_is_added_during_the_work_comes_again_with_the_highest_priority_that_it_was_given() {
    let queue = WorkQueue::new();
    queue.add_with("again", priority(9));
    let item = take(&queue);
    for level in [1, 3, 2] {
        queue.add_with("again", priority(level));
    }
    queue.add_with("two", priority(2));
    queue.add_with("four", priority(4));
    item.done();
    assert_eq!(take_all(&queue), ["four", "again", "two"]);
}

#[tokio::test(start_paused = true)]
async fn raising_and_taking_again_and_again_leaves_nothing_behind() {
    let queue = WorkQueue::new();
    for round in 0..2_000 {
        for item in 0..4 {
            queue.add_with(item, priority(-round));
            queue.add_with(item, priority(round));
        }
        assert_eq!(queue.len(), 4);
        assert_eq!(take_all(&queue), [0, 1, 2, 3]);
    }
}

/// Takes one item each second, for so many seconds, while two urgent ones a second are added. Returns the others, with the
/// second in which each was taken.
async fn under_pressure(queue: &WorkQueue<u32>, seconds: u64) -> Vec<(u64, u32)> {
    let (mut taken, mut urgent) = (Vec::new(), 1_000_000);
    for second in 0..seconds {
        for _ in 0..2 {
            urgent += 1;
            queue.add_with(urgent, priority(100));
        }
        let item = take(queue);
        if *item < 1_000_000 {
            taken.push((second, *item));
        }
        item.done();
        advance(SECOND).await;
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn an_item_of_the_lowest_priority_is_served_at_its_greatest_age_while_others_keep_coming() {
    let queue = WorkQueue::builder().max_age(MAX_AGE).build();
    queue.add_with(7, priority(i32::MIN));
    assert_eq!(under_pressure(&queue, 29).await, [], "not before");
    assert_eq!(under_pressure(&queue, 3).await, [(1, 7)]);
}

#[tokio::test(start_paused = true)]
async fn the_age_of_an_item_counts_from_its_first_addition() {
    let queue = WorkQueue::builder().max_age(MAX_AGE).build();
    queue.add_with(7, priority(-2));
    assert_eq!(under_pressure(&queue, 20).await, []);
    queue.add_with(7, priority(-1));
    queue.add_with(7, priority(-1));
    assert_eq!(under_pressure(&queue, 12).await, [(10, 7)]);
}

#[tokio::test(start_paused = true)]
async fn the_age_of_an_item_with_a_delay_counts_from_its_time_though_nobody_looked() {
    let queue = WorkQueue::builder().max_age(MAX_AGE).build();
    queue.add_with(7, AddOptions { priority: -1, after: Some(SECOND), ..AddOptions::default() });
    advance(21 * SECOND).await;
    assert_eq!(under_pressure(&queue, 12).await, [(10, 7)]);
}

#[tokio::test(start_paused = true)]
async fn with_thousands_that_have_aged_what_is_urgent_still_gets_through() {
    let queue = WorkQueue::builder().max_age(MAX_AGE).build();
    (0..5_000).for_each(|item| queue.add_with(item, priority(-1)));
    advance(MAX_AGE).await;
    queue.add_with(9_999, priority(1));
    let first: Vec<u32> = (0..2).map(|_| *take(&queue)).collect();
    assert!(first.contains(&9_999), "{first:?}");
    let taken = under_pressure(&queue, 1_000).await;
    assert_eq!(taken.len(), 500, "every other one");
    assert!(taken.is_sorted(), "the oldest first");
}

#[tokio::test(start_paused = true)]
async fn by_default_an_item_waits_for_30_s_at_most() {
    let queue = WorkQueue::new();
    queue.add_with(7, priority(-1));
    assert_eq!(under_pressure(&queue, 40).await, [(30, 7)]);
}
