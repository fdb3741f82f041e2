//! The task that packs, and decides what to pack against.
//!
//! - A kind with under 1 MiB of bodies has no dictionary, and stays raw: what has come waits in `pending`.
//! - The first dictionary is made of the first 4 MiB of bodies, or of what there is (but 1 MiB) when the first list ends.
//! - An object that is much like one that was packed before, of the same namespace and with a name of the same stem, is kept as
//!   what differs from that: it takes a fraction of the time, and less memory.
//! - When the first list is in the store, one that is spread over all of it is tried, since lists are sorted by namespace
//!   and the first bodies may be those of one team.
//! - When after that the last 100 objects that were like no other packed to 1.5 times the size that the dictionary was made
//!   with, and half as many have come since, another is tried: a new template has been rolled out, say. It is made of the last
//!   objects and of those in the store, half and half. If it is no better, twice as many objects must come before the next
//!   try.
//! - A dictionary that was tried replaces the one in use if it is a tenth better. What the old one was used for is then
//!   packed again, in the background, object by object from the store; until the old one is gone, there is no third.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use tokio::sync::{Notify, mpsc};
use tokio::task::coop::consume_budget;
use tokio::task::{JoinHandle, spawn_blocking, yield_now};
use tokio::time::{Instant, sleep_until, timeout};

use super::dictionary::{self, Better, Tried};
use super::models::{Models, Repacked};
use super::{Fresh, Known, Message, Packing};
use crate::defaults::{DICTIONARY_DRIFT, DICTIONARY_MIN_BODIES, DICTIONARY_WINDOW, REPACK_WAIT, REPACK_WAIT_MAX};
use crate::object::WeakObject;
use crate::object::packed::{Base, Dictionary};
use crate::{Object, ObjectKey};

pub(super) struct Task {
    messages: mpsc::UnboundedReceiver<Message>,
    hurry: Arc<Notify>,
    known: Option<Known>,
    status: Arc<Mutex<Packing>>,
    /// The first dictionary is made of this many bytes of bodies.
    sample: usize,
    first_list_ended: bool,
    /// What waits for the first dictionary.
    pending: Vec<WeakObject>,
    pending_bytes: usize,
    /// When `pending` has this many bytes, it is looked at.
    pending_limit: usize,
    current: Option<Arc<Dictionary>>,
    /// The dictionary before the current one.
    old: Weak<Dictionary>,
    /// The mean packed size when the dictionary was made.
    mean_at_creation: usize,
    recent: Recent,
    /// For how many objects these have packed badly.
    bad: usize,
    /// How many objects that were like no other have come since the last try, and how many must before the next.
    since_try: usize,
    patience: usize,
    models: Models,
    /// A dictionary over the whole store is to be tried.
    improve: bool,
    /// How many objects the store had when that was last looked at.
    stored: usize,
    /// There were none for long: all that was listed may have gone again. It is looked for, but nobody need wait for that.
    in_vain: bool,
    trying: Option<JoinHandle<(Sample, Tried)>>,
    /// Keys of the store that are still to be looked at for bodies of the old dictionary.
    pass: Option<std::vec::IntoIter<ObjectKey>>,
    /// What this pass has packed that others are spliced onto.
    repacked: Repacked,
    /// When to look after the old dictionary, or for a better one.
    look_at: Option<Instant>,
    wait: Duration,
    /// Since when there was nothing to do.
    at_rest_since: Instant,
}

/// The objects that were packed last, with their sizes.
#[derive(Default)]
struct Recent {
    objects: VecDeque<(WeakObject, usize)>,
    bytes: usize,
}

/// What messages have told, in their order: objects, and that a list ended behind them.
#[derive(Default)]
struct News {
    objects: Vec<Fresh>,
    list_ended: bool,
}

impl News {
    fn add(&mut self, message: Message) {
        match message {
            Message::Fresh(objects) if self.objects.is_empty() => self.objects = objects,
            Message::Fresh(objects) => self.objects.extend(objects),
            Message::ListEnded => self.list_ended = true,
        }
    }
}

/// What dictionaries are tried on.
#[derive(Clone, Copy)]
enum Sample {
    Store,
    StoreAndRecent,
}

