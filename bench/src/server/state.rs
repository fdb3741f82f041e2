//! What happens to the pods: events, watches that follow them, and versions that are forgotten.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::frames::Event;
use crate::pods::Pods;
use crate::ready::Ready;
use crate::templates::Format;
use crate::values::FRESH;

/// Events are rendered ahead if they take no more than this.
const MOST_READY_BYTES: usize = 1 << 30;
/// How many events a watch takes at a time.
const BATCH: usize = 128;
/// How long a watch without events waits until it looks whether its client is still there.
const IDLE: Duration = Duration::from_millis(250);

pub(crate) struct State {
    pub(crate) pods: Pods,
    formats: Vec<Format>,
    /// What all pods are at first, if they are few enough.
    initial: Vec<(Format, Ready)>,
    now: Mutex<Now>,
    changed: Condvar,
}

struct Now {
    /// How often all was forgotten; watches of before end.
    resets: u64,
    expirations: u64,
    /// Events up to this version are no longer known.
    forgotten: u64,
    /// The pods of the events behind that version, one version each. The first `published` have happened, the others will.
    events: Vec<u32>,
    published: usize,
    /// The first event is held back until a watch is live.
    waits_for_watch: bool,
    /// When events were written to the first watch, in nanoseconds since 1970.
    sent: Vec<u64>,
    /// By a pod's number: 0, or the version of its last event.
    revisions: Arc<Vec<u64>>,
    /// The events of the last request, rendered.
    ready: Vec<(Format, Arc<ReadyEvents>)>,
    /// The format of each watch that there is.
    watching: Vec<Format>,
}

/// Rendered events, from a version on.
pub(crate) struct ReadyEvents {
    first: u64,
    count: usize,
    chunks: Ready,
}

impl ReadyEvents {
    pub(crate) fn chunk(&self, version: u64) -> Option<&[u8]> {
        let nth = usize::try_from(version.checked_sub(self.first)?).ok()?;
        (nth < self.count).then(|| self.chunks.chunk(nth))
    }
}

/// All pods at one moment.
pub(crate) struct Snapshot {
    pub(crate) version: u64,
    pub(crate) revisions: Arc<Vec<u64>>,
}

/// A watch, as the state knows it. It must be given back with [`State::leave`].
pub(crate) struct Watch {
    format: Format,
    resets: u64,
    expirations: u64,
    /// All up to this version was taken.
    version: u64,
}

/// What a watch has to do next.
pub(crate) enum Next {
    /// Events of these pods, with versions from `first` on.
    Events {
        first: u64,
        numbers: Vec<u32>,
        ready: Option<Arc<ReadyEvents>>,
    },
    Nothing,
    Expired,
    Closed,
}

