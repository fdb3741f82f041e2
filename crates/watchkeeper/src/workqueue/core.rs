//! The lock and the bells around a work queue.
//!
//! Who waits for an item keeps the time: there is no task and no thread for items that wait. Each sleeps until the first of
//! them is due, or until a bell rings: for one of them if an item was added, for all if something is due before anything else,
//! since each of them may be gone before it is. Rung, each looks again. The lock is never held while somebody waits, and no
//! item is dropped under it.

use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::item::Item;
use super::state::{Nanos, State, Taken};
use super::{AddOptions, ShutDown};
use crate::metrics::{QueueMetrics, QueueSample, QueueState};

/// Which tenant an item is of.
pub(super) type TenantOf<T> = Box<dyn Fn(&T) -> u64 + Send + Sync>;

pub(super) struct Core<T> {
    state: Mutex<Inner<T>>,
    /// For those who wait in a task, and those who wait on a thread.
    bell: Notify,
    thread_bell: Condvar,
    /// Everything has been worked on, or nobody waits for that any more.
    drained: Notify,
    tenant_of: Option<TenantOf<T>>,
    origin: Instant,
    pub(super) name: Box<str>,
    metrics: std::sync::OnceLock<Arc<dyn QueueMetrics>>,
}

struct Inner<T> {
    state: State<T>,
    /// How many threads wait.
    threads: usize,
    /// A shutdown that waits for the work to be done.
    draining: bool,
}

/// What came of looking.
enum Look<T> {
    Found(Taken<T>),
    Over,
    /// There is nothing yet; the next is due then.
    Wait(Option<Nanos>),
}

impl<T: Eq + Hash + Clone> Core<T> {
    pub(super) fn new(name: Box<str>, max_age: Duration, tenant_of: Option<TenantOf<T>>) -> Self {
        let state = State::new(nanos(max_age));
        Self {
            state: Mutex::new(Inner { state, threads: 0, draining: false }),
            bell: Notify::new(),
            thread_bell: Condvar::new(),
            drained: Notify::new(),
            tenant_of,
            origin: Instant::now(),
            name,
            metrics: std::sync::OnceLock::new(),
        }
    }

    pub(super) fn measured_by(&self, metrics: Arc<dyn QueueMetrics>) {
        let _already = self.metrics.set(metrics);
    }

    pub(super) fn add(&self, item: T, options: AddOptions) {
        let AddOptions { priority, after, .. } = options;
        let after = after.unwrap_or_default();
        let tenant = self.tenant(&item);
        let now = self.now();
        let mut inner = self.inner();
        if after.is_zero() {
            let is_new = inner.state.add(item, priority, tenant, now);
            self.ring(inner, usize::from(is_new));
        } else if inner.state.add_at(item, priority, tenant, now.saturating_add(nanos(after))) {
            drop(inner);
            self.bell.notify_waiters();
            self.thread_bell.notify_all();
        }
    }

