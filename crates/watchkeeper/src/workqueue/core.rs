//! The lock and the bells around a work queue.
//!
//! Who waits for an item keeps the time: there is no task and no thread for items that wait. Each sleeps until the first of
//! them is due, or until a bell rings: for one of them if an item was added, for all if something is due before anything else,
//! since each of them may be gone before it is. Rung, each looks again. The lock is never held while somebody waits, and no
//! item is dropped under it.

use std::hash::{BuildHasher as _, Hash};
use std::pin::pin;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use hashbrown::DefaultHashBuilder;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::item::Item;
use super::state::{Due, Nanos, State, Taken};
use super::table::Added;
use super::{AddOptions, ShutDown};
use crate::metrics::{QueueMetrics, QueueSample, QueueState};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, step};

/// Which tenant an item is of.
pub(super) type TenantOf<T> = Box<dyn Fn(&T) -> u64 + Send + Sync>;

pub(super) struct Core<T> {
    state: Mutex<Inner<T>>,
    /// For those who wait in a task, and those who wait on a thread.
    bell: Notify,
    thread_bell: Condvar,
    /// Everything has been worked on, or nobody waits for that any more.
    drained: Notify,
    hasher: DefaultHashBuilder,
    tenant_of: Option<TenantOf<T>>,
    origin: Instant,
    pub(super) name: Box<str>,
    metrics: OnceLock<Arc<dyn QueueMetrics>>,
}

struct Inner<T> {
    state: State<T>,
    /// How many threads wait.
    threads: usize,
    /// A shutdown that waits for the work to be done.
    draining: bool,
}

/// What came of looking.
enum Look<'a, T: Eq + Hash + Clone> {
    Found(Item<T>),
    Over,
    /// There is nothing yet; the next is due then. The lock is still held.
    Wait(MutexGuard<'a, Inner<T>>, Option<Nanos>),
}

impl<T: Eq + Hash + Clone> Core<T> {
    pub(super) fn new(name: Box<str>, max_age: Duration, tenant_of: Option<TenantOf<T>>) -> Self {
        let state = State::new(nanos(max_age), tenant_of.is_some());
        Self {
            state: Mutex::new(Inner { state, threads: 0, draining: false }),
            bell: Notify::new(),
            thread_bell: Condvar::new(),
            drained: Notify::new(),
            hasher: DefaultHashBuilder::default(),
            tenant_of,
            origin: Instant::now(),
            name,
            metrics: OnceLock::new(),
        }
    }

    pub(super) fn measured_by(&self, metrics: Arc<dyn QueueMetrics>) {
        let _already = self.metrics.set(metrics);
    }

    pub(super) fn add(&self, item: T, options: AddOptions) {
        let AddOptions { priority, after, rate_limited } = options;
        // Others wait for the lock: what can be found out before it is taken is.
        let added = Added { hash: self.hasher.hash_one(&item), tenant: self.tenant(&item), item };
        let now = self.now();
        let mut inner = self.inner();
        let promoted = inner.state.promote(now);
        if after.is_some() {
            inner.state.count_retry();
        }
        let delay = after.unwrap_or_default();
        if delay.is_zero() {
            let (is_new, _spare) = inner.state.add(added, priority, now);
            self.ring(inner, promoted + usize::from(is_new));
        } else {
            let due = Due { at: now.saturating_add(nanos(delay)), is_retry: rate_limited };
            let (is_earliest, _spare) = inner.state.add_at(added, priority, due);
            self.ring(inner, promoted);
            if is_earliest {
                self.ring_all();
            }
        }
    }

    /// An item that is being worked on is not to be tried again.
    pub(super) fn cancel_retry(&self, at: u32) {
        self.inner().state.cancel_retry(at);
    }

    /// The next item, as soon as there is one.
    pub(super) async fn get(self: &Arc<Self>) -> Result<Item<T>, ShutDown> {
        // A worker that always finds something must let others run now and then.
        tokio::task::coop::consume_budget().await;
        // Mostly there is something, and then nobody has to listen.
        match self.try_get() {
            Ok(Some(item)) => return Ok(item),
            Ok(None) => {}
            Err(over) => return Err(over),
        }
        loop {
            // Before looking: what is added from now on is heard.
            let mut bell = pin!(self.bell.notified());
            bell.as_mut().enable();
            let due = match self.look(self.inner()) {
                Look::Found(item) => return Ok(item),
                Look::Over => return Err(ShutDown),
                Look::Wait(inner, due) => {
                    drop(inner);
                    due
                }
            };
            step(&self.state);
            let Some(due) = due else {
                bell.await;
                continue;
            };
            tokio::select! {
                () = &mut bell => {}
                () = tokio::time::sleep_until(crate::source::later(self.origin, Duration::from_nanos(due))) => {}
            }
        }
    }

