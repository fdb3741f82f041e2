//! What does the measured process do?
//!
//! It makes a copy, says what that took, and then listens. What it says are lines of JSON on stdout, for the process that
//! started it.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use k8s_openapi::api::core::v1::Pod;
use kube_client::core::DynamicObject;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Cause, Event, HandlerHandle, Keep, SharedInformer};

use super::pods::SENT;
use super::{KeepOption, Options, usage};
use crate::cluster::{Resource, kinds};
use crate::failure::{Exit, Failure, Outcome};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(100);
/// After this time without an event, none will come.
const SILENCE: Duration = Duration::from_secs(15);
/// How often it finds out whether anybody listens to it.
const ALIVE: Duration = Duration::from_secs(1);
/// What is still packed after this time is told as it is.
const SETTLING: Duration = Duration::from_secs(60);

/// What the process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// Nothing new: said to find out whether anybody is there.
    Alive,
    /// So many objects have come.
    Listed(u64),
    /// The copy is there.
    Synced(Sync),
    /// And this is what changes took.
    Done(Done),
}

/// What the copy took.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sync {
    pub(super) objects: u64,
    pub(super) time: Duration,
    /// From the start until all is packed.
    pub(super) cpu: Option<Duration>,
    pub(super) resident_before: Option<u64>,
    pub(super) resident: Option<u64>,
    pub(super) peak: Option<u64>,
}

/// What changes took, and what is kept in the end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) events: u64,
    pub(super) time: Duration,
    pub(super) cpu: Option<Duration>,
    /// From the write to the handler, sorted: the median, and what 99 of 100 stay below.
    pub(super) latency: Option<(Duration, Duration)>,
    /// JSON of all objects that there are in the end.
    pub(super) json: u64,
    /// What they take by the library's own count, dictionary included.
    pub(super) kept: u64,
    pub(super) objects: u64,
}

/// What handlers have heard.
#[derive(Default)]
struct Heard {
    events: AtomicU64,
    latencies: Mutex<Vec<Duration>>,
}

/// Makes a copy, and listens.
pub(super) async fn run(options: &Options) -> Outcome {
    tokio::spawn(end_alone());
    let access = options.access.connect().await?;
    let targets = kinds::targets(&access, std::slice::from_ref(&options.kind)).await?;
    let Some(target) = targets.first() else { return Err(Failure::usage("no kind was named")) };
    let source = options.scope.source(&access, target)?.keep(options.keep.keep(&target.resource));

    let (resident_before, cpu_before, started) = (usage::resident(), usage::cpu(), Instant::now());
    let informer: SharedInformer<DynamicObject> = SharedInformer::new(source);
    let heard = Arc::new(Heard::default());
    let _handlers = listen(&informer, options.handlers, &heard)?;
    informer.start(CancellationToken::new())?;
    let lister = {
        let synced = informer.synced();
        tokio::pin!(synced);
        loop {
            tokio::select! {
                synced = &mut synced => break synced?,
                () = sleep(LOOK) => say(&Line::Listed(informer.status().listed_objects))?,
            }
        }
    };
    let time = started.elapsed();
    settle().await;
    let since = |before: Option<Duration>| Some(usage::cpu()?.saturating_sub(before?));
    let objects = lister.list().len() as u64;
    let (resident, peak) = (usage::resident(), usage::peak());
    say(&Line::Synced(Sync { objects, time, cpu: since(cpu_before), resident_before, resident, peak }))?;

    // From here on it only listens.
    let (cpu_before, started) = (usage::cpu(), Instant::now());
    heard_all(&heard, options).await;
    let (time, cpu) = (started.elapsed(), since(cpu_before));
    // Who may list and not watch has heard nothing, which is not the same as that nothing happened.
    let error = informer.status().last_error.map(|(error, _)| error);
    if let Some(error) = error.filter(|error| error.is_forbidden() || error.is_unauthorized()) {
        return Err(error.into());
    }
    let (mut json, mut kept, mut objects) = (0, informer.packing().dictionary_bytes as u64, 0);
    for object in lister.list().untyped() {
        json += object.json().map_or(0, |json| json.len() as u64);
        kept += object.memory() as u64;
        objects += 1;
    }
    let latency = latency(&heard);
    say(&Line::Done(Done { events: heard.events.load(Relaxed), time, cpu, latency, json, kept, objects }))?;
    informer.shutdown().await;
    Ok(Exit::Ok)
}