    /// The next item, as soon as there is one.
    pub(super) async fn get(self: &Arc<Self>) -> Result<Item<T>, ShutDown> {
        // A worker that always finds something must let others run now and then.
        tokio::task::coop::consume_budget().await;
        loop {
            // Before looking: what is added from now on is heard.
            let mut bell = pin!(self.bell.notified());
            bell.as_mut().enable();
            match self.look(self.inner()) {
                Look::Found(taken) => return Ok(self.item(taken)),
                Look::Over => return Err(ShutDown),
                Look::Wait(None) => bell.await,
                Look::Wait(Some(due)) => {
                    let due = crate::source::later(self.origin, Duration::from_nanos(due));
                    tokio::select! {
                        () = &mut bell => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
            }
        }
    }

    /// The same on a thread.
    pub(super) fn get_blocking(self: &Arc<Self>) -> Result<Item<T>, ShutDown> {
        loop {
            let inner = self.inner();
            let due = match self.look(inner) {
                Look::Found(taken) => return Ok(self.item(taken)),
                Look::Over => return Err(ShutDown),
                Look::Wait(due) => due,
            };
            let mut inner = self.inner();
            // Somebody may have been faster with adding than this with the lock.
            if inner.state.len() > 0 || inner.state.is_shutting_down() || inner.state.next_due() != due {
                continue;
            }
            inner.threads += 1;
            let mut inner = match due {
                None => self.thread_bell.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let wait = Duration::from_nanos(due.saturating_sub(self.now()));
                    self.thread_bell.wait_timeout(inner, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            inner.threads -= 1;
        }
    }

    /// The next item, if there is one now.
    pub(super) fn try_get(self: &Arc<Self>) -> Result<Option<Item<T>>, ShutDown> {
        match self.look(self.inner()) {
            Look::Found(taken) => Ok(Some(self.item(taken))),
            Look::Over => Err(ShutDown),
            Look::Wait(_) => Ok(None),
        }
    }

    fn look(&self, mut inner: MutexGuard<'_, Inner<T>>) -> Look<T> {
        let now = self.now();
        let promoted = inner.state.promote(now);
        let found = inner.state.take(now);
        let look = match found {
            Some(taken) => Look::Found(taken),
            None if inner.state.is_shutting_down() => Look::Over,
            None => Look::Wait(inner.state.next_due()),
        };
        self.ring(inner, promoted.saturating_sub(1));
        if let (Look::Found(taken), Some(metrics)) = (&look, self.metrics.get()) {
            metrics.queued(Duration::from_nanos(taken.waited));
        }
        look
    }

    fn item(self: &Arc<Self>, taken: Taken<T>) -> Item<T> {
        Item::new(self.clone(), taken.at, taken.item, taken.priority)
    }

    /// Work on an item has ended.
    pub(super) fn done(&self, at: u32) {
        let now = self.now();
        let mut inner = self.inner();
        let (took, is_ready, dropped) = inner.state.done(at, now);
        let is_drained = inner.draining && inner.is_drained();
        self.ring(inner, usize::from(is_ready));
        drop(dropped);
        if is_drained {
            self.drained.notify_waiters();
        }
        if let Some(metrics) = self.metrics.get() {
            metrics.worked(Duration::from_nanos(took));
        }
    }

    /// Wakes as many as there are new items.
    fn ring(&self, inner: MutexGuard<'_, Inner<T>>, new: usize) {
        let threads = inner.threads;
        drop(inner);
        for _ in 0..new {
            self.bell.notify_one();
            // Both kinds: whoever comes too late looks again.
            if threads > 0 {
                self.thread_bell.notify_one();
            }
        }
    }

    pub(super) fn shut_down(&self, drain: bool) {
        let mut inner = self.inner();
        inner.draining = drain;
        let dropped = inner.state.shut_down();
        drop(inner);
        drop(dropped);
        self.bell.notify_waiters();
        self.thread_bell.notify_all();
        self.drained.notify_waiters();
    }

    /// Returns when all that was added has been worked on, or a shutdown without that is asked for.
    pub(super) async fn until_drained(&self) {
        loop {
            let mut drained = pin!(self.drained.notified());
            drained.as_mut().enable();
            {
                let inner = self.inner();
                if !inner.draining || inner.is_drained() {
                    return;
                }
            }
            drained.await;
        }
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.inner().state.is_shutting_down()
    }

    /// How many items can be taken.
    pub(super) fn len(&self) -> usize {
        let mut inner = self.inner();
        let promoted = inner.state.promote(self.now());
        let len = inner.state.len();
        self.ring(inner, promoted);
        len
    }

    /// How many wait for their time.
    pub(super) fn waiting_len(&self) -> usize {
        self.len();
        self.inner().state.waiting_len()
    }

    fn tenant(&self, item: &T) -> u64 {
        self.tenant_of.as_ref().map_or(0, |tenant_of| tenant_of(item))
    }

    fn now(&self) -> Nanos {
        nanos(self.origin.elapsed())
    }

    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Eq + Hash + Clone> Inner<T> {
    fn is_drained(&self) -> bool {
        self.state.len() == 0 && self.state.processing_len() == 0
    }
}

impl<T: Eq + Hash + Clone + Send> QueueState for Core<T> {
    fn sample(&self) -> QueueSample {
        let depth = self.len();
        let now = self.now();
        let inner = self.inner();
        let running = |began: Nanos| Duration::from_nanos(now.saturating_sub(began));
        QueueSample {
            depth,
            waiting: inner.state.waiting_len(),
            adds: inner.state.adds,
            retries: inner.state.retries,
            unfinished: inner.state.began().map(running).sum(),
            longest_running: inner.state.began().next().map(running).unwrap_or_default(),
        }
    }
}

/// The longest time that there is is long enough.
fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}
