//! Tenants take turns.

use std::collections::BTreeMap;

use tokio::time::advance;
use watchkeeper::workqueue::WorkQueue;

use super::{SECOND, priority, take, take_all};

type Key = (u8, u32);

fn fair() -> WorkQueue<Key> {
    WorkQueue::builder().fair_by(|(tenant, _): &Key| *tenant).build()
}

/// Tenant 0 adds ten thousand items, and after that nine others ten each.
fn one_large_and_nine_small() -> WorkQueue<Key> {
    let queue = fair();
    (0..10_000).for_each(|item| queue.add((0, item)));
    for tenant in 1..10 {
        (0..10).for_each(|item| queue.add((tenant, item)));
    }
    queue
}

/// After how many gets each tenant is first served, and after how many all of its items are, of those that were added.
fn served(queue: &WorkQueue<Key>, gets: usize) -> BTreeMap<u8, (usize, usize)> {
    let mut served = BTreeMap::new();
    for get in 1..=gets {
        let (tenant, _) = *take(queue);
        served.entry(tenant).or_insert((get, get)).1 = get;
    }
    served
}

#[test]
fn each_of_nine_small_tenants_is_served_within_20_gets_beside_a_large_one() {
    let served = served(&one_large_and_nine_small(), 200);
    assert_eq!(served.len(), 10);
    assert!(served.values().all(|(first, _)| *first <= 20), "{served:?}");
    assert!((1..10).all(|tenant| served[&tenant].1 <= 100), "all of a small tenant's: {served:?}");
}

#[tokio::test(start_paused = true)]
async fn also_if_the_large_ones_items_have_aged() {
    let queue = one_large_and_nine_small();
    advance(60 * SECOND).await;
    let served = served(&queue, 400);
    assert!(served.len() == 10 && served.values().all(|(first, _)| *first <= 20), "{served:?}");
}

#[test]
fn without_a_function_who_comes_first_is_served_first() {
    let queue = WorkQueue::new();
    (0..100).for_each(|item| queue.add((0, item)));
    queue.add((1, 0));
    assert_eq!(take_all(&queue).last(), Some(&(1, 0)));
}

#[test]
fn each_tenants_items_come_in_their_order_and_all_of_them_come() {
    let queue = one_large_and_nine_small();
    let mut next = BTreeMap::new();
    for (tenant, item) in take_all(&queue) {
        let next: &mut u32 = next.entry(tenant).or_default();
        assert_eq!(item, *next, "of tenant {tenant}");
        *next += 1;
    }
    assert_eq!(next.values().sum::<u32>(), 10_090);
}

#[test]
fn a_tenant_that_comes_back_does_not_jump_the_queue() {
    let queue = fair();
    (0..3).for_each(|tenant| queue.add((tenant, 0)));
    assert_eq!(*take(&queue), (0, 0));
    queue.add((0, 1));
    assert_eq!(take_all(&queue), [(1, 0), (2, 0), (0, 1)]);
}

#[test]
fn priority_comes_before_fairness() {
    let queue = fair();
    (0..3).for_each(|item| queue.add_with((0, item), priority(1)));
    (0..2).for_each(|item| queue.add((1, item)));
    (3..5).for_each(|item| queue.add((0, item)));
    let tenants: Vec<u8> = take_all(&queue).into_iter().map(|(tenant, _)| tenant).collect();
    assert_eq!(tenants, [0, 0, 0, 1, 0, 1, 0]);
}
