//! The lock and the bells around a work queue.
//!
//! Who waits for an item keeps the time: there is no task and no thread for items that wait. Each sleeps until the first of
//! them is due, or until a bell rings: for one of them if an item was added, for all if something is due before anything else,
//! since each of them may be gone before it is. Rung, each looks again. The lock is never held while somebody waits, and no
//! item is dropped under it.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use hashbrown::DefaultHashBuilder;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::inbox::{Arrival, Inbox, Left};
use super::item::Item;
use super::state::{Due, Nanos, State, Taken};
use super::table::Added;
use super::{AddOptions, ShutDown};
use crate::metrics::{QueueMetrics, QueueSample, QueueState};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, step};

/// Which tenant an item is of.
pub(super) type TenantOf<T> = Box<dyn Fn(&T) -> u64 + Send + Sync>;

pub(super) struct Core<T: Eq + Hash + Clone> {
    inbox: Inbox<T>,
    state: Mutex<Inner<T>>,
    /// For those who wait in a task, and those who wait on a thread.
    bell: Notify,
    thread_bell: Condvar,
    /// How many threads wait. Changed under the lock.
    threads: AtomicUsize,
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
    /// What has arrived and is being taken in: empty while the lock is free.
    arrived: VecDeque<Arrival<T>>,
    /// A shutdown that waits for the work to be done.
    draining: bool,
}

/// The state, with all that was added until now, and the lock. What is to be done when the lock is free again is done when this is
/// dropped, in the order of its fields.
struct Current<'a, T: Eq + Hash + Clone> {
    inner: MutexGuard<'a, Inner<T>>,
    ringing: Ringing<'a, T>,
    spares: Vec<T>,
}

/// Wakes as many as there are new items.
struct Ringing<'a, T: Eq + Hash + Clone> {
    core: &'a Core<T>,
    /// How many can be taken now that could not before.
    new: usize,
}

/// What came of looking.
enum Look<'a, T: Eq + Hash + Clone> {
    Found(Item<T>),
    Over,
    /// There is nothing yet; the next is due then. The lock is still held.
    Wait(Current<'a, T>, Option<Nanos>),
}

