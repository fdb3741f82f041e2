//! What handlers hear, folded up, is what the store shows, whatever happens.

use std::collections::BTreeMap;

use watchkeeper::{BadObject, Buffer, Cached, Cause, EventStream, HandlerOptions, ObjectKey, WatchEvent};

use super::*;
use crate::support::unreadable;

const SEEDS: u64 = 150;
const NAMESPACES: [&str; 2] = ["shop", "bank"];

/// What a handler knows by what it has heard, and the first thing that did not fit.
#[derive(Default)]
struct Fold {
    known: BTreeMap<ObjectKey, (String, String)>,
    synced: bool,
    problem: Option<String>,
    heard: Vec<String>,
}

fn state(object: &Object) -> (String, String) {
    (object.uid().unwrap_or_default().to_owned(), object.resource_version().to_string())
}

fn number(version: &str) -> u64 {
    version.parse().expect("a number")
}

impl Fold {
    fn hear(&mut self, event: &Event<Pod>, store: &Indexer<Object>, options: &Options) {
        let (key, before) = (event.key().clone(), self.known.get(event.key()).cloned());
        let now = state(event.object());
        let fits = match event {
            Event::Added { .. } => before.is_none(),
            Event::Updated { old, cause, .. } => {
                before.as_ref() == Some(&state(old))
                    && old.uid() == event.object().uid()
                    && (options.hears_unchanged()
                        || *cause == Cause::Resync
                        || now.1 != old.resource_version().as_str())
            }
            Event::Deleted { last, final_state_known, .. } => before.as_ref().is_some_and(|(uid, version)| {
                Some(uid.as_str()) == last.uid() && (*final_state_known || *version == now.1)
            }),
        };
        let is_late = self.synced && event.cause() == Cause::Initial;
        // The store has this state, or a later one, or the object is gone.
        let in_store = event.is_deletion()
            || store.get_by_key(&key).is_none_or(|stored| number(&state(&stored).1) >= number(&now.1));
        self.heard.push(words(event));
        if (!fits || is_late || !in_store) && self.problem.is_none() {
            self.problem = Some(format!("{event:?} after {before:?}, late: {is_late}, in the store: {in_store}"));
        }
        match event.is_deletion() {
            true => self.known.remove(&key),
            false => self.known.insert(key, now),
        };
    }
}

#[derive(Debug, Clone, Copy)]
struct Options {
    coalesce: bool,
    filter: bool,
    resync: bool,
    tell_unchanged: bool,
}

impl Options {
    fn random(random: &mut fastrand::Rng) -> Self {
        let mut flag = || random.u8(..3) == 0;
        Self { coalesce: flag(), filter: flag(), resync: flag(), tell_unchanged: flag() }
    }

    fn hears_unchanged(&self) -> bool {
        self.resync || self.tell_unchanged
    }

    fn build(&self) -> HandlerOptions<Pod> {
        let options = HandlerOptions::new().tell_unchanged(self.tell_unchanged);
        let options = if self.coalesce { options.buffer(Buffer::Coalesce) } else { options };
        let options = if self.resync { options.resync_period(seconds(7)) } else { options };
        if self.filter { options.filter(|pod: &Cached<Pod>| passes(pod)) } else { options }
    }
}

fn passes(object: &Object) -> bool {
    object.labels().get("app") == Some("web")
}

/// One who listens: a closure, or one who reads a stream now and then.
struct Listening {
    options: Options,
    fold: Arc<Mutex<Fold>>,
    handle: HandlerHandle,
    stream: Option<EventStream<Pod>>,
}

impl Listening {
    fn join(pods: &SharedInformer<Pod>, random: &mut fastrand::Rng) -> Self {
        let options = Options::random(random);
        let (fold, store) = (Arc::<Mutex<Fold>>::default(), pods.store().clone());
        if random.bool() {
            let stream = pods.events_with(options.build()).expect("a stream");
            return Self { options, fold, handle: stream.handle().clone(), stream: Some(stream) };
        }
        let into = fold.clone();
        let hear = move |event: &Event<Pod>| into.lock().expect("not poisoned").hear(event, &store, &options);
        let handle = pods.on_event_with(options.build(), hear).expect("a handler");
        Self { options, fold, handle, stream: None }
    }

    /// Reads up to this many events of a stream.
    async fn read(&mut self, store: &Indexer<Object>, events: usize) {
        let Some(stream) = &mut self.stream else { return };
        for _ in 0..events {
            tokio::select! {
                biased;
                event = stream.next() => {
                    let Some(event) = event else { return };
                    self.fold.lock().expect("not poisoned").hear(&event, store, &self.options);
                }
                () = settle() => return,
            }
        }
    }
}