impl Watch {
    /// All up to this version was taken.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

impl State {
    /// Pods; they are rendered ahead if there are at most `ready_up_to`.
    pub(crate) fn new(pods: Pods, formats: Vec<Format>, ready_up_to: usize) -> Self {
        let render = |format: &Format| (*format, Ready::initial(&pods, *format));
        let initial = if pods.len() <= ready_up_to { formats.iter().map(render).collect() } else { Vec::new() };
        let now = Now {
            resets: 0,
            expirations: 0,
            forgotten: FRESH,
            events: Vec::new(),
            published: 0,
            waits_for_watch: false,
            sent: Vec::new(),
            revisions: Arc::new(vec![0; pods.len()]),
            ready: Vec::new(),
            watching: Vec::new(),
        };
        Self { pods, formats, initial, now: Mutex::new(now), changed: Condvar::new() }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a format was asked for at the start.
    pub(crate) fn serves(&self, format: Format) -> bool {
        self.formats.contains(&format)
    }

    pub(crate) fn initial(&self, format: Format) -> Option<&Ready> {
        self.initial.iter().find(|(other, _)| *other == format).map(|(_, ready)| ready)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.now().snapshot()
    }

    /// Whether a watch could begin behind `version`.
    pub(crate) fn knows(&self, version: u64) -> bool {
        let now = self.now();
        (now.forgotten..=now.version()).contains(&version)
    }

    /// Begins a watch, of the pods as they are now.
    pub(crate) fn watch(&self, format: Format) -> (Watch, Snapshot) {
        let mut now = self.now();
        now.watching.push(format);
        let snapshot = now.snapshot();
        let (resets, expirations) = (now.resets, now.expirations);
        (Watch { format, resets, expirations, version: snapshot.version }, snapshot)
    }

    /// Begins a watch behind `version`, unless that is no longer known.
    pub(crate) fn resume(&self, format: Format, version: u64) -> Option<Watch> {
        let mut now = self.now();
        if !(now.forgotten..=now.version()).contains(&version) {
            return None;
        }
        now.watching.push(format);
        Some(Watch { format, resets: now.resets, expirations: now.expirations, version })
    }

    /// The watch has all that was there when it began.
    pub(crate) fn is_live(&self, watch: &Watch) {
        let mut now = self.now();
        if now.waits_for_watch && now.expirations == watch.expirations && now.resets == watch.resets {
            now.waits_for_watch = false;
            now.publish_up_to(1);
            drop(now);
            self.changed.notify_all();
        }
    }

    pub(crate) fn leave(&self, watch: &Watch) {
        let mut now = self.now();
        if let Some(at) = now.watching.iter().position(|format| *format == watch.format) {
            now.watching.swap_remove(at);
        }
    }

    /// What is next for a watch. It waits a little for that.
    pub(crate) fn next(&self, watch: &mut Watch) -> Next {
        let mut now = self.now();
        if !now.has_news(watch) {
            let waited = self.changed.wait_timeout_while(now, IDLE, |now| !now.has_news(watch));
            now = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if now.resets != watch.resets {
            return Next::Closed;
        }
        if now.expirations != watch.expirations {
            return Next::Expired;
        }
        let start = (watch.version - now.forgotten) as usize;
        if start == now.published {
            return Next::Nothing;
        }
        let end = now.published.min(start + BATCH);
        let numbers = now.events[start..end].to_vec();
        let first = watch.version + 1;
        let ready = now.ready.iter().find(|(format, _)| *format == watch.format).map(|(_, ready)| ready.clone());
        watch.version += numbers.len() as u64;
        if now.sent.len() < end {
            now.sent.resize(end, nanoseconds());
        }
        Next::Events { first, numbers, ready }
    }

    /// All pods at revision 0, and no watch.
    pub(crate) fn reset(&self) {
        let mut now = self.now();
        now.resets += 1;
        now.forget(FRESH);
        now.revisions = Arc::new(vec![0; self.pods.len()]);
        drop(now);
        self.changed.notify_all();
    }

    /// Ends all watches with 410. The version of the event that the next live watch gets.
    pub(crate) fn expire(&self) -> u64 {
        let mut now = self.now();
        let version = now.version();
        now.expirations += 1;
        now.forget(version);
        now.events.push(0);
        now.waits_for_watch = true;
        drop(now);
        self.changed.notify_all();
        version + 1
    }

    /// Plans events, renders them, and leaves their publication to a thread of its own. The first and the last version.
    pub(crate) fn events(self: &Arc<Self>, count: usize, over: usize, rate: u64) -> (u64, u64) {
        let numbers = shuffled(count, over);
        let mut now = self.now();
        let start = now.events.len();
        now.events.extend_from_slice(&numbers);
        let first = now.forgotten + start as u64 + 1;
        let (resets, expirations) = (now.resets, now.expirations);
        let formats = now.watching.clone();
        now.ready.clear();
        drop(now);

        for format in [Format::Json, Format::Protobuf] {
            let size = self.pods.body(0, format).len() + 128;
            if formats.contains(&format) && size * count <= MOST_READY_BYTES {
                let events = numbers.iter().copied().zip(first..first + count as u64);
                let chunks = Ready::of(&self.pods, format, Event::Modified, events);
                self.now().ready.push((format, Arc::new(ReadyEvents { first, count, chunks })));
            }
        }
        let state = Arc::clone(self);
        std::thread::spawn(move || state.publish(start, count, rate, (resets, expirations)));
        (first, first + count as u64 - 1)
    }

    fn publish(&self, start: usize, count: usize, rate: u64, at: (u64, u64)) {
        let began = Instant::now();
        let mut done = 0;
        while done < count {
            let due = match rate {
                0 => count,
                _ => ((began.elapsed().as_secs_f64() * rate as f64) as usize + 1).min(count),
            };
            if due > done {
                let mut now = self.now();
                // Events of before come first.
                while (now.resets, now.expirations) == at && now.published < start + done {
                    now = self.changed.wait(now).unwrap_or_else(PoisonError::into_inner);
                }
                if (now.resets, now.expirations) != at {
                    return;
                }
                now.publish_up_to(start + due);
                drop(now);
                self.changed.notify_all();
                done = due;
            }
            if done < count {
                let next = Duration::from_secs_f64(done as f64 / rate as f64);
                std::thread::sleep(next.saturating_sub(began.elapsed()));
            }
        }
    }

    /// When events were written to the first watch. None if one of them was not.
    pub(crate) fn sent(&self, first: u64, last: u64) -> Option<Vec<u64>> {
        let now = self.now();
        let place = |version: u64| usize::try_from(version.checked_sub(now.forgotten + 1)?).ok();
        now.sent.get(place(first)?..=place(last)?).map(<[u64]>::to_vec)
    }
}

impl Now {
    fn version(&self) -> u64 {
        self.forgotten + self.published as u64
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { version: self.version(), revisions: Arc::clone(&self.revisions) }
    }

    fn has_news(&self, watch: &Watch) -> bool {
        (self.resets, self.expirations) != (watch.resets, watch.expirations) || self.version() > watch.version
    }

    fn publish_up_to(&mut self, end: usize) {
        let revisions = Arc::make_mut(&mut self.revisions);
        for (nth, number) in self.events[..end].iter().enumerate().skip(self.published) {
            revisions[*number as usize] = self.forgotten + nth as u64 + 1;
        }
        self.published = self.published.max(end);
    }

    fn forget(&mut self, up_to: u64) {
        self.forgotten = up_to;
        self.events = Vec::new();
        self.published = 0;
        self.waits_for_watch = false;
        self.sent = Vec::new();
        self.ready = Vec::new();
    }
}

/// The pods of `count` events: the first `over`, again and again, each time in another order.
fn shuffled(count: usize, over: usize) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut round: Vec<u32> = (0..over as u32).collect();
    let mut numbers = Vec::with_capacity(count + over);
    while numbers.len() < count {
        random.shuffle(&mut round);
        numbers.extend_from_slice(&round);
    }
    numbers.truncate(count);
    numbers
}

fn nanoseconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