/// As many objects that have come together are packed on a thread of their own.
const ASIDE: usize = 32;
/// As few wait for others, if there was so long a rest before them.
const REST: Duration = Duration::from_micros(300);
const VERY_FEW: usize = 4;
/// For so long, unless somebody is in a hurry.
const GATHERING: Duration = Duration::from_millis(10);
/// How long they wait for such a thread.
const ASIDE_WAIT: Duration = Duration::from_millis(10);
/// However often nothing better was found, another is tried when as many objects have come that are like no other.
const MOST_PATIENCE: usize = 100_000;
/// Objects of the store that are looked at between two looks at the messages.
const PASS_SLICE: usize = 16;
/// The most objects that a try looks at.
const TRY_OBJECTS: usize = 1024;

impl Task {
    pub(super) fn new(
        messages: mpsc::UnboundedReceiver<Message>,
        hurry: Arc<Notify>,
        known: Option<Known>,
        status: Arc<Mutex<Packing>>,
        sample: usize,
    ) -> Self {
        Self {
            messages,
            hurry,
            known,
            status,
            sample,
            first_list_ended: false,
            pending: Vec::new(),
            pending_bytes: 0,
            pending_limit: sample,
            current: None,
            old: Weak::new(),
            mean_at_creation: 0,
            recent: Recent::default(),
            bad: 0,
            since_try: 0,
            patience: DICTIONARY_WINDOW,
            models: Models::default(),
            improve: false,
            stored: 0,
            in_vain: false,
            trying: None,
            pass: None,
            repacked: Repacked::default(),
            look_at: None,
            wait: REPACK_WAIT,
            at_rest_since: Instant::now(),
        }
    }

    /// Runs until nobody can send any more, and what was sent is packed.
    pub(super) async fn run(mut self) {
        loop {
            let mut news = News::default();
            tokio::select! {
                biased;
                tried = tried(&mut self.trying) => self.tried(tried),
                message = self.messages.recv() => match message {
                    None => return,
                    Some(message) => {
                        news.add(message);
                        self.gather(&mut news).await;
                    }
                },
                () = sleep_until(self.look_at.unwrap_or_else(Instant::now)), if self.look_at.is_some() => self.look(),
                () = yield_now(), if self.pass.is_some() => self.pass_slice(),
            }
            if news.objects.len() >= ASIDE {
                self = match self.take_aside(news.objects).await {
                    Some(task) => task,
                    // The runtime is shutting down, or the store panicked.
                    None => return,
                };
            } else {
                for fresh in news.objects {
                    self.fresh(fresh);
                    consume_budget().await;
                }
            }
            if news.list_ended {
                self.list_ended();
            }
            self.note_plans();
            if self.messages.is_empty() {
                // Whoever was in a hurry has what was wanted.
                let _ = self.hurry.notified().now_or_never();
            }
            self.at_rest_since = Instant::now();
        }
    }

    /// Where objects come one by one, with rests between them, lets them wait for others. Who reads a watch hands each event on to
    /// a task that tells of it; if this one were woken each time as well, another thread would have to wake up to run one of the
    /// two. Where many come, they are better packed while they are in the processor's caches.
    async fn gather(&mut self, news: &mut News) {
        self.take_news(news);
        let few = news.objects.len() <= VERY_FEW && !news.list_ended;
        // Nobody rests while everything is packed anew.
        if few && self.pass.is_none() && self.at_rest_since.elapsed() >= REST {
            let _ = timeout(GATHERING, self.hurry.notified()).await;
            self.take_news(news);
        }
    }

    /// Takes what messages there are, while the objects are few.
    fn take_news(&mut self, news: &mut News) {
        while news.objects.len() < ASIDE
            && !news.list_ended
            && let Ok(message) = self.messages.try_recv()
        {
            news.add(message);
        }
    }

    /// Takes in many objects on a thread for what blocks, if one is free soon. All of them may be taken by those who wait for
    /// these very objects.
    async fn take_aside(self, objects: Vec<Fresh>) -> Option<Self> {
        let work = Arc::new(Mutex::new(Some((self, objects))));
        let take =
            |work: &Mutex<Option<(Self, Vec<Fresh>)>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
        let theirs = work.clone();
        let mut aside = spawn_blocking(move || take(&theirs).map(|(task, objects)| task.take_all(objects)));
        if let Ok(taken) = timeout(ASIDE_WAIT, &mut aside).await {
            return taken.ok().flatten();
        }
        match take(&work) {
            Some((task, objects)) => {
                aside.abort();
                Some(task.take_all(objects))
            }
            None => aside.await.ok().flatten(),
        }
    }

