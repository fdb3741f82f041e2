//! A queue of work.

use std::fmt;
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hashbrown::DefaultHashBuilder;

use super::core::{Core, TenantOf};
use super::{AddOptions, Item, ShutDown};
use crate::defaults::QUEUE_MAX_AGE;
use crate::metrics::{MetricsProvider, QueueState};

/// What has to be done, each item once: client-go's `workqueue.Interface`. Cheap to clone; all clones are one queue.
///
/// An item is with one worker at a time. One that is added while it waits is not added again; one that is added while somebody
/// works on it comes again when that is done. So for each addition there is work that began after it.
///
/// ```
/// use watchkeeper::workqueue::WorkQueue;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue = WorkQueue::new();
/// queue.add("shop/web");
/// queue.add("shop/web"); // the same
/// let item = queue.get().await.expect("not shut down");
/// queue.add("shop/web"); // somebody works on it: it comes again
/// assert_eq!((*item, queue.len()), ("shop/web", 0));
/// drop(item); // done
/// assert_eq!(queue.len(), 1);
/// queue.shut_down();
/// assert!(queue.get().await.is_ok(), "what was added is still given out");
/// assert!(queue.get().await.is_err(), "and then it is over");
/// # }
/// ```
pub struct WorkQueue<T: Eq + Hash + Clone> {
    core: Arc<Core<T>>,
}

impl<T: Eq + Hash + Clone + Send + 'static> WorkQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Begins a queue with options.
    pub fn builder() -> WorkQueueBuilder<T> {
        WorkQueueBuilder { name: "".into(), max_age: QUEUE_MAX_AGE, tenant_of: None, metrics: None }
    }

    /// Adds an item, unless it waits already. After [`shut_down`](Self::shut_down) nothing is added.
    pub fn add(&self, item: T) {
        self.core.add(item, AddOptions::default());
    }

    /// Adds an item with a priority, or at a later time. One that waits already keeps the higher priority and the earlier
    /// time.
    pub fn add_with(&self, item: T, options: AddOptions) {
        self.core.add(item, options);
    }

    /// The next item, as soon as there is one: client-go's `Get`. An error means that the queue was shut down, and that nothing is
    /// left in it. Dropping the future loses nothing.
    pub async fn get(&self) -> Result<Item<T>, ShutDown> {
        self.core.get().await
    }

    /// The same on a thread that may block, with no runtime.
    pub fn get_blocking(&self) -> Result<Item<T>, ShutDown> {
        self.core.get_blocking()
    }

    /// The next item, if there is one now.
    pub fn try_get(&self) -> Result<Option<Item<T>>, ShutDown> {
        self.core.try_get()
    }

    /// How many items can be taken now.
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// None can be taken now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items wait for their time.
    pub fn waiting_len(&self) -> usize {
        self.core.waiting_len()
    }

    /// Nothing more is added, and what waits for its time is dropped. What can be taken now is still given out.
    pub fn shut_down(&self) {
        self.core.shut_down(false);
    }

    /// The same, and returns when everything that was added has been taken out and worked on. Somebody has to do that: without
    /// workers it waits until [`shut_down`](Self::shut_down) is called. (client-go's returns when nobody works on anything, also
    /// if something is left.)
    pub async fn shut_down_with_drain(&self) {
        self.core.shut_down(true);
        self.core.until_drained().await;
    }

    /// It was shut down.
    pub fn shutting_down(&self) -> bool {
        self.core.is_shutting_down()
    }

    /// What logs and metrics call it.
    pub fn name(&self) -> &str {
        &self.core.name
    }
}

impl<T: Eq + Hash + Clone + Send + 'static> Default for WorkQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Eq + Hash + Clone> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone() }
    }
}

impl<T: Eq + Hash + Clone + Send + 'static> fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("name", &self.name())
            .field("len", &self.len())
            .field("shutting_down", &self.shutting_down())
            .finish_non_exhaustive()
    }
}

/// Options of a queue, of any of the three.
#[must_use]
pub struct WorkQueueBuilder<T> {
    name: Box<str>,
    max_age: Duration,
    tenant_of: Option<TenantOf<T>>,
    metrics: Option<Arc<dyn MetricsProvider>>,
}

impl<T: Eq + Hash + Clone + Send + 'static> WorkQueueBuilder<T> {
    /// What logs and metrics call it. A queue without a name is not measured, as in client-go.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// How long an item of a low priority waits at most while others keep coming; 30 s by default. An item that has waited for
    /// so long comes next; if there are many such, every other one that is taken is one of them.
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// Lets the tenants that `tenant` tells apart take turns, within a priority: one who adds ten thousand items keeps nobody
    /// waiting. `tenant` must say the same of the same item each time.
    pub fn fair_by<N: Hash>(mut self, tenant: impl Fn(&T) -> N + Send + Sync + 'static) -> Self {
        let hasher = DefaultHashBuilder::default();
        self.tenant_of = Some(Box::new(move |item| hasher.hash_one(tenant(item))));
        self
    }

    /// Who measures it: see [`metrics`](crate::metrics).
    pub fn metrics(mut self, provider: impl MetricsProvider) -> Self {
        self.metrics = Some(Arc::new(provider));
        self
    }

    /// The queue.
    pub fn build(self) -> WorkQueue<T> {
        let Self { name, max_age, tenant_of, metrics } = self;
        let core = Arc::new(Core::new(name, max_age, tenant_of));
        if let Some(provider) = metrics.filter(|_| !core.name.is_empty()) {
            let state: Weak<dyn QueueState> = Arc::downgrade(&core) as _;
            core.measured_by(provider.queue(&core.name, state));
        }
        WorkQueue { core }
    }
}
