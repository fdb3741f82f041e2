//! Two halves of one thing, polled by one task, that would wake each other.
//!
//! hyper's connection and the body that it brings know each other as two tasks: when one has something for the other, it wakes
//! it. Here both are polled one after the other by the task that reads the body, so that each piece would wake the very task that
//! is at work on it: which then runs once more, in vain, and mostly on another thread that has to be woken for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// Polls what wakes itself.
#[derive(Clone)]
pub(super) struct Calm {
    inner: Arc<Inner>,
    /// The same, as what is polled sees it.
    waker: Waker,
}

#[derive(Default)]
struct Inner {
    /// Who polls.
    task: AtomicWaker,
    /// Within a poll. Whoever wakes it then is remembered.
    polling: AtomicBool,
    woken: AtomicBool,
}

impl Calm {
    /// Polls. Who gets something asks again before it waits, and need not be woken for what happened meanwhile.
    pub(super) fn poll<T>(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.inner.task.register(cx.waker());
        self.inner.woken.store(false, SeqCst);
        self.inner.polling.store(true, SeqCst);
        let polled = poll(&mut Context::from_waker(&self.waker));
        self.inner.polling.store(false, SeqCst);
        if polled.is_pending() && self.inner.woken.load(SeqCst) {
            cx.waker().wake_by_ref();
        }
        polled
    }
}

impl Default for Calm {
    fn default() -> Self {
        let inner = Arc::<Inner>::default();
        Self { waker: inner.clone().into(), inner }
    }
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, SeqCst);
        if !self.polling.load(SeqCst) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    impl Wakes {
        fn take(&self) -> usize {
            self.0.swap(0, SeqCst)
        }
    }

    #[test]
    fn only_who_has_to_wait_is_woken() {
        let (calm, wakes) = (Calm::default(), Arc::new(Wakes::default()));
        let waker = Waker::from(wakes.clone());
        let mut cx = Context::from_waker(&waker);
        let mut kept = None;
        let mut poll = |polled: Poll<()>| {
            calm.poll(&mut cx, |cx| {
                cx.waker().wake_by_ref();
                kept = Some(cx.waker().clone());
                polled
            })
        };
        assert_eq!((poll(Poll::Ready(())), wakes.take()), (Poll::Ready(()), 0));
        assert_eq!((poll(Poll::Pending), wakes.take()), (Poll::Pending, 1));
        // By whoever has come to know of it meanwhile.
        kept.expect("a waker").wake();
        assert_eq!(wakes.take(), 1);
    }

    #[test]
    fn who_comes_later_is_woken_in_place_of_who_came_before() {
        let calm = Calm::default();
        let [before, now] = [Arc::new(Wakes::default()), Arc::new(Wakes::default())];
        for wakes in [&before, &now] {
            let waker = Waker::from(wakes.clone());
            assert!(calm.poll(&mut Context::from_waker(&waker), |_| Poll::<()>::Pending).is_pending());
        }
        calm.waker.wake_by_ref();
        assert_eq!((before.take(), now.take()), (0, 1));
    }

    /// However the threads meet: what is there before a poll ends in vain is heard of.
    #[test]
    fn nobody_is_forgotten_who_wakes_from_another_thread() {
        for round in 0..2000 {
            let (calm, wakes) = (Calm::default(), Arc::new(Wakes::default()));
            let waker = Waker::from(wakes.clone());
            let there = Arc::new(AtomicBool::new(false));
            let (other, theirs) = (calm.waker.clone(), there.clone());
            let thread = std::thread::spawn(move || {
                theirs.store(true, SeqCst);
                other.wake();
            });
            let polled = calm.poll(&mut Context::from_waker(&waker), |_| {
                (0..round % 50).for_each(|_| std::hint::spin_loop());
                if there.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
            });
            thread.join().expect("it does not panic");
            assert!(polled.is_ready() || wakes.take() > 0, "round {round}");
        }
    }
}