    /// Takes in many objects, on a thread of its own: whoever brings them so fast keeps a thread of the runtime busy, and woken
    /// from there this task would mostly run on that very thread, by turns.
    fn take_all(mut self, objects: Vec<Fresh>) -> Self {
        objects.into_iter().for_each(|fresh| self.fresh(fresh));
        self
    }

    /// Says whether there is something to be done even if nothing more comes.
    fn note_plans(&self) {
        let has_plans = self.trying.is_some() || self.pass.is_some() || (self.look_at.is_some() && !self.in_vain);
        self.count(|status| status.busy = has_plans || !self.messages.is_empty());
    }

    fn fresh(&mut self, Fresh { object, permit }: Fresh) {
        match object.upgrade() {
            Some(object) => self.take(&object, object.base_of_next().as_ref()),
            None => self.count(|status| status.skipped += 1),
        }
        // It has had its turn.
        drop(permit);
    }

    fn take(&mut self, object: &Object, base: Option<&Base>) {
        if std::mem::take(&mut self.in_vain) {
            self.wait = REPACK_WAIT;
            self.look_later();
        }
        match self.current.clone() {
            Some(dictionary) => {
                self.count(|status| status.packed += 1);
                self.models.make_room(object.size());
                // Onto one of an old dictionary it would keep that alive.
                let base = base.filter(|base| base.packed.is_against(&dictionary));
                let Some(size) = self.keep(object, base, &dictionary) else { return };
                self.recent.push(object, size);
                self.since_try = self.since_try.saturating_add(1);
                if self.has_drifted() && self.trying.is_none() && self.old.strong_count() == 0 {
                    self.try_another(Sample::StoreAndRecent);
                    (self.since_try, self.patience) = (0, (2 * self.patience).min(MOST_PATIENCE));
                    self.recent = Recent::default();
                }
            }
            None if object.size() > self.sample => {
                object.pack(None);
                self.count(|status| status.packed += 1);
            }
            None => {
                // It may wait for long.
                object.own_body();
                self.pending.push(object.downgrade());
                self.pending_bytes += object.size();
                if self.pending_bytes >= self.pending_limit {
                    self.look_at_pending();
                }
            }
        }
    }

    /// Keeps of an object what differs from another, or packs it: then it has this size.
    fn keep(&mut self, object: &Object, base: Option<&Base>, dictionary: &Arc<Dictionary>) -> Option<usize> {
        let json = object.raw()?;
        if self.models.splice(object, &json, base) {
            return None;
        }
        let size = object.pack(Some(dictionary));
        self.models.put(object, &json);
        Some(size)
    }

    fn list_ended(&mut self) {
        if self.first_list_ended {
            return;
        }
        self.first_list_ended = true;
        match self.current {
            Some(_) => self.improve_later(),
            None => self.look_at_pending(),
        }
    }

    /// Makes the first dictionary, if what waits is enough for one.
    fn look_at_pending(&mut self) {
        self.pending.retain(|object| !object.is_gone());
        let objects: Vec<Object> = self.pending.iter().filter_map(WeakObject::upgrade).collect();
        let bodies: Vec<Bytes> = objects.iter().filter_map(Object::raw).collect();
        self.pending_bytes = bodies.iter().map(Bytes::len).sum();
        let enough = if self.first_list_ended { DICTIONARY_MIN_BODIES.min(self.sample) } else { self.sample };
        let made = (self.pending_bytes >= enough)
            .then(|| dictionary::of_objects(&bodies, dictionary::largest(self.pending_bytes)))
            .flatten();
        let Some(made) = made else {
            // Not at each object: what is gone is found a little later then.
            self.pending_limit = enough.max(self.pending_bytes + enough / 8);
            return;
        };
        let dictionary = Arc::new(made);
        // Of all of them, and not only of those that will be packed, which are like no other.
        let some: Vec<Bytes> = spread(&bodies, DICTIONARY_WINDOW).cloned().collect();
        self.mean_at_creation = dictionary::mean_packed(&some, &dictionary);
        drop((bodies, some));
        self.pending = Vec::new();
        self.models.make_room(self.pending_bytes);
        self.use_dictionary(dictionary.clone());
        for object in &objects {
            self.keep(object, None, &dictionary);
        }
        self.count(|status| status.packed += objects.len() as u64);
        if self.first_list_ended {
            self.improve_later();
        }
    }

