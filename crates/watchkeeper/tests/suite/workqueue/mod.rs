//! The work queues: client-go's `util/workqueue`, and what ours can do beyond it. One file for each subject.

mod blocking;
mod cancel;
mod delaying;
mod drain;
mod fairness;
mod metrics;
mod priorities;
mod properties;
mod queue;
mod rate_limiting;

use std::hash::Hash;
use std::time::Duration;

use watchkeeper::workqueue::{AddOptions, Item, WorkQueue};

const SECOND: Duration = Duration::from_secs(1);

/// The next item, which is there already.
fn take<T: Eq + Hash + Clone + Send + 'static>(queue: &WorkQueue<T>) -> Item<T> {
    queue.try_get().expect("not shut down").expect("an item")
}

/// Takes everything that is there, and is done with it at once.
fn take_all<T: Eq + Hash + Clone + Send + 'static>(queue: &WorkQueue<T>) -> Vec<T> {
    std::iter::from_fn(|| Some((*queue.try_get().ok()??).clone())).collect()
}

fn priority(priority: i32) -> AddOptions {
    AddOptions { priority, ..AddOptions::default() }
}

fn after(delay: Duration) -> AddOptions {
    AddOptions { after: Some(delay), ..AddOptions::default() }
}
