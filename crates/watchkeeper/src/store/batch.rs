//! Many changes at once.

use crate::{KeyError, ObjectKey};

/// A change to a [`ThreadSafeStore`](crate::ThreadSafeStore), which is told the key: client-go's
/// `ThreadSafeStoreTransaction`.
#[derive(Debug, Clone)]
pub enum Change<T> {
    /// There is a new value.
    Add(T),
    /// A value changed.
    Update(T),
    /// A value is gone; its last state, if that is known, has the version of the deletion.
    Delete(Option<T>),
}

/// A change to an [`Indexer`](crate::Indexer), which finds out the key: client-go's `Transaction`.
#[derive(Debug, Clone)]
pub enum Operation<T, K = ObjectKey> {
    /// There is a new value.
    Add(T),
    /// A value changed.
    Update(T),
    /// A value is gone; this is its last state.
    Delete(T),
    /// The value under a key is gone, and nothing else is known of it.
    DeleteKey(K),
}

/// What a batch did.
#[derive(Debug, Clone)]
#[must_use = "operations may have failed"]
pub struct Applied<T> {
    /// For each operation, what was there before it.
    pub previous: Vec<Option<T>>,
    /// The operations that failed, by their place in the batch. All others were applied.
    pub failed: Vec<(usize, KeyError)>,
}

impl<T> Applied<T> {
    /// The first failure, if there is one.
    pub fn into_result(self) -> Result<Vec<Option<T>>, KeyError> {
        match self.failed.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(self.previous),
        }
    }

    /// The places of the operations that were applied: client-go's `SuccessfulIndices`.
    pub fn successful(&self) -> impl Iterator<Item = usize> + '_ {
        let failed = |at: &usize| self.failed.binary_search_by_key(at, |(failed, _)| *failed).is_ok();
        (0..self.previous.len()).filter(move |at| !failed(at))
    }
}