    /// A dictionary of the whole store is tried when the first list is there.
    fn improve_later(&mut self) {
        if let Some(known) = &self.known {
            self.stored = known.list_keys().len();
            self.improve = true;
            self.look_later();
        }
    }

    fn use_dictionary(&mut self, dictionary: Arc<Dictionary>) {
        if let Some(old) = self.current.replace(dictionary) {
            self.old = Arc::downgrade(&old);
        }
        self.recent = Recent::default();
        (self.since_try, self.patience) = (0, DICTIONARY_WINDOW);
        self.models.clear();
        self.count(|status| status.generation += 1);
        self.count_dictionaries();
        tracing::debug!("objects are packed against a new dictionary");
    }

    /// The last objects have packed badly, and have done so for some time: there are to be enough of the new ones to make a
    /// dictionary of. While the first list comes, that is no news: all of it is looked at when it is there.
    fn has_drifted(&mut self) -> bool {
        let is_bad = self.first_list_ended
            && !self.improve
            && self.recent.is_full()
            && self.recent.mean() as f64 > self.mean_at_creation as f64 * DICTIONARY_DRIFT;
        self.bad = if is_bad { self.bad + 1 } else { 0 };
        self.bad >= DICTIONARY_WINDOW / 2 && self.since_try >= self.patience
    }

    /// Looks for a better dictionary, on a thread of its own.
    fn try_another(&mut self, of: Sample) {
        let Some(current) = self.current.clone() else { return };
        let (stored, recent, count) = self.sample_objects(of);
        self.trying = Some(spawn_blocking(move || {
            let mean = mean_size(&stored, &recent);
            let total = count.saturating_mul(mean);
            let room = dictionary::trial_size(total, mean);
            let trial = dictionary::Trial::of(&by_turns(&stored, &recent, room / mean), room);
            (of, dictionary::find_better(&trial, total, &current))
        }));
    }

    /// Objects to try dictionaries on, of the store and of the last that came; and how many the kind has.
    fn sample_objects(&self, sample: Sample) -> (Vec<Object>, Vec<Object>, usize) {
        let recent: Vec<Object> = match sample {
            Sample::Store => Vec::new(),
            Sample::StoreAndRecent => self.recent.objects.iter().filter_map(|(object, _)| object.upgrade()).collect(),
        };
        let keys = self.known.as_ref().map(|known| known.list_keys()).unwrap_or_default();
        // Where it is not known which objects there are, it is known how many have come.
        let count = if self.known.is_some() { keys.len().max(recent.len()) } else { self.packed() };
        let of_store = match sample {
            Sample::Store => TRY_OBJECTS / 2,
            // Many of the last ones may be gone.
            Sample::StoreAndRecent => recent.len().clamp(DICTIONARY_WINDOW, TRY_OBJECTS / 2),
        };
        let stored: Vec<Object> = spread(&keys, of_store)
            .filter_map(|key| self.known.as_ref().and_then(|known| known.get_by_key(key)))
            .collect();
        let recent: Vec<Object> = spread(&recent, TRY_OBJECTS / 2).cloned().collect();
        (stored, recent, count)
    }

    fn tried(&mut self, tried: Option<(Sample, Tried)>) {
        self.trying = None;
        match tried {
            Some((_, Tried { better: Some(Better { dictionary, mean }), .. })) => {
                self.mean_at_creation = mean;
                self.use_dictionary(dictionary);
                self.wait = REPACK_WAIT;
                self.begin_pass();
            }
            // What was known of it before were the first objects that came.
            Some((Sample::Store, Tried { mean, better: None })) => self.mean_at_creation = mean,
            Some((Sample::StoreAndRecent, _)) | None => {}
        }
    }

    /// Time to look after what is left of the old dictionary, or for a better one.
    fn look(&mut self) {
        self.look_at = None;
        self.count_dictionaries();
        if self.old.strong_count() > 0 {
            self.begin_pass();
        } else if self.improve {
            // The list may still be on its way to the store: it is there when the store has all but stopped growing.
            let stored = self.known.as_ref().map_or(0, |known| known.list_keys().len());
            let before = std::mem::replace(&mut self.stored, stored);
            if self.trying.is_none() && stored > 0 && stored <= before + before / 10 {
                self.improve = false;
                self.try_another(Sample::Store);
            } else {
                self.in_vain = stored == 0 && self.wait == REPACK_WAIT_MAX;
                self.look_later();
            }
        }
    }

