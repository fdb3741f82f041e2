//! One handler's place at the informer: what waits for it, and how far it has come.
//!
//! The processor puts things in, under a lock that nobody holds for long; the handler's own task takes them out. So the
//! watch never waits for a handler, and no handler waits for another.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::buffer::{Buffer, Notice, Waiting};
use super::changes::{Change, Changes};
use super::flag::Flag;
use super::run::Runner;
use crate::defaults::{LONG_BACKLOG, SHARED_DECODES};
use crate::{Cached, Cause, Event, Object, Snapshot};

/// What the processor knows of a handler.
pub(crate) struct Listener {
    pub(crate) name: Box<str>,
    waiting: Mutex<Waiting>,
    bell: Notify,
    /// Events that the handler's task has taken out, and not come to yet.
    in_hand: AtomicUsize,
    pub(super) delivered: AtomicU64,
    pub(super) panics: AtomicU64,
    with_unchanged: bool,
    /// It was said that the backlog is long.
    warned: AtomicBool,
    resync: Option<Mutex<Resync>>,
    /// A resync waits, or is being told.
    resyncing: AtomicBool,
    /// It has been told all that there was at first.
    pub(super) synced: Flag,
    /// Nothing more is to be told.
    pub(super) removed: Flag,
    /// The handler will not be called any more, and is dropped.
    pub(super) done: Flag,
    /// There is nobody to be called: somebody takes the events of a stream, when they want to.
    is_stream: AtomicBool,
    /// The handler, until it is started.
    runner: Mutex<Option<Runner>>,
}

struct Resync {
    period: Duration,
    next: Instant,
}

impl Listener {
    pub(super) fn new(name: Box<str>, buffer: Buffer, resync: Option<Duration>, tell_unchanged: bool) -> Self {
        let with_unchanged = tell_unchanged || resync.is_some();
        let resync =
            resync.map(|period| Mutex::new(Resync { period, next: crate::source::later(Instant::now(), period) }));
        Self {
            name,
            waiting: Mutex::new(Waiting::new(buffer, with_unchanged)),
            bell: Notify::new(),
            in_hand: AtomicUsize::new(0),
            delivered: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            with_unchanged,
            warned: AtomicBool::new(false),
            resync,
            resyncing: AtomicBool::new(false),
            synced: Flag::default(),
            removed: Flag::default(),
            done: Flag::default(),
            is_stream: AtomicBool::new(false),
            runner: Mutex::new(None),
        }
    }

    /// Nobody is called: when it is removed there is nothing to wait for.
    pub(super) fn becomes_stream(&self) {
        self.is_stream.store(true, Relaxed);
    }

    /// Wants to hear of objects that a list found unchanged.
    pub(super) fn hears_unchanged(&self) -> bool {
        self.with_unchanged
    }

    pub(super) fn tell(&self, changes: &Arc<Changes>) {
        self.put(|waiting| waiting.push_changes(changes));
    }

    /// All of these are told as they are: as additions to one who comes, as changes that are none at a resync.
    pub(super) fn replay(&self, objects: Snapshot<Object>, cause: Cause) {
        if !objects.is_empty() {
            self.put(|waiting| waiting.push(Notice::Replay { objects, cause }));
        }
    }

    /// Behind this, it knows all that there was at first.
    pub(super) fn mark_synced(&self) {
        self.put(|waiting| waiting.push(Notice::Synced));
    }

    fn put(&self, put: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.waiting();
        // With the lock held: who removes it drops what waits after saying so.
        if self.removed.is_raised() {
            return;
        }
        put(&mut waiting);
        let (lag, rings) = (waiting.lag(), !waiting.is_empty());
        drop(waiting);
        if rings {
            self.bell.notify_one();
        }
        if lag >= LONG_BACKLOG && !self.warned.swap(true, Relaxed) {
            tracing::warn!(
                handler = &*self.name,
                backlog = lag,
                "a handler does not keep up, and what it has not heard waits"
            );
        } else if lag < LONG_BACKLOG / 2 && self.warned.load(Relaxed) {
            self.warned.store(false, Relaxed);
        }
    }

