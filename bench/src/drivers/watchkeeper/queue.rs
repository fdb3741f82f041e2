//! What does it cost to pass a key through a work queue?

use std::time::Instant;

use clap::Args;
use serde::Serialize;
use tokio::task::{JoinSet, consume_budget};
use watchkeeper::{ObjectKey, WorkQueue};

use crate::pods::Watchkeeper;
use crate::shared::library::Library as _;
use crate::shared::{Outcome, usage, version_of};

/// Who adds, who takes, and how much.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many tasks add keys
    #[arg(long, value_name = "P", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    producers: u32,

    /// How many tasks take them
    #[arg(long, value_name = "C", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    consumers: u32,

    /// How many keys there are
    #[arg(long, value_name = "I", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    items: u32,
}

/// The line that is printed.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    driver: &'static str,
    version: &'static str,
    queue: Queue,
}

#[derive(Debug, Serialize)]
struct Queue {
    producers: u32,
    consumers: u32,
    items: u32,
    wall_s: f64,
    cpu_s: f64,
    cycle_ns: f64,
}

/// Passes all keys through a queue.
pub(crate) async fn run(&Arguments { producers, consumers, items }: &Arguments) -> Outcome<Report> {
    let shares: Vec<Vec<ObjectKey>> = (0..producers).map(|producer| keys(producer, producers, items)).collect();
    let queue: WorkQueue<ObjectKey> = WorkQueue::new();

    let (cpu_before, started) = (usage::cpu(), Instant::now());
    let mut consuming = JoinSet::new();
    for _ in 0..consumers {
        consuming.spawn(consume(queue.clone()));
    }
    let mut producing = JoinSet::new();
    for share in shares {
        producing.spawn(produce(queue.clone(), share));
    }
    producing.join_all().await;
    // What was added is still given out.
    queue.shut_down();
    let taken: u64 = consuming.join_all().await.into_iter().sum();
    let (wall, cpu) = (started.elapsed(), usage::cpu().saturating_sub(cpu_before));

    if taken != u64::from(items) {
        return Err(format!("of {items} keys {taken} came out of the queue").into());
    }
    Ok(Report {
        driver: Watchkeeper::NAME,
        version: version_of(Watchkeeper::PACKAGE),
        queue: Queue {
            producers,
            consumers,
            items,
            wall_s: wall.as_secs_f64(),
            cpu_s: cpu.as_secs_f64(),
            cycle_ns: wall.as_secs_f64() * 1e9 / f64::from(items),
        },
    })
}

/// The share of one producer: all shares together are all keys, each once.
fn keys(producer: u32, producers: u32, items: u32) -> Vec<ObjectKey> {
    let key = |number| ObjectKey::namespaced(format!("namespace-{:03}", number % 100), format!("pod-{number:09}"));
    (producer..items).step_by(producers as usize).map(key).collect()
}

async fn produce(queue: WorkQueue<ObjectKey>, keys: Vec<ObjectKey>) {
    for key in keys {
        queue.add(key);
        // Others want to run too, as they do in a program that does more than this.
        consume_budget().await;
    }
}

async fn consume(queue: WorkQueue<ObjectKey>) -> u64 {
    let mut taken = 0;
    // `get` lets others run by itself.
    while let Ok(item) = queue.get().await {
        item.done();
        taken += 1;
    }
    taken
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn shares_are_all_keys_and_each_once() {
        let shares: Vec<Vec<ObjectKey>> = (0..3).map(|producer| keys(producer, 3, 10)).collect();
        let distinct: HashSet<&ObjectKey> = shares.iter().flatten().collect();
        assert_eq!((distinct.len(), shares.iter().map(Vec::len).sum::<usize>()), (10, 10));
        assert!(shares.iter().all(|share| share.len() >= 3));
    }

    #[tokio::test]
    async fn every_key_comes_out() {
        let report = run(&Arguments { producers: 2, consumers: 2, items: 100 }).await.expect("all keys");
        assert!(report.queue.cycle_ns > 0.0);
    }
}
