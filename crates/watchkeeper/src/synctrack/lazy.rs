//! A value that is made when somebody asks.
//!
//! Each notification begins a new cell, and who asks looks into the newest. So an evaluation that began before a
//! notification, and so may not know what it was about, ends up in a cell that nobody will look into any more, and those
//! who ask after it do not wait for it.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;

/// A value that is made from other things when somebody asks for it, and made again when it has been said that they
/// changed: client-go's `Lazy`.
///
/// A handler [notifies](Self::notify), which costs next to nothing; however many events there are, the value is made once
/// for all of them, when somebody [gets](Self::get) it. What is notified before a `get` begins is in what it returns.
pub struct Lazy<T, E> {
    evaluate: Box<dyn Fn() -> Result<T, E> + Send + Sync>,
    newest: ArcSwap<Cell<T>>,
}

struct Cell<T> {
    value: OnceLock<Arc<T>>,
    evaluating: Mutex<()>,
}

impl<T, E> Lazy<T, E> {
    /// A value that this function makes. It may be called on several threads at once, and must not ask for the value
    /// itself.
    pub fn new(evaluate: impl Fn() -> Result<T, E> + Send + Sync + 'static) -> Self {
        Self { evaluate: Box::new(evaluate), newest: ArcSwap::from_pointee(Cell::new()) }
    }

    /// What the value is made from has changed.
    pub fn notify(&self) {
        self.newest.store(Arc::new(Cell::new()));
    }

    /// The value. If it has not been made since the last notification, it is made here, and all who ask meanwhile wait
    /// for it, with their threads: where that takes long, ask from
    /// [`spawn_blocking`](tokio::task::spawn_blocking). An error is not kept: who asks next tries again.
    pub fn get(&self) -> Result<Arc<T>, E> {
        self.newest.load_full().get(&*self.evaluate)
    }
}

impl<T> Cell<T> {
    fn new() -> Self {
        Self { value: OnceLock::new(), evaluating: Mutex::new(()) }
    }

    fn get<E>(&self, evaluate: &dyn Fn() -> Result<T, E>) -> Result<Arc<T>, E> {
        if let Some(value) = self.value.get() {
            return Ok(value.clone());
        }
        // If an evaluation panicked, the next who asks tries again, as after an error.
        let _one_at_a_time = self.evaluating.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.value.get() {
            return Ok(value.clone());
        }
        let value = Arc::new(evaluate()?);
        Ok(self.value.get_or_init(|| value).clone())
    }
}

impl<T, E> fmt::Debug for Lazy<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.newest.load().value.get().is_some() { "made" } else { "not made" };
        write!(f, "Lazy({state})")
    }
}