    /// When the next resync is due, if there is one to come.
    pub(super) fn next_resync(&self) -> Option<Instant> {
        let next = lock(self.resync.as_ref()?).next;
        (!self.removed.is_raised()).then_some(next)
    }

    /// The time until the next resync begins now: everything has just been said.
    pub(super) fn restart_resync(&self, now: Instant) {
        if let Some(resync) = &self.resync {
            let mut resync = lock(resync);
            resync.next = crate::source::later(now, resync.period);
        }
    }

    /// If a resync is due now, tells all of `objects` again, unless the last resync has not been told yet. Either way the next
    /// one is due a period later.
    pub(super) fn resync_if_due(&self, now: Instant, objects: impl FnOnce() -> Snapshot<Object>) {
        let Some(resync) = &self.resync else { return };
        let mut resync = lock(resync);
        if resync.next > now {
            return;
        }
        // From when it was due, so that it does not drift; but what was missed is not made up for.
        let on_time = crate::source::later(resync.next, resync.period);
        resync.next = if on_time > now { on_time } else { crate::source::later(now, resync.period) };
        drop(resync);
        if !self.resyncing.swap(true, Relaxed) {
            let objects = objects();
            match objects.is_empty() {
                false => self.replay(objects, Cause::Resync),
                true => self.resyncing.store(false, Relaxed),
            }
        }
    }

    /// How many events it has not been told yet.
    pub(crate) fn backlog(&self) -> usize {
        let waiting = self.waiting();
        if self.removed.is_raised() { 0 } else { waiting.len() + self.in_hand.load(Relaxed) }
    }

    /// Nothing more is told, and what waits is dropped.
    pub(super) fn remove(&self) {
        self.removed.raise();
        let waiting = std::mem::replace(&mut *self.waiting(), Waiting::new(Buffer::EveryEvent, false));
        drop(waiting);
        // One that was never started is done, and dropping it says so.
        self.drop_runner();
        if self.is_stream.load(Relaxed) {
            self.done.raise();
        }
    }

    pub(super) fn put_runner(&self, runner: Runner) {
        *lock(&self.runner) = Some(runner);
    }

    /// Whoever puts a runner has to ask for this when no lock is held: the listener may have been removed meanwhile, from
    /// another thread, and then nobody will start the handler.
    pub(super) fn drop_runner_if_removed(&self) {
        if self.removed.is_raised() {
            self.drop_runner();
        }
    }