/// Something happens.
fn step(cluster: &Cluster, random: &mut fastrand::Rng, recreated: &mut u32) {
    let namespace = NAMESPACES[random.usize(..2)];
    let name = format!("n{}", random.u8(..5));
    let key = ObjectKey::namespaced(namespace, &name);
    let labels = if random.bool() { r#""app":"web""# } else { r#""app":"api""# };
    let current = cluster.objects().into_iter().find(|object| *object.key() == key);
    let uid = current.as_ref().and_then(|object| object.uid()).map_or_else(|| format!("{name}-0"), str::to_owned);
    let bad = |version: &str| BadObject { key: Some(key.clone()), resource_version: version.into(), problem: "bad" };
    *recreated += 1;
    match random.u8(..16) {
        0..5 => cluster.put_with(namespace, &name, &uid, labels),
        5 | 6 => cluster.delete_in(namespace, &name),
        7 => {
            cluster.delete_in(namespace, &name);
            cluster.put_with(namespace, &name, &format!("{name}-{recreated}"), labels);
        }
        // The deletion is missed.
        8 => cluster.put_with(namespace, &name, &format!("{name}-{recreated}"), labels),
        9 => {
            if let Some(object) = current {
                cluster.send(if random.bool() { WatchEvent::Added(object) } else { WatchEvent::Modified(object) });
            }
        }
        10 => cluster.send(WatchEvent::Bad(bad(&cluster.version()))),
        11 => cluster.end_watches(),
        12 => cluster.bookmark(),
        13 => cluster.gap(|cluster| {
            for _ in 0..random.u8(..8) {
                let name = format!("n{}", random.u8(..5));
                match random.u8(..3) {
                    0 => cluster.delete_in(namespace, &name),
                    1 => cluster.put_with(namespace, &name, &format!("{name}-{}", random.u8(..3)), labels),
                    _ => cluster.put_with(namespace, &name, &format!("{name}-0"), labels),
                }
            }
        }),
        14 => {
            cluster.spoil_next_list([bad("1")]);
            cluster.gap(|cluster| cluster.delete_in(namespace, "n0"));
        }
        _ => {
            cluster.spoil_next_list([unreadable()]);
            cluster.gap(|cluster| cluster.delete_in(namespace, "n1"));
        }
    }
}

async fn play(seed: u64, queue: InformerQueue) {
    let mut random = fastrand::Rng::with_seed(seed);
    let cluster = Cluster::new();
    let mut recreated = 0;
    for _ in 0..random.usize(..10) {
        step(&cluster, &mut random, &mut recreated);
    }
    let source = if seed.is_multiple_of(3) { cluster.of_namespaces(&NAMESPACES) } else { cluster.clone() };
    let pods = informer(source, queue);
    let (store, mut listening, mut gone) = (pods.store().clone(), Vec::new(), Vec::new());
    (0..random.usize(..3)).for_each(|_| listening.push(Listening::join(&pods, &mut random)));
    start(&pods);
    for _ in 0..80 {
        step(&cluster, &mut random, &mut recreated);
        match random.u8(..12) {
            0 if listening.len() < 6 => listening.push(Listening::join(&pods, &mut random)),
            1 if !listening.is_empty() => {
                let leaving: Listening = listening.swap_remove(random.usize(..listening.len()));
                leaving.handle.remove();
                let heard = leaving.fold.lock().expect("not poisoned").heard.len();
                gone.push((leaving, heard));
            }
            2..5 => settle().await,
            5 => pass(Duration::from_millis(random.u64(1..3000))).await,
            6 => tokio::task::yield_now().await,
            7 if !listening.is_empty() => {
                let reader = random.usize(..listening.len());
                listening[reader].read(&store, random.usize(1..10)).await;
            }
            _ => {}
        }
        for one in &listening {
            one.fold.lock().expect("not poisoned").synced = one.handle.has_synced();
        }
    }
    // In the end there is a list without faults.
    pass(seconds(80)).await;
    cluster.gap(|_| {});
    pass(seconds(80)).await;
    let expected: BTreeMap<ObjectKey, (String, String)> =
        cluster.objects().iter().map(|object| (object.key().clone(), state(object))).collect();
    let stored: BTreeMap<ObjectKey, (String, String)> =
        store.list().iter().map(|object| (object.key().clone(), state(object))).collect();
    assert_eq!(stored, expected, "seed {seed}");
    for one in &mut listening {
        one.read(&store, 100_000).await;
        let fold = one.fold.lock().expect("not poisoned");
        let options = one.options;
        let trace = || format!("seed {seed}, {options:?}: {:#?}", fold.heard);
        assert_eq!(fold.problem, None, "{}", trace());
        let mut expected = expected.clone();
        if options.filter {
            let objects = cluster.objects();
            expected.retain(|key, _| objects.iter().any(|object| object.key() == key && passes(object)));
        }
        assert_eq!(fold.known, expected, "{}", trace());
        assert_eq!(one.handle.panics(), 0, "{}", trace());
        assert!(one.handle.has_synced(), "{}", trace());
    }
    for (one, heard) in gone {
        let fold = one.fold.lock().expect("not poisoned");
        assert_eq!((fold.problem.as_ref(), fold.heard.len()), (None, heard), "seed {seed}: it was removed");
    }
    pods.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_hears_folded_up_is_what_the_store_shows_and_old_is_what_it_heard_last() {
    let before = alive_tasks();
    for seed in 0..SEEDS {
        play(seed, InformerQueue::Atomic).await;
    }
    settle().await;
    assert_eq!(alive_tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_hears_folded_up_is_what_the_store_shows_also_through_a_delta_fifo() {
    let before = alive_tasks();
    for seed in 1000..1000 + SEEDS {
        play(seed, InformerQueue::Delta).await;
    }
    settle().await;
    assert_eq!(alive_tasks(), before);
}
