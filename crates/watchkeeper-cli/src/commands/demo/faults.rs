//! A rain of faults between the server and whoever watches it from outside.
//!
//! A few rules lie in wait at a time, each for the next watch or list of some kind; when one has struck, another takes its
//! place. Now and then everything is cut, or the server restarts, so that there are requests to strike. All of it is such
//! that a correct client heals by itself within seconds. What is in this process, the cluster's own controllers, is only
//! hit by what hits everyone.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::{ApiServer, Ending, Fault, Match, Rule, StallAt};

/// How often one looks whether something has struck.
const STEP: Duration = Duration::from_millis(50);
/// When everyone is hit for the first time.
const FIRST: Duration = Duration::from_millis(300);
/// How many rules lie in wait at once.
const WAITING: usize = 4;
/// How many of the last faults are remembered.
const REMEMBERED: usize = 64;

/// A fault that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Injected {
    /// When.
    pub(crate) at: Timestamp,
    /// What it is called: `cut`.
    pub(crate) name: &'static str,
    /// Whom it hit, and how: `watch pods, reset after 2,120 bytes`.
    pub(crate) text: String,
}

/// Everything that was injected.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    /// How many there were.
    pub(crate) total: u64,
    /// How many of each sort.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// The last ones, oldest first.
    pub(crate) last: VecDeque<Injected>,
}

/// The rain. Clones are the same.
#[derive(Clone)]
pub(crate) struct Rain {
    log: Arc<Mutex<Log>>,
    is_on: Arc<std::sync::atomic::AtomicBool>,
}

/// A rule that lies in wait.
struct Waiting {
    rule: Rule,
    name: &'static str,
    text: String,
}

impl Rain {
    /// It does not rain before somebody lets it.
    pub(crate) fn new(is_on: bool) -> Self {
        Self { log: Arc::default(), is_on: Arc::new(is_on.into()) }
    }

    /// Whether it rains.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Begins to rain, or ceases.
    pub(crate) fn turn(&self) {
        self.is_on.fetch_xor(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// What has happened so far.
    pub(crate) fn log(&self) -> Log {
        self.lock().clone()
    }

    /// Rains on these kinds, whenever it is on, until the token is cancelled. No rule is left then.
    pub(crate) async fn fall(&self, server: &ApiServer, kinds: &[Arc<str>], seed: u64, token: CancellationToken) {
        let mut rng = Rng::with_seed(seed);
        let mut waiting: Vec<Waiting> = Vec::new();
        let _ = token.run_until_cancelled(self.steps(server, kinds, &mut rng, &mut waiting)).await;
        waiting.iter().for_each(|waiting| waiting.rule.remove());
    }

    async fn steps(&self, server: &ApiServer, kinds: &[Arc<str>], rng: &mut Rng, waiting: &mut Vec<Waiting>) {
        let mut until_cut = FIRST;
        loop {
            sleep(STEP).await;
            let struck = waiting.extract_if(.., |waiting| waiting.rule.injected() > 0);
            for Waiting { rule, name, text } in struck {
                rule.remove();
                self.note(name, text);
            }
            if !self.is_on() {
                waiting.drain(..).for_each(|waiting| waiting.rule.remove());
                continue;
            }
            while waiting.len() < WAITING && !kinds.is_empty() {
                waiting.push(lie_in_wait(server, &kinds[rng.usize(..kinds.len())], rng));
            }
            until_cut = until_cut.saturating_sub(STEP);
            if until_cut.is_zero() {
                until_cut = pause(rng);
                self.hit_everyone(server, rng);
            }
        }
    }

    fn hit_everyone(&self, server: &ApiServer, rng: &mut Rng) {
        match rng.u32(..6) {
            0 => {
                server.faults().restart(true);
                self.note("restart", "the server restarts".to_owned());
            }
            1 => {
                let revision = server.storage().revision();
                server.compact(revision);
                server.faults().cut();
                self.note("compaction", format!("all history up to {revision} is forgotten"));
            }
            _ => {
                server.faults().cut();
                self.note("cut", "all connections are cut".to_owned());
            }
        }
    }

    fn note(&self, name: &'static str, text: String) {
        let mut log = self.lock();
        log.total += 1;
        *log.counts.entry(name).or_default() += 1;
        if log.last.len() >= REMEMBERED {
            log.last.pop_front();
        }
        log.last.push_back(Injected { at: Timestamp::now(), name, text });
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long until everyone is hit again.
fn pause(rng: &mut Rng) -> Duration {
    Duration::from_millis(rng.u64(1_000..2_800))
}

/// Lets something happen to the next request for a kind that comes from outside.
fn lie_in_wait(server: &ApiServer, kind: &str, rng: &mut Rng) -> Waiting {
    let (name, fault, how) = draw(rng);
    let requests = Match { kind: Some(kind.to_owned()), ..Match::any() }.from_outside().once();
    let plural = kind.split('.').next().unwrap_or(kind);
    Waiting { rule: server.faults().on(requests).then(fault), name, text: format!("{plural}: {how}") }
}

fn draw(rng: &mut Rng) -> (&'static str, Fault, String) {
    match rng.u32(..12) {
        0 => ("429", Fault::status(429, "TooManyRequests").retry_after(1), "429, come back in 1 s".to_owned()),
        1 => ("500", Fault::status(500, "InternalError"), "500 Internal Server Error".to_owned()),
        2 => ("503", Fault::status(503, "ServiceUnavailable"), "503 Service Unavailable".to_owned()),
        3 | 4 => ("410", Fault::expired(), "410, its version is too old".to_owned()),
        5 => (
            "410",
            Fault::ErrorEvent { nth: 1, code: 410, reason: "Expired".to_owned() },
            "410 within the watch".to_owned(),
        ),
        6 => ("refusal", Fault::Refuse, "the connection is refused".to_owned()),
        7 => {
            let time = Duration::from_millis(rng.u64(1_000..3_000));
            let fault = Fault::Stall { at: StallAt::Headers, time: Some(time) };
            ("stall", fault, format!("no answer for {:.1} s", time.as_secs_f64()))
        }
        8 => {
            let time = Duration::from_millis(rng.u64(1_000..3_000));
            let fault = Fault::Stall { at: StallAt::Bytes(rng.usize(..20_000)), time: Some(time) };
            ("stall", fault, format!("it stands still for {:.1} s", time.as_secs_f64()))
        }
        9 => ("truncation", Fault::Truncate, "the answer ends in the middle".to_owned()),
        number => {
            let bytes = rng.usize(500..40_000);
            let (ending, how) = if number == 10 { (Ending::Fin, "closed") } else { (Ending::Reset, "reset") };
            (
                "cut",
                Fault::cut_after_bytes(bytes, ending),
                format!("{how} after {} bytes", crate::terminal::count(bytes as u64)),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rules_go_with_the_rain() {
        let server = ApiServer::new();
        let rain = Rain::new(true);
        let token = CancellationToken::new();
        let kinds = [Arc::from("pods")];
        let stop = async {
            sleep(Duration::from_secs(20)).await;
            token.cancel();
        };
        tokio::join!(rain.fall(&server, &kinds, 1, token.clone()), stop);
        let log = rain.log();
        assert!(log.total >= 4, "{log:?}");
        assert_eq!(log.counts.values().sum::<u64>(), log.total);
        // Nothing lies in wait any more.
        let before = server.faults().injected().len();
        let pods: kube_client::Api<k8s_openapi::api::core::v1::Pod> = kube_client::Api::all(server.client());
        assert!(pods.list(&Default::default()).await.is_ok());
        assert_eq!(server.faults().injected().len(), before);
    }
}