    fn look_later(&mut self) {
        self.look_at = Some(Instant::now() + self.wait);
        self.wait = (self.wait * 2).min(REPACK_WAIT_MAX);
    }

    fn begin_pass(&mut self) {
        match &self.known {
            Some(known) => self.pass = Some(known.list_keys().into_iter()),
            None => self.look_later(),
        }
    }

    fn pass_slice(&mut self) {
        let (Some(keys), Some(known), Some(current)) = (&mut self.pass, &self.known, &self.current) else { return };
        let mut repacked = 0;
        for key in keys.by_ref().take(PASS_SLICE) {
            let Some(object) = known.get_by_key(&key) else { continue };
            let is_moved = object.move_to(current, |packed| self.repacked.against(current, packed));
            repacked += u64::from(is_moved);
        }
        if keys.len() == 0 {
            self.pass = None;
            self.repacked = Repacked::default();
            // What is not in the store yet is found next time.
            if self.old.strong_count() > 0 {
                self.look_later();
            }
        }
        self.count(|status| status.repacked += repacked);
        self.count_dictionaries();
    }

    fn count(&self, change: impl FnOnce(&mut Packing)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// How many objects were packed so far.
    fn packed(&self) -> usize {
        let packed = self.status.lock().unwrap_or_else(PoisonError::into_inner).packed;
        usize::try_from(packed).unwrap_or(usize::MAX)
    }

    fn count_dictionaries(&self) {
        let in_use: Vec<_> = self.current.iter().cloned().chain(self.old.upgrade()).collect();
        self.count(|status| {
            status.dictionaries = in_use.len();
            status.dictionary_bytes = in_use.iter().map(|dictionary| dictionary.memory()).sum();
        });
    }
}

/// Nobody is there any more who would do what is left.
impl Drop for Task {
    fn drop(&mut self) {
        self.count(|status| status.busy = false);
    }
}

impl Recent {
    fn push(&mut self, object: &Object, size: usize) {
        self.bytes += size;
        self.objects.push_back((object.downgrade(), size));
        if self.objects.len() > DICTIONARY_WINDOW
            && let Some((_, size)) = self.objects.pop_front()
        {
            self.bytes -= size;
        }
    }

    fn is_full(&self) -> bool {
        self.objects.len() >= DICTIONARY_WINDOW
    }

    fn mean(&self) -> usize {
        self.bytes / self.objects.len().max(1)
    }
}

/// The result of a try that is under way.
async fn tried(trying: &mut Option<JoinHandle<(Sample, Tried)>>) -> Option<(Sample, Tried)> {
    match trying {
        // It did not panic; if the runtime is shutting down, nothing is better.
        Some(task) => task.await.ok(),
        None => pending().await,
    }
}

/// How large the bodies of these are, about.
fn mean_size(stored: &[Object], recent: &[Object]) -> usize {
    let some = spread(stored, 16).chain(spread(recent, 16));
    let lengths: Vec<usize> = some.filter_map(|object| Some(object.json().ok()?.len())).collect();
    (lengths.iter().sum::<usize>() / lengths.len().max(1)).max(1)
}

/// About so many of these, two of either by turns: whoever takes every other one has both.
fn by_turns(stored: &[Object], recent: &[Object], count: usize) -> Vec<Object> {
    let kinds = [stored, recent].into_iter().filter(|objects| !objects.is_empty()).count();
    let thinned = |objects| spread(objects, count.div_ceil(kinds.max(1))).cloned().collect();
    let (stored, recent): (Vec<Object>, Vec<Object>) = (thinned(stored), thinned(recent));
    let mut all = Vec::with_capacity(stored.len() + recent.len());
    let (mut stored, mut recent) = (stored.chunks(2), recent.chunks(2));
    while stored.len() + recent.len() > 0 {
        all.extend_from_slice(stored.next().unwrap_or_default());
        all.extend_from_slice(recent.next().unwrap_or_default());
    }
    all
}

/// At most `count` of `all`, evenly spread.
fn spread<T>(all: &[T], count: usize) -> impl Iterator<Item = &T> {
    let count = count.min(all.len());
    (0..count).map(move |number| &all[number * all.len() / count])
}