    /// A handler that panics when it is dropped shall not keep others from being dropped.
    fn drop_runner(&self) {
        let runner = self.take_runner();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(runner))) {
            super::run::forget(panic);
            tracing::error!(handler = &*self.name, "a handler panicked when it was dropped");
        }
    }

    pub(super) fn take_runner(&self) -> Option<Runner> {
        lock(&self.runner).take()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handler's side: takes events out, one after the other. With it the listener ends.
pub(super) struct Inbox {
    listener: Arc<Listener>,
    hand: Hand,
    /// How many events it has been told since it let others go on.
    told: usize,
}

/// What was taken out last, and how far it has been told.
struct Hand {
    holds: Holds,
    /// The place behind the event that is told now.
    next: usize,
    /// How many events are to come.
    left: usize,
}

enum Holds {
    Nothing,
    Change(Change),
    Changes(Arc<Changes>),
    Replay { objects: Snapshot<Object>, cause: Cause },
}

impl Inbox {
    pub(super) fn new(listener: Arc<Listener>) -> Self {
        Self { listener, hand: Hand::of(Holds::Nothing, 0), told: 0 }
    }

    pub(super) fn listener(&self) -> &Arc<Listener> {
        &self.listener
    }

    /// Waits for the next event. False when the handler has been removed. Dropping the future loses nothing.
    ///
    /// Asking for the next says that the one before has been dealt with.
    pub(super) async fn next(&mut self) -> bool {
        loop {
            // A handler that always finds something must let others run now and then; and those that decode the same are to
            // stay close to each other, so that they decode it once.
            self.told += 1;
            if self.told > SHARED_DECODES / 2 {
                self.told = 0;
                tokio::task::yield_now().await;
            }
            if self.listener.removed.is_raised() {
                self.hand = Hand::of(Holds::Nothing, 0);
                return false;
            }
            if self.step() {
                return true;
            }
            if !self.take() && self.listener.waiting().is_empty() {
                // There is one who takes: a bell that rings before this waits is remembered.
                tokio::select! {
                    () = self.listener.bell.notified() => {}
                    () = self.listener.removed.raised() => {}
                }
            }
        }
    }

    /// The event that is told now: the last that was waited for.
    pub(super) fn event<K: 'static>(&self) -> Option<Cow<'_, Event<K>>> {
        let at = self.hand.next.checked_sub(1)?;
        match &self.hand.holds {
            Holds::Nothing => None,
            Holds::Change(change) => change.event().map(Cow::Owned),
            Holds::Changes(changes) => changes.event(at),
            Holds::Replay { objects, cause } => {
                let object: Cached<K> = objects.place(at)??.clone().typed();
                Some(Cow::Owned(match cause {
                    Cause::Resync => Event::Updated { old: object.clone(), new: object, cause: *cause },
                    cause => Event::Added { object, cause: *cause },
                }))
            }
        }
    }

    /// Takes the next notice into the hand, if there is one.
    fn take(&mut self) -> bool {
        let mut waiting = self.listener.waiting();
        let Some(notice) = waiting.pop() else { return false };
        let left = waiting.size(&notice);
        // Before the lock is released, so that nobody counts too few.
        self.listener.in_hand.store(left, Relaxed);
        drop(waiting);
        let holds = match notice {
            Notice::Synced => {
                self.listener.synced.raise();
                Holds::Nothing
            }
            Notice::Change(change) => Holds::Change(change),
            Notice::Changes(changes) => Holds::Changes(changes),
            Notice::Replay { objects, cause } => Holds::Replay { objects, cause },
        };
        self.hand = Hand::of(holds, left);
        true
    }

    /// Goes on to the next event of what is in the hand. What is at its end is dropped.
    fn step(&mut self) -> bool {
        let listener = &*self.listener;
        while let Some(is_event) = self.hand.look(listener.with_unchanged) {
            self.hand.next += 1;
            if is_event {
                self.hand.left = self.hand.left.saturating_sub(1);
                // Nobody else writes these while there is something in the hand.
                listener.in_hand.store(self.hand.left, Relaxed);
                listener.delivered.store(listener.delivered.load(Relaxed) + 1, Relaxed);
                return true;
            }
        }
        if matches!(self.hand.holds, Holds::Replay { cause: Cause::Resync, .. }) {
            listener.resyncing.store(false, Relaxed);
        }
        self.hand = Hand::of(Holds::Nothing, 0);
        false
    }
}

impl Hand {
    fn of(holds: Holds, left: usize) -> Self {
        Self { holds, next: 0, left }
    }

    /// What comes next: something or nothing to tell; none at the end.
    fn look(&self, with_unchanged: bool) -> Option<bool> {
        match &self.holds {
            Holds::Nothing => None,
            Holds::Change(_) => (self.next == 0).then_some(true),
            Holds::Changes(changes) => changes.look(self.next, with_unchanged),
            Holds::Replay { objects, .. } => objects.place(self.next).map(|slot| slot.is_some()),
        }
    }
}

/// However the handler's task ends, the processor shall not go on collecting for it.
impl Drop for Inbox {
    fn drop(&mut self) {
        self.listener.remove();
        self.listener.done.raise();
    }
}
