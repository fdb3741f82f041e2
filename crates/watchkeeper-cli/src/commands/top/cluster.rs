//! The copies that `top` looks at.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use watchkeeper::{Backoff, InformerFactory, InformerOptions, Selector};

use super::Options;
use crate::cluster::{Access, Resource, kinds};
use crate::failure::{Failure, Outcome};
use crate::screen::model::{Observed, Row, Rows, State, Watchers, measure};

/// How often one looks whether the copies are complete.
const LOOK: Duration = Duration::from_millis(50);
/// How long a copy may take that gets no answer, before nobody waits for it any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is wrong with the command line, before anything is asked.
pub(crate) fn validate(options: &Options) -> Outcome<()> {
    if let Some(Err(error)) = options.selector.as_deref().map(Selector::parse) {
        return Err(Failure::usage("that is no label selector")
            .because(error)
            .try_this("for example: -l app=web,tier!=cache or -l 'app in (web, api)'"));
    }
    match &options.kinds {
        Some(words) if words.contains('/') => Err(Failure::usage(format!("{words:?} is no kind"))
            .because("top shows kinds, not single objects")
            .try_this("for example: watchkeeper top pods,deployments")),
        _ => Ok(()),
    }
}

/// A copy of each kind.
pub(crate) struct Copies {
    /// What the cluster is called.
    pub(crate) name: String,
    /// Every kind was asked for: those of which there is nothing are not shown.
    pub(crate) are_all: bool,
    /// The copies.
    pub(crate) observed: Arc<[Observed]>,
    /// What they tell of their changes.
    pub(crate) watchers: Arc<Watchers>,
    /// When they were begun.
    pub(crate) started: Instant,
    factory: InformerFactory,
    token: CancellationToken,
}

impl Copies {
    /// Finds the kinds, and begins to copy them. Nothing is complete yet.
    pub(crate) async fn start(access: &Access, options: &Options) -> Outcome<Self> {
        let resources = match &options.kinds {
            Some(words) => named(access, words).await?,
            None => all(access, options).await?,
        };
        let factory = InformerFactory::new(access.client.clone());
        let watchers: Arc<Watchers> = Arc::default();
        let observe = |resource: &Resource| {
            let mut informer = InformerOptions::new();
            if resource.namespaced && !options.namespace.is_empty() {
                informer = informer.namespaces(options.namespace.iter().cloned());
            }
            if let Some(selector) = &options.selector {
                informer = informer.labels(selector);
            }
            let is_secret = resource.api.group.is_empty() && resource.api.plural == "secrets";
            let metadata_only = options.metadata || is_secret;
            Observed::new(&factory, &resource.api, informer, metadata_only, &Backoff::default(), &watchers)
        };
        let observed = resources.iter().map(observe).collect::<Result<Arc<[_]>, _>>()?;
        let token = CancellationToken::new();
        factory.start(token.clone())?;
        let (kinds, end) = (observed.clone(), token.clone());
        tokio::spawn(async move {
            measure(|| kinds.iter().map(|kind| (&**kind.informer.store(), &kind.sizes)), end).await;
        });
        let are_all = options.kinds.is_none();
        Ok(Self { name: access.name.clone(), are_all, observed, watchers, started: Instant::now(), factory, token })
    }

    /// Waits until each copy is complete or refused; not for ever.
    pub(crate) async fn settled(&self) {
        let mut rows = Rows::default();
        loop {
            rows.sample(Instant::now(), self.observed.iter());
            let is_open =
                |row: &Row| !row.synced && !matches!(row.state, State::Forbidden | State::Absent | State::Stopped);
            if !rows.rows.iter().any(is_open) || self.started.elapsed() > PATIENCE {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until the copies that are complete have been measured.
    pub(crate) async fn measured(&self) {
        let mut rows = Rows::default();
        let begun = Instant::now();
        loop {
            rows.sample(Instant::now(), self.observed.iter());
            if rows.rows.iter().all(|row| !row.synced || row.sizes.is_some()) || begun.elapsed() > PATIENCE {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The kinds that are shown.
    pub(crate) fn shown<'a>(&self, rows: &'a Rows) -> Vec<&'a Row> {
        let is_nothing = |row: &&Row| row.synced && row.objects == 0 || row.state == State::Absent;
        rows.rows.iter().filter(|row| !self.are_all || !is_nothing(row)).collect()
    }

    /// Ends them all. Whoever quits does not want to wait.
    pub(crate) async fn stop(self) {
        self.token.cancel();
        let _ = tokio::time::timeout(Duration::from_millis(300), self.factory.shutdown()).await;
    }
}

async fn named(access: &Access, words: &str) -> Outcome<Vec<Resource>> {
    let targets = kinds::targets(access, &[words.to_owned()]).await?;
    Ok(targets.into_iter().map(|target| target.resource).collect())
}

async fn all(access: &Access, options: &Options) -> Outcome<Vec<Resource>> {
    let mut resources = kinds::all(access).await?;
    // The same events are served twice.
    resources.retain(|resource| resource.full_name() != "events.events.k8s.io");
    if !options.namespace.is_empty() {
        resources.retain(|resource| resource.namespaced);
    }
    Ok(resources)
}
