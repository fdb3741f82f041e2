//! The informers of a case, from their start to the verdict.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use kube::Client;
use tokio::time::{Instant, sleep};
use watchkeeper::Reason;
use watchkeeper_e2e::Failure;

use crate::audit::Requests;
use crate::stage::Stage;
use crate::views::{How, View};
use crate::watched::{HEAR, Watched, wait_for_markers};

/// Informers that run.
pub(crate) struct Informers {
    /// What their tags begin with. A case that is tried again has another one: the server's log still has the first.
    pub(crate) tags: String,
    pub(crate) all: Vec<Watched>,
}

/// What may happen to each namespace that an informer watches, and what must.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Lists after the first.
    pub(crate) relists: u64,
    /// Why these may be.
    pub(crate) reasons: &'static [Reason],
    /// How long a change may take until it is seen, after all that happened.
    pub(crate) patience: Duration,
    /// Each of them must have been without a watch at least so often.
    pub(crate) gaps: u64,
    /// And at most so often.
    pub(crate) most_gaps: u64,
    /// The shortest time without a watch that they may tell.
    pub(crate) least_blind: Duration,
    /// The longest time without a watch.
    pub(crate) blind: Duration,
    /// The library's own comparison is asked too.
    pub(crate) verify: bool,
}

impl Default for Rules {
    /// Nothing may happen.
    fn default() -> Self {
        Self {
            relists: 0,
            reasons: &[],
            patience: Duration::from_secs(30),
            gaps: 0,
            most_gaps: 0,
            least_blind: Duration::ZERO,
            blind: Duration::from_secs(10),
            verify: true,
        }
    }
}

/// What there is to tell of a case.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) informers: usize,
    /// In all caches.
    pub(crate) objects: usize,
    pub(crate) changes: u64,
    /// By the server's own log.
    pub(crate) lists: u64,
    /// Of these, the ones that were not the first.
    pub(crate) again: u64,
    /// Of all lists, the streaming ones.
    pub(crate) streams: u64,
    pub(crate) watches: u64,
    /// Watches and lists that were told that their version is gone.
    pub(crate) expired: u64,
    /// Requests that were refused, other than so.
    pub(crate) refused: u64,
    pub(crate) gaps: usize,
    pub(crate) longest: Duration,
}

impl Informers {
    /// Starts them, and waits until each has its first list.
    pub(crate) async fn start(client: &Client, name: &str, views: Vec<View>, how: How) -> Result<Self, Failure> {
        let informers = Self::begin(client, name, views, how)?;
        informers.synced().await?;
        Ok(informers)
    }

    pub(crate) fn begin(client: &Client, name: &str, views: Vec<View>, how: How) -> Result<Self, Failure> {
        static BEGUN: AtomicU64 = AtomicU64::new(1);
        let tags = format!("{name}.{}.", BEGUN.fetch_add(1, Relaxed));
        let start = |(number, view)| Watched::start(client, view, format!("{tags}{number}"), how);
        let all = views.into_iter().enumerate().map(start).collect::<Result<_, Failure>>()?;
        Ok(Self { tags, all })
    }

    pub(crate) async fn synced(&self) -> Result<(), Failure> {
        for watched in &self.all {
            watched.informer.synced().await.with_context(|| format!("{} has no list", watched.tag))?;
        }
        Ok(())
    }

    /// Another handler comes to each.
    pub(crate) fn listen_late(&self) -> Result<(), Failure> {
        self.all.iter().try_for_each(|watched| watched.listen("late", true))
    }