/// Ends this process when the one that started it is gone, however that came about.
async fn end_alone() {
    while say(&Line::Alive).is_ok() {
        sleep(ALIVE).await;
    }
    std::process::exit(Exit::Error as i32);
}

/// Nanoseconds since 1970: the same in both processes.
pub(super) fn now_nanos() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos()
}

impl KeepOption {
    fn keep(self, resource: &Resource) -> Keep {
        match self {
            Self::Packed => Keep::Packed,
            Self::Raw => Keep::Raw,
            // As a program that reads pods would have it; of other kinds the type is not known.
            Self::Decoded if resource.full_name() == "pods" => Keep::decoded::<Pod>(),
            Self::Decoded => Keep::decoded::<DynamicObject>(),
        }
    }
}

/// Adds the handlers. The first one counts; the others cost what a handler costs.
fn listen(informer: &SharedInformer<DynamicObject>, number: u16, heard: &Arc<Heard>) -> Outcome<Vec<HandlerHandle>> {
    let mut handlers = Vec::new();
    for handler in 0..number {
        let heard = heard.clone();
        handlers.push(informer.on_event(move |event: &Event<DynamicObject>| {
            if handler > 0 || event.cause() == Cause::Initial {
                return;
            }
            let now = now_nanos();
            let sent = event.object().labels().get(SENT).and_then(|sent| sent.parse::<u128>().ok());
            if let Some(nanos) = sent.and_then(|sent| u64::try_from(now.saturating_sub(sent)).ok()) {
                let mut latencies = heard.latencies.lock().unwrap_or_else(PoisonError::into_inner);
                latencies.push(Duration::from_nanos(nanos));
            }
            heard.events.fetch_add(1, Relaxed);
        })?);
    }
    Ok(handlers)
}

/// Waits until this process has nothing to do any more: objects are packed behind the backs of those who read them.
async fn settle() {
    let started = Instant::now();
    let mut before = usage::cpu();
    while started.elapsed() < SETTLING {
        sleep(5 * LOOK).await;
        let now = usage::cpu();
        match (before, now) {
            (Some(before), Some(now)) if now.saturating_sub(before) > LOOK / 10 => {}
            (None, _) | (_, None) if started.elapsed() < 20 * LOOK => {}
            _ => return,
        }
        before = now;
    }
}

/// Listens until all changes that are made were heard, or for as long as was asked for.
async fn heard_all(heard: &Heard, options: &Options) {
    if options.events == 0 || options.handlers == 0 {
        return sleep(if options.events == 0 { options.observe } else { SILENCE }).await;
    }
    let (mut last, mut quiet_since) = (0, Instant::now());
    loop {
        let events = heard.events.load(Relaxed);
        if events >= u64::from(options.events) {
            return;
        }
        if events > last {
            (last, quiet_since) = (events, Instant::now());
        }
        if quiet_since.elapsed() > SILENCE {
            return;
        }
        sleep(LOOK / 10).await;
    }
}

fn latency(heard: &Heard) -> Option<(Duration, Duration)> {
    let mut all = heard.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
    all.sort_unstable();
    let at = |part: usize| all.get(all.len().saturating_sub(1) * part / 100).copied();
    Some((at(50)?, at(99)?))
}

fn say(line: &Line) -> Outcome<()> {
    let mut text = serde_json::to_string(line).map_err(std::io::Error::other)?;
    text.push('\n');
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