impl<T: Eq + Hash + Clone> Core<T> {
    pub(super) fn new(name: Box<str>, max_age: Duration, tenant_of: Option<TenantOf<T>>) -> Self {
        let state = State::new(nanos(max_age), tenant_of.is_some());
        Self {
            inbox: Inbox::new(),
            state: Mutex::new(Inner { state, arrived: VecDeque::new(), draining: false }),
            bell: Notify::new(),
            thread_bell: Condvar::new(),
            threads: AtomicUsize::new(0),
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
        let Some(delay) = after else {
            match self.inbox.leave(Arrival { added, priority, at: now }) {
                Left::Stays | Left::Refused(_) => {}
                Left::TakeIn => drop(self.current()),
            }
            return;
        };
        let mut current = self.current();
        current.promote(now);
        let state = &mut current.inner.state;
        state.count_retry();
        if delay.is_zero() {
            let (is_new, spare) = state.add(added, priority, now);
            current.spares.extend(spare);
            current.ringing.new += usize::from(is_new);
        } else {
            let due = Due { at: now.saturating_add(nanos(delay)), is_retry: rate_limited };
            let (is_earliest, spare) = state.add_at(added, priority, due);
            current.spares.extend(spare);
            drop(current);
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
        let _waiting = self.inbox.wait();
        loop {
            // Before looking: what is added from now on is heard.
            let mut bell = pin!(self.bell.notified());
            bell.as_mut().enable();
            let due = match self.look(self.current()) {
                Look::Found(item) => return Ok(item),
                Look::Over => return Err(ShutDown),
                Look::Wait(current, due) => {
                    drop(current);
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
        if let Some(item) = self.try_get()? {
            return Ok(item);
        }
        let _waiting = self.inbox.wait();
        let mut inner = self.inner();
        loop {
            let (current, due) = match self.look(self.take_in(inner)) {
                Look::Found(item) => return Ok(item),
                Look::Over => return Err(ShutDown),
                Look::Wait(current, due) => (current, due),
            };
            if !current.spares.is_empty() {
                // They are not dropped under the lock, and what comes meanwhile is not to be missed.
                drop(current);
                inner = self.inner();
                continue;
            }
            self.threads.fetch_add(1, Ordering::Relaxed);
            inner = match due {
                None => self.thread_bell.wait(current.inner).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let wait = Duration::from_nanos(due.saturating_sub(self.now()));
                    self.thread_bell.wait_timeout(current.inner, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            self.threads.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The next item, if there is one now.
    pub(super) fn try_get(self: &Arc<Self>) -> Result<Option<Item<T>>, ShutDown> {
        match self.look(self.current()) {
            Look::Found(item) => Ok(Some(item)),
            Look::Over => Err(ShutDown),
            Look::Wait(..) => Ok(None),
        }
    }

    fn look<'a>(self: &'a Arc<Self>, mut current: Current<'a, T>) -> Look<'a, T> {
        let now = self.now_if(current.inner.state.is_timed());
        // All who wait for what is new are woken, although one is taken: that may be one for which somebody was woken before.
        current.promote(now);
        let Some(Taken { at, item, priority, waited, began }) = current.inner.state.take(now) else {
            if current.inner.state.is_shutting_down() {
                return Look::Over;
            }
            let due = current.inner.state.next_due();
            return Look::Wait(current, due);
        };
        // Its drop says that the work is done, whatever happens from here on.
        let item = Item::new(self.clone(), at, began, item, priority);
        drop(current);
        if let Some(metrics) = self.metrics.get() {
            metrics.queued(Duration::from_nanos(waited));
        }
        Look::Found(item)
    }

    /// Work on an item has ended that began then.
    pub(super) fn done(&self, at: u32, began: Nanos) {
        let mut current = self.current();
        let now = self.now_if(current.inner.state.is_timed() || current.inner.state.comes_again(at));
        current.promote(now);
        let (is_ready, dropped) = current.inner.state.done(at, began, now);
        let is_drained = current.inner.draining && current.inner.is_drained();
        current.ringing.new += usize::from(is_ready);
        drop(current);
        drop(dropped);
        if is_drained {
            self.drained.notify_waiters();
        }
        if let Some(metrics) = self.metrics.get() {
            metrics.worked(Duration::from_nanos(now.saturating_sub(began)));
        }
    }

    /// Wakes all who wait for an item.
    fn ring_all(&self) {
        step(&self.state);
        self.bell.notify_waiters();
        self.thread_bell.notify_all();
    }

    pub(super) fn shut_down(&self, drain: bool) {
        let mut current = self.current();
        current.inner.arrived = self.inbox.close();
        current.take_in();
        current.inner.draining = drain;
        let dropped = current.inner.state.shut_down(self.now());
        drop(current);
        drop(dropped);
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
        let mut current = self.current();
        current.promote(self.now());
        look(&current.inner.state)
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

    /// Takes the lock, and in what was added.
    fn current(&self) -> Current<'_, T> {
        self.take_in(self.inner())
    }

    fn take_in<'a>(&'a self, inner: MutexGuard<'a, Inner<T>>) -> Current<'a, T> {
        let mut current = Current { inner, ringing: Ringing { core: self, new: 0 }, spares: Vec::new() };
        self.inbox.take(&mut current.inner.arrived);
        current.take_in();
        current
    }
}

impl<T: Eq + Hash + Clone> Current<'_, T> {
    /// Takes in what has arrived, one by one. One whose `Eq` panics is not taken in, and takes no other with it: mostly this is
    /// not who added it, but who is done with another, whose end would not be noted then.
    fn take_in(&mut self) {
        while let Some(Arrival { added, priority, at }) = self.inner.arrived.pop_front() {
            self.promote(at);
            let state = &mut self.inner.state;
            let taken_in = catch_unwind(AssertUnwindSafe(|| state.add(added, priority, at)));
            let Ok((is_new, spare)) = taken_in else { continue };
            self.spares.extend(spare);
            self.ringing.new += usize::from(is_new);
        }
    }

    /// Makes ready what is due by now.
    fn promote(&mut self, now: Nanos) {
        self.ringing.new += self.inner.state.promote(now);
    }
}

impl<T: Eq + Hash + Clone> Drop for Ringing<'_, T> {
    fn drop(&mut self) {
        let core = self.core;
        // Who begins to wait after this finds what is new.
        if self.new == 0 || !core.inbox.is_waited_for() {
            return;
        }
        let threads = core.threads.load(Ordering::Relaxed);
        for _ in 0..self.new {
            step(&core.state);
            core.bell.notify_one();
            // Both kinds: whoever comes too late looks again.
            if threads > 0 {
                core.thread_bell.notify_one();
            }
        }
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

impl<T: Eq + Hash + Clone> Drop for Core<T> {
    fn drop(&mut self) {
        if let Some(metrics) = self.metrics.get() {
            metrics.ended(&self.read(|state| state.sample(self.now())));
        }
    }
}

/// The longest time that there is is long enough.
fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}