    /// The same on a thread.
    pub(super) fn get_blocking(self: &Arc<Self>) -> Result<Item<T>, ShutDown> {
        let mut inner = self.inner();
        loop {
            let (waiting, due) = match self.look(inner) {
                Look::Found(item) => return Ok(item),
                Look::Over => return Err(ShutDown),
                Look::Wait(waiting, due) => (waiting, due),
            };
            inner = waiting;
            inner.threads += 1;
            inner = match due {
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
            Look::Found(item) => Ok(Some(item)),
            Look::Over => Err(ShutDown),
            Look::Wait(..) => Ok(None),
        }
    }

    fn look<'a>(self: &Arc<Self>, mut inner: MutexGuard<'a, Inner<T>>) -> Look<'a, T> {
        let now = self.now_if(inner.state.is_timed());
        let promoted = inner.state.promote(now);
        let Some(Taken { at, item, priority, waited, began }) = inner.state.take(now) else {
            if inner.state.is_shutting_down() {
                return Look::Over;
            }
            let due = inner.state.next_due();
            return Look::Wait(inner, due);
        };
        // Its drop says that the work is done, whatever happens from here on.
        let item = Item::new(self.clone(), at, began, item, priority);
        // For all of them: what was taken may be another one, for which this was woken.
        self.ring(inner, promoted);
        if let Some(metrics) = self.metrics.get() {
            metrics.queued(Duration::from_nanos(waited));
        }
        Look::Found(item)
    }

    /// Work on an item has ended that began then.
    pub(super) fn done(&self, at: u32, began: Nanos) {
        let mut inner = self.inner();
        let now = self.now_if(inner.state.is_timed() || inner.state.comes_again(at));
        let promoted = inner.state.promote(now);
        let (is_ready, _dropped) = inner.state.done(at, began, now);
        let is_drained = inner.draining && inner.is_drained();
        self.ring(inner, promoted + usize::from(is_ready));
        if is_drained {
            self.drained.notify_waiters();
        }
        if let Some(metrics) = self.metrics.get() {
            metrics.worked(Duration::from_nanos(now.saturating_sub(began)));
        }
    }

    /// Wakes as many as there are new items.
    fn ring(&self, inner: MutexGuard<'_, Inner<T>>, new: usize) {
        let threads = inner.threads;
        drop(inner);
        for _ in 0..new {
            step(&self.state);
            self.bell.notify_one();
            // Both kinds: whoever comes too late looks again.
            if threads > 0 {
                self.thread_bell.notify_one();
            }
        }
    }

    /// Wakes all who wait for an item.
    fn ring_all(&self) {
        step(&self.state);
        self.bell.notify_waiters();
        self.thread_bell.notify_all();
    }

    pub(super) fn shut_down(&self, drain: bool) {
        let mut inner = self.inner();
        inner.draining = drain;
        let _dropped = inner.state.shut_down(self.now());
        drop(inner);
        self.ring_all();
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
        self.read(State::len)
    }

    /// How many wait for their time.
    pub(super) fn waiting_len(&self) -> usize {
        self.read(State::waiting_len)
    }

    /// Looks at the state of this moment.
    fn read<R>(&self, look: impl FnOnce(&State<T>) -> R) -> R {
        let mut inner = self.inner();
        let promoted = inner.state.promote(self.now());
        let result = look(&inner.state);
        self.ring(inner, promoted);
        result
    }

    fn tenant(&self, item: &T) -> u64 {
        self.tenant_of.as_ref().map_or(0, |tenant_of| tenant_of(item))
    }

    fn now(&self) -> Nanos {
        nanos(self.origin.elapsed())
    }

    /// To read the clock takes a good part of the time that an item spends here. Where no time matters, and nobody measures, it
    /// is not read; the beginning of all times stands for it.
    fn now_if(&self, matters: bool) -> Nanos {
        if matters || self.metrics.get().is_some() { self.now() } else { 0 }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        lock(&self.state)
    }
}

impl<T: Eq + Hash + Clone> Inner<T> {
    fn is_drained(&self) -> bool {
        self.state.len() == 0 && self.state.processing_len() == 0
    }
}

impl<T: Eq + Hash + Clone + Send> QueueState for Core<T> {
    fn sample(&self) -> QueueSample {
        self.read(|state| state.sample(self.now()))
    }
}

impl<T> Drop for Core<T> {
    fn drop(&mut self) {
        if let Some(metrics) = self.metrics.get() {
            let now = nanos(self.origin.elapsed());
            metrics.ended(&lock(&self.state).state.sample(now));
        }
    }
}

/// The longest time that there is is long enough.
fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}
