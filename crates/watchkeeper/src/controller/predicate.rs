//! Which events are worth a look?

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use crate::Event;

/// Decides which events of an informer put keys into a controller's queue. Additions and deletions always do, unless a
/// predicate of your own says otherwise; of updates those that changed what matters.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use watchkeeper::Predicate;
///
/// let spec_or_labels = Predicate::<Deployment>::generation().or(Predicate::labels());
/// let not_deleting = Predicate::<Deployment>::new(|event| !event.object().is_deleting());
/// let both = spec_or_labels.and(not_deleting);
/// ```
pub struct Predicate<K> {
    passes: Arc<Passes<K>>,
}

type Passes<K> = dyn Fn(&Event<K>) -> bool + Send + Sync;

impl<K: 'static> Predicate<K> {
    /// Any function of the event.
    pub fn new(passes: impl Fn(&Event<K>) -> bool + Send + Sync + 'static) -> Self {
        Self { passes: Arc::new(passes) }
    }

    /// Updates that changed `metadata.generation`: the spec, that is, and not the status. An object without one always passes.
    /// It stands in the body, of which the metadata is decoded for that.
    pub fn generation() -> Self {
        Self::new(|event| match event {
            Event::Updated { old, new, .. } => match (generation(old), generation(new)) {
                (Some(old), Some(new)) => old != new,
                _ => true,
            },
            _ => true,
        })
    }

    /// Updates that changed the labels.
    pub fn labels() -> Self {
        Self::new(|event| match event {
            Event::Updated { old, new, .. } => {
                let sorted = |object: &crate::Object| {
                    let mut labels: Vec<(String, String)> =
                        object.labels().iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
                    labels.sort_unstable();
                    labels
                };
                sorted(old) != sorted(new)
            }
            _ => true,
        })
    }

    /// Updates that changed anything: all but those of a resync, and of a list that found an object as it was.
    pub fn version() -> Self {
        Self::new(|event| match event {
            Event::Updated { old, new, .. } => old.resource_version() != new.resource_version(),
            _ => true,
        })
    }

    /// What passes both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) && other.passes(event))
    }

    /// What passes one of them.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |event| self.passes(event) || other.passes(event))
    }

    /// Whether an event passes.
    pub fn passes(&self, event: &Event<K>) -> bool {
        (self.passes)(event)
    }
}

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        Self { passes: self.passes.clone() }
    }
}

impl<K> fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

fn generation(object: &crate::Object) -> Option<i64> {
    #[derive(Deserialize)]
    struct View {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        generation: Option<i64>,
    }
    object.decode::<View>().ok()?.metadata.generation
}