    /// Waits until each namespace of each informer has been without a watch so often, and has one again.
    pub(crate) async fn gaps(&self, gaps: u64, patience: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + patience;
        for watched in &self.all {
            let has_had =
                |gaps: u64| watched.informer.status().partitions.iter().all(|(_, status)| status.gaps >= gaps);
            while !has_had(gaps) {
                let status = || watched.informer.status();
                ensure!(Instant::now() < deadline, "{} has not seen {gaps} gaps: {:?}", watched.tag, status());
                sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    /// Waits for what was written, compares all, and judges.
    pub(crate) async fn finish(self, stage: &Stage, changes: u64, rules: Rules) -> Result<Outcome, Failure> {
        wait_for_markers(stage, &self.all, rules.patience).await?;
        let mut outcome = Outcome { changes, informers: self.all.len(), ..Outcome::default() };
        for watched in &self.all {
            outcome.objects += watched.compare(&stage.client, HEAR).await?;
        }
        self.judge(stage, &rules, &mut outcome)?;
        // Not before: it lists too, by the informer's own source.
        for watched in self.all.iter().filter(|_| rules.verify) {
            watched.verify().await?;
        }
        for watched in &self.all {
            watched.informer.shutdown().await;
        }
        Ok(outcome)
    }

    /// What each has done is what it may do, by what it says itself and by what the server says.
    pub(crate) fn judge(&self, stage: &Stage, rules: &Rules, outcome: &mut Outcome) -> Result<(), Failure> {
        let requests = Requests::read(&stage.cluster.folder().join("audit.log"), &self.tags)?;
        for watched in &self.all {
            let tag = &watched.tag;
            let noted = watched.noted();
            for gap in &noted.gaps {
                ensure!(gap.lasted <= rules.blind, "{tag} was blind for too long: {gap:?}");
                ensure!(gap.lasted >= rules.least_blind, "{tag} was blind for longer than it says: {gap:?}");
                outcome.longest = outcome.longest.max(gap.lasted);
            }
            outcome.gaps += noted.gaps.len();
            // A watch that ends, whoever ends it, is no reason for a list: an error is, or somebody who asks.
            let listed = noted.gaps.iter().filter(|gap| gap.listed.is_some()).count();
            let asked = noted.gaps.iter().filter(|gap| gap.reasons.contains(&Reason::Requested)).count();
            ensure!(listed <= noted.errors.len() + asked, "{tag} listed for no reason: {noted:?}");
            for (namespace, status) in watched.informer.status().partitions {
                let relists: u64 = status.relists.values().sum();
                let at = format!("{tag} in {namespace:?}");
                let unexpected = status.relists.keys().find(|reason| !rules.reasons.contains(reason));
                ensure!(unexpected.is_none(), "{at} listed again because of {:?}: {:?}", status.relists, noted.gaps);
                ensure!(relists <= rules.relists, "{at} listed again {:?}: {:?}", status.relists, noted.gaps);
                let gaps = rules.gaps..=rules.most_gaps.max(rules.gaps);
                ensure!(gaps.contains(&status.gaps), "{at} had {} gaps, not {gaps:?}: {:?}", status.gaps, noted.gaps);
                let path = watched.view.kind.path(namespace.as_deref());
                let asked = requests.get(&(tag.clone(), path)).copied().unwrap_or_default();
                // Each failure costs one list, and each list that was told 410 another.
                let (least, most) = (1, 1 + relists + asked.expired);
                let is_right = (least..=most).contains(&asked.lists);
                ensure!(is_right, "{at} says {:?}, and the server was asked {asked:?}", status.relists);
                outcome.lists += asked.lists;
                outcome.again += asked.lists - 1;
                outcome.expired += asked.expired + status.relists.get(&Reason::Expired).copied().unwrap_or_default();
                outcome.watches += asked.watches;
                outcome.refused += asked.refused + asked.refused_watches;
                outcome.streams += asked.streams;
            }
        }
        Ok(())
    }
}

impl Outcome {
    /// The columns of the report.
    pub(crate) const COLUMNS: [&'static str; 6] =
        ["informers", "objects", "changes", "lists (again)", "410", "blind: times, longest"];

    pub(crate) fn cells(&self) -> Vec<String> {
        vec![
            self.informers.to_string(),
            self.objects.to_string(),
            self.changes.to_string(),
            format!("{} ({})", self.lists, self.again),
            self.expired.to_string(),
            if self.gaps == 0 {
                "never".to_owned()
            } else {
                format!("{}, {:.1} s", self.gaps, self.longest.as_secs_f64())
            },
        ]
    }
}
