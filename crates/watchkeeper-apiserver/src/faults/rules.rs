//! The rules in force, and what they have done.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::serve::Asked;
use super::{Fault, FaultRecord, Match, random};
use crate::server::Inner;

/// How many injected faults are remembered.
const RECORDS: usize = 100_000;

/// A server's part in its faults.
pub(crate) struct Injector {
    /// Whether there are rules: all that a request without faults looks at.
    active: AtomicBool,
    rules: Mutex<Rules>,
    records: Mutex<VecDeque<FaultRecord>>,
    /// Counts how often everything was cut.
    cuts: watch::Sender<u64>,
    /// Counts how often the data was lost.
    life: AtomicU64,
}

#[derive(Default)]
struct Rules {
    rules: Vec<State>,
    next_id: u64,
}

/// A rule, and how far it has come.
struct State {
    id: u64,
    requests: Match,
    faults: Vec<Source>,
    /// Requests that it meant so far.
    seen: u64,
    injected: u64,
}

/// Where the faults of a rule come from.
enum Source {
    Always(Fault),
    Random(fastrand::Rng),
}

impl Injector {
    pub(crate) fn new() -> Self {
        Self {
            active: AtomicBool::new(false),
            rules: Mutex::default(),
            records: Mutex::default(),
            cuts: watch::Sender::new(0),
            life: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    pub(crate) fn records(&self) -> Vec<FaultRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn life(&self) -> u64 {
        self.life.load(Relaxed)
    }

    pub(crate) fn data_was_lost(&self) {
        self.life.fetch_add(1, Relaxed);
    }

    /// Changes whenever everything is cut. A listener on a socket closes its connections then.
    pub(crate) fn cuts(&self) -> watch::Receiver<u64> {
        self.cuts.subscribe()
    }

    pub(super) fn cut(&self) {
        self.cuts.send_modify(|count| *count += 1);
    }

    pub(super) fn add(&self, requests: Match, fault: Fault) -> u64 {
        let mut rules = self.lock();
        rules.next_id += 1;
        let id = rules.next_id;
        rules.rules.push(State { id, requests, faults: vec![Source::of(fault)], seen: 0, injected: 0 });
        self.active.store(true, Relaxed);
        id
    }

    pub(super) fn extend(&self, id: u64, fault: Fault) {
        if let Some(rule) = self.lock().rules.iter_mut().find(|rule| rule.id == id) {
            rule.faults.push(Source::of(fault));
        }
    }

    pub(super) fn remove(&self, id: u64) {
        let mut rules = self.lock();
        rules.rules.retain(|rule| rule.id != id);
        self.active.store(!rules.rules.is_empty(), Relaxed);
    }

    pub(super) fn clear(&self) {
        let mut rules = self.lock();
        rules.rules.clear();
        self.active.store(false, Relaxed);
    }

    pub(super) fn injected_by(&self, id: u64) -> u64 {
        self.lock().rules.iter().find(|rule| rule.id == id).map_or(0, |rule| rule.injected)
    }

    /// What happens to a request, by all rules that mean it; it is written down.
    pub(super) fn draw(&self, server: &Inner, asked: &Asked) -> Vec<Fault> {
        let mut drawn = Vec::new();
        for rule in &mut self.lock().rules {
            if rule.requests.means(asked) && rule.is_due() {
                let faults = drawn.len();
                drawn.extend(rule.faults.iter_mut().filter_map(Source::draw));
                rule.injected += u64::from(drawn.len() > faults);
            }
        }
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        for fault in &drawn {
            records.push_back(FaultRecord {
                time: server.clock.timestamp(),
                revision: server.storage.revision(),
                life: self.life(),
                request: format!("{} {}", asked.verb, asked.kind.resource()),
                path: asked.path.clone(),
                fault: fault.clone(),
            });
        }
        while records.len() > RECORDS {
            records.pop_front();
        }
        drawn
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a request that is meant; whether it is one of those that it happens to.
    fn is_due(&mut self) -> bool {
        self.seen += 1;
        let number = self.seen.saturating_sub(self.requests.after);
        number > 0 && self.requests.times.is_none_or(|times| number <= times)
    }
}

impl Source {
    fn of(fault: Fault) -> Self {
        match fault {
            Fault::Random { seed } => Self::Random(fastrand::Rng::with_seed(seed)),
            fault => Self::Always(fault),
        }
    }

    fn draw(&mut self) -> Option<Fault> {
        match self {
            Self::Always(fault) => Some(fault.clone()),
            Self::Random(rng) => random::draw(rng),
        }
    }
}
