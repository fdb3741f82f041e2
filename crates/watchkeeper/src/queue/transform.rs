//! What is done to each object before it is queued?

use std::sync::Arc;

/// Changes objects on their way into a queue, most often to drop what nobody needs: client-go's `TransformFunc`,
/// which runs once for each object that comes in. Tombstones and resyncs hold what has been through it already.
pub(super) struct Transform<T>(Option<Function<T>>);

type Function<T> = Arc<dyn Fn(T) -> T + Send + Sync>;

impl<T> Transform<T> {
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn new(function: impl Fn(T) -> T + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(function)))
    }

    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn apply(&self, value: T) -> T {
        match &self.0 {
            None => value,
            Some(function) => function(value),
        }
    }
}
