//! An informer that somebody looks at.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube_client::core::ApiResource;
use watchkeeper::{Backoff, Cause, Error, Event, Gap, InformerFactory, InformerOptions, SharedInformer};

use super::sizes::Sizes;
use super::{Busiest, Change, Changes};

/// What all informers of a screen tell of their changes.
#[derive(Debug)]
pub(crate) struct Watchers {
    /// The last of them.
    pub(crate) changes: Changes,
    /// The objects that change most.
    pub(crate) busiest: Mutex<Busiest>,
}

/// An informer, and what is counted of it.
#[derive(Debug)]
pub(crate) struct Observed {
    /// `pods`, `deployments.apps`.
    pub(crate) name: Arc<str>,
    /// The informer.
    pub(crate) informer: SharedInformer<()>,
    /// Only metadata is kept of its objects.
    pub(crate) metadata_only: bool,
    /// How many bytes its objects are.
    pub(crate) sizes: Sizes,
    changes: Arc<AtomicU64>,
    blind: Arc<Mutex<Blind>>,
}

/// For how long there was no watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blind {
    /// How often.
    pub(crate) gaps: u64,
    /// All of them together.
    pub(crate) total: Duration,
    /// The longest.
    pub(crate) longest: Duration,
    /// Why it was so the last time: `expired, too-many-requests`.
    pub(crate) last_reasons: String,
}

impl Default for Watchers {
    fn default() -> Self {
        Self { changes: Changes::default(), busiest: Mutex::new(Busiest::new(Instant::now())) }
    }
}

impl Watchers {
    /// The objects that change most.
    pub(crate) fn busiest(&self) -> MutexGuard<'_, Busiest> {
        self.busiest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, kind: &Arc<str>, event: &Event<()>) {
        self.busiest().changed(Instant::now(), kind, event.key());
        self.changes.push(Change::of(kind, event));
    }
}

impl Observed {
    /// Makes the informer of a kind, which the factory's next start starts.
    pub(crate) fn new(
        factory: &InformerFactory,
        resource: &ApiResource,
        options: InformerOptions,
        metadata_only: bool,
        backoff: &Backoff,
        watchers: &Arc<Watchers>,
    ) -> Result<Self, Error> {
        let name: Arc<str> = match resource.group.as_str() {
            "" => resource.plural.as_str().into(),
            group => format!("{}.{group}", resource.plural).into(),
        };
        let blind: Arc<Mutex<Blind>> = Arc::default();
        let (noted, backoff) = (blind.clone(), backoff.clone());
        let options = options.reflector(move |reflector| {
            let noted = noted.clone();
            reflector.backoff(backoff.clone()).on_gap(move |gap| lock(&noted).add(gap))
        });
        let informer = match metadata_only {
            true => factory.metadata_for_with(resource, options)?.typed::<()>(),
            false => factory.informer_for_with(resource, options)?.typed::<()>(),
        };
        let changes: Arc<AtomicU64> = Arc::default();
        let (kind, count, watchers) = (name.clone(), changes.clone(), watchers.clone());
        informer.on_event(move |event| {
            // What was there before is no change.
            if matches!(event.cause(), Cause::Watch | Cause::Relist) {
                count.fetch_add(1, Relaxed);
                watchers.hear(&kind, event);
            }
        })?;
        Ok(Self { name, informer, metadata_only, sizes: Sizes::default(), changes, blind })
    }

    /// How many changes were heard of.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// For how long there was no watch.
    pub(crate) fn blind(&self) -> Blind {
        lock(&self.blind).clone()
    }
}

impl Blind {
    fn add(&mut self, gap: &Gap) {
        self.gaps += 1;
        self.total = self.total.saturating_add(gap.lasted);
        self.longest = self.longest.max(gap.lasted);
        self.last_reasons = gap.reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    }
}

fn lock(blind: &Mutex<Blind>) -> MutexGuard<'_, Blind> {
    blind.lock().unwrap_or_else(PoisonError::into_inner)
}
