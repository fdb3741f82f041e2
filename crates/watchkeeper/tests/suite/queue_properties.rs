//! Long random histories: each queue does what a slow and simple one does, and the store ends up with the truth.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use watchkeeper::KnownObjects as _;
use watchkeeper::queue::{Closed, Delta, DeltasGuard, Entry};

use crate::queue_support::*;

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
enum Step {
    Add(usize),
    Update(usize),
    Delete(usize),
    DeleteKey(usize),
    AddIfNotPresent(usize),
    Replace(Vec<usize>),
    Resync,
    Bookmark,
    Pop { batch: bool },
    Done { apply: bool },
    Requeue,
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..KEYS.len();
    let step = prop_oneof![
        3 => key.clone().prop_map(Step::Add),
        3 => key.clone().prop_map(Step::Update),
        4 => key.clone().prop_map(Step::Delete),
        1 => key.clone().prop_map(Step::DeleteKey),
        1 => key.clone().prop_map(Step::AddIfNotPresent),
        2 => proptest::collection::vec(key, 0..5).prop_map(Step::Replace),
        2 => Just(Step::Resync),
        1 => Just(Step::Bookmark),
        6 => any::<bool>().prop_map(|batch| Step::Pop { batch }),
        5 => proptest::bool::weighted(0.9).prop_map(|apply| Step::Done { apply }),
        2 => Just(Step::Requeue),
        1 => Just(Step::Close),
    ];
    proptest::collection::vec(step, 1..120)
}

/// A `DeltaFifo` as one would write it with all the time in the world: lists of texts, looked through from the
/// beginning.
#[derive(Default)]
struct Slow {
    waiting: Vec<(String, Vec<Delta<Item>>)>,
    in_hand: Option<(String, Vec<Delta<Item>>)>,
    /// Deletions that came while a deletion of the key was in hand and nothing of it waited.
    beside: Vec<Delta<Item>>,
    populated: bool,
    /// Keys of the first list that have not been processed.
    initial: Vec<String>,
    initial_in_hand: bool,
    closed: bool,
}

impl Slow {
    fn waits(&self, key: &str) -> bool {
        self.waiting.iter().any(|(waiting, _)| waiting == key)
    }

    fn queued(&self, key: &str) -> bool {
        self.waits(key) || self.in_hand.as_ref().is_some_and(|(in_hand, _)| in_hand == key)
    }

    fn push(&mut self, key: &str, delta: Delta<Item>) {
        let in_hand = self.in_hand.as_ref().filter(|(in_hand, _)| in_hand == key).and_then(|(_, deltas)| deltas.last());
        if delta.is_deletion() && !self.waits(key) && in_hand.is_some_and(Delta::is_deletion) {
            self.beside = collapse(self.beside.iter().cloned().chain([delta]).collect());
            return;
        }
        match self.waiting.iter_mut().find(|(waiting, _)| waiting == key) {
            Some((_, deltas)) => {
                deltas.push(delta);
                *deltas = collapse(deltas.clone());
            }
            None => self.waiting.push((key.to_owned(), vec![delta])),
        }
    }

    fn delete(&mut self, key: &str, deletion: Delta<Item>, store: &TestStore) {
        self.populated = true;
        if self.queued(key) || store.get_by_key(&key.to_owned()).is_some() {
            self.push(key, deletion);
        }
    }

    fn replace(&mut self, items: Vec<Item>, store: &TestStore) {
        let mut gone = Vec::new();
        if let Some((key, deltas)) = &self.in_hand
            && !self.waits(key)
        {
            gone.push((key.clone(), deltas.last().and_then(|delta| delta.object().cloned())));
        }
        for (key, deltas) in &self.waiting {
            gone.push((key.clone(), deltas.last().and_then(|delta| delta.object().cloned())));
        }
        for key in store.list_keys().into_iter().filter(|key| !self.queued(key)) {
            let known = store.get_by_key(&key);
            gone.push((key, known));
        }
        gone.retain(|(key, _)| items.iter().all(|item| item.name != *key));
        if !self.populated {
            self.populated = true;
            self.initial =
                items.iter().map(|item| item.name.clone()).chain(gone.iter().map(|(key, _)| key.clone())).collect();
            self.initial.sort();
            self.initial.dedup();
        }
        for item in items {
            self.push(&item.name.clone(), Delta::Replaced(item));
        }
        for (key, object) in gone {
            self.push(&key, Delta::Deleted { object, final_state_known: false });
        }
    }

    fn shown(&self) -> Vec<Vec<String>> {
        let shown = |(key, deltas): &(String, Vec<Delta<Item>>)| deltas.iter().map(|delta| text(key, delta)).collect();
        self.waiting.iter().map(shown).collect()
    }

    fn pop(&mut self) -> Option<Vec<String>> {
        if self.waiting.is_empty() {
            return None;
        }
        let (key, deltas) = self.waiting.remove(0);
        let shown = deltas.iter().map(|delta| text(&key, delta)).collect();
        self.initial_in_hand = self.initial.contains(&key);
        self.in_hand = Some((key, deltas));
        Some(shown)
    }

    fn done(&mut self, store: &TestStore) {
        let Some((key, _)) = self.in_hand.take() else { return };
        if std::mem::take(&mut self.initial_in_hand) {
            self.initial.retain(|initial| *initial != key);
        }
        let beside = std::mem::take(&mut self.beside);
        if !beside.is_empty() && store.get_by_key(&key).is_some() {
            self.put_in_front(key, beside);
        }
    }

    fn requeue(&mut self) {
        let Some((key, mut deltas)) = self.in_hand.take() else { return };
        self.initial_in_hand = false;
        deltas.append(&mut self.beside);
        self.put_in_front(key, deltas);
    }

    fn put_in_front(&mut self, key: String, mut older: Vec<Delta<Item>>) {
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == key) {
            Some((_, deltas)) => {
                older.append(deltas);
                *deltas = collapse(older);
            }
            None => self.waiting.push((key, collapse(older))),
        }
    }

    fn has_synced(&self) -> bool {
        self.populated && self.initial.is_empty()
    }
}

/// Of deletions in a row one stays: the last that was seen, or else the first with an object, or else the first.
fn collapse(deltas: Vec<Delta<Item>>) -> Vec<Delta<Item>> {
    let mut collapsed: Vec<Delta<Item>> = Vec::new();
    for delta in deltas {
        let better = match (collapsed.last(), &delta) {
            (
                Some(Delta::Deleted { object, final_state_known }),
                Delta::Deleted { object: later, final_state_known: seen },
            ) => *seen || (object.is_none() && later.is_some() && !*final_state_known),
            _ => {
                collapsed.push(delta);
                continue;
            }
        };
        if better {
            collapsed.pop();
            collapsed.push(delta);
        }
    }
    collapsed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_delta_fifo_does_what_a_simple_one_does(steps in steps()) {
        let store = TestStore::of([]);
        let (queue, mut consumer) = fifo().known_objects(store.clone()).emit_replaced(true).build();
        let mut slow = Slow::default();
        // What is in hand lives as long as the borrow of the consumer: a run of steps between pop and done.
        let mut steps: VecDeque<(usize, Step)> = steps.into_iter().enumerate().collect();
        let produce = |slow: &mut Slow, value: usize, step: &Step| {
            let value = value as i64;
            match step {
                Step::Add(key) => {
                    queue.add(item(KEYS[*key], value)).expect("a key");
                    slow.populated = true;
                    slow.push(KEYS[*key], Delta::Added(item(KEYS[*key], value)));
                }
                Step::Update(key) => {
                    queue.update(item(KEYS[*key], value)).expect("a key");
                    slow.populated = true;
                    slow.push(KEYS[*key], Delta::Updated(item(KEYS[*key], value)));
                }
                Step::Delete(key) => {
                    queue.delete(item(KEYS[*key], value)).expect("a key");
                    let object = Some(item(KEYS[*key], value));
                    slow.delete(KEYS[*key], Delta::Deleted { object, final_state_known: true }, &store);
                }
                Step::DeleteKey(key) => {
                    queue.delete_key(KEYS[*key].into(), None);
                    slow.delete(KEYS[*key], Delta::Deleted { object: None, final_state_known: false }, &store);
                }
                Step::AddIfNotPresent(key) => {
                    queue.add_if_not_present(item(KEYS[*key], value)).expect("a key");
                    slow.populated = true;
                    if !slow.queued(KEYS[*key]) {
                        slow.push(KEYS[*key], Delta::Added(item(KEYS[*key], value)));
                    }
                }
                Step::Replace(keys) => {
                    let items: Vec<Item> = keys.iter().map(|key| item(KEYS[*key], value)).collect();
                    queue.replace(items.clone(), version("1")).expect("keys");
                    slow.replace(items, &store);
                }
                Step::Resync => {
                    queue.resync();
                    for key in store.list_keys() {
                        if !slow.queued(&key) {
                            let known = store.get_by_key(&key).expect("known");
                            slow.push(&key, Delta::Sync(known));
                        }
                    }
                }
                Step::Close => {
                    queue.close();
                    slow.closed = true;
                }
                Step::Bookmark | Step::Pop { .. } | Step::Done { .. } | Step::Requeue => {}
            }
            let keys = queue.list_keys();
            let waiting: Vec<_> = keys.iter().map(|key| texts(&queue.deltas(key).expect("waiting"))).collect();
            assert_eq!(waiting, slow.shown(), "after {step:?}");
            assert_eq!(queue.has_synced(), slow.has_synced(), "after {step:?}");
        };
        while let Some((value, step)) = steps.pop_front() {
            if !matches!(step, Step::Pop { .. }) {
                produce(&mut slow, value, &step);
                continue;
            }
            let unsynced = !slow.has_synced();
            let expected = slow.pop();
            let guard = match consumer.try_pop() {
                Err(Closed) => {
                    assert!(slow.closed && expected.is_none());
                    continue;
                }
                Ok(None) => {
                    assert!(!slow.closed && expected.is_none());
                    continue;
                }
                Ok(Some(guard)) => guard,
            };
            assert_eq!(Some(texts(&guard)), expected);
            assert_eq!(guard.is_in_initial_list(), unsynced);
            loop {
                match steps.pop_front() {
                    Some((_, Step::Done { apply })) => {
                        if apply {
                            guard.iter().for_each(|delta| store.apply(guard.key(), delta));
                        }
                        drop(guard);
                        slow.done(&store);
                        break;
                    }
                    Some((_, Step::Requeue)) => {
                        DeltasGuard::requeue(guard);
                        slow.requeue();
                        break;
                    }
                    Some((value, step)) => produce(&mut slow, value, &step),
                    None => return Ok(()),
                }
            }
            produce(&mut slow, 0, &Step::Bookmark);
        }
    }

    #[test]
    fn a_delta_fifo_and_its_store_end_up_with_the_truth(steps in steps(), unnoticed in any::<u64>()) {
        let store = TestStore::of([]);
        let (queue, mut consumer) = fifo().known_objects(store.clone()).emit_replaced(true).build();
        let mut truth: BTreeMap<String, i64> = BTreeMap::new();
        let mut steps: VecDeque<(usize, Step)> = steps.into_iter().enumerate().collect();
        let produce = |truth: &mut BTreeMap<String, i64>, value: usize, step: &Step| {
            let value = value as i64;
            match step {
                Step::Add(key) | Step::Update(key) | Step::AddIfNotPresent(key) => {
                    truth.insert(KEYS[*key].into(), value);
                    queue.update(item(KEYS[*key], value)).expect("a key");
                }
                Step::Delete(key) | Step::DeleteKey(key) => {
                    if truth.remove(KEYS[*key]).is_some() {
                        queue.delete(item(KEYS[*key], value)).expect("a key");
                    }
                }
                Step::Replace(_) => {
                    // Some are gone, and nobody was told.
                    let gone = (unnoticed >> (value % 60)) & 15;
                    truth.retain(|key, _| gone & (1 << KEYS.iter().position(|name| name == key).expect("a key")) == 0);
                    let items = truth.iter().map(|(key, value)| item(key, *value)).collect();
                    queue.replace(items, version("1")).expect("keys");
                }
                Step::Resync => queue.resync(),
                Step::Bookmark | Step::Pop { .. } | Step::Done { .. } | Step::Requeue | Step::Close => {}
            }
        };
        while let Some((value, step)) = steps.pop_front() {
            if !matches!(step, Step::Pop { .. }) {
                produce(&mut truth, value, &step);
                continue;
            }
            let Ok(Some(guard)) = consumer.try_pop() else { continue };
            loop {
                match steps.pop_front() {
                    Some((_, Step::Requeue)) => {
                        guard.requeue();
                        break;
                    }
                    Some((_, Step::Done { .. })) | None => {
                        guard.iter().for_each(|delta| store.apply(guard.key(), delta));
                        break;
                    }
                    Some((value, step)) => produce(&mut truth, value, &step),
                }
            }
        }
        while let Ok(Some(guard)) = consumer.try_pop() {
            guard.iter().for_each(|delta| store.apply(guard.key(), delta));
        }
        prop_assert_eq!(store.contents(), truth);
    }

    #[test]
    fn an_atomic_fifo_is_a_plain_line(steps in steps()) {
        let (queue, mut consumer) = atomic().build();
        let mut line: Vec<String> = Vec::new();
        let (mut populated, mut closed) = (false, false);
        // How many entries have yet to be processed until the queue is synced.
        let mut initial = 0;
        let mut steps: VecDeque<(usize, Step)> = steps.into_iter().enumerate().collect();
        let mut produce = |line: &mut Vec<String>, initial: &mut usize, closed: &mut bool, value: usize, step: &Step| {
            let value = value as i64;
            let change = |key: &usize| item(KEYS[*key], value);
            match step {
                Step::Add(key) => {
                    queue.add(change(key)).expect("a key");
                    line.push(format!("Added {}={value}", KEYS[*key]));
                }
                Step::Update(key) | Step::AddIfNotPresent(key) => {
                    queue.update(change(key)).expect("a key");
                    line.push(format!("Updated {}={value}", KEYS[*key]));
                }
                Step::Delete(key) => {
                    queue.delete(change(key)).expect("a key");
                    line.push(format!("Deleted {}={value}", KEYS[*key]));
                }
                Step::DeleteKey(key) => {
                    queue.delete_key(KEYS[*key].into(), None);
                    line.push(format!("Deleted? {}", KEYS[*key]));
                }
                Step::Replace(keys) => {
                    queue.replace(keys.iter().map(change).collect(), version("1")).expect("keys");
                    let items: Vec<String> = keys.iter().map(|key| format!("{}={value}", KEYS[*key])).collect();
                    line.push(format!("ReplacedAll@1 {}", items.join(",")));
                    if !populated {
                        *initial = line.len();
                    }
                }
                Step::Resync => {
                    queue.resync();
                    line.push("SyncAll".into());
                }
                Step::Bookmark => {
                    queue.bookmark(version("2"));
                    line.push("Bookmark@2".into());
                }
                Step::Close => {
                    queue.close();
                    *closed = true;
                }
                Step::Pop { .. } | Step::Done { .. } | Step::Requeue => {}
            }
            populated |= matches!(
                step,
                Step::Add(_)
                    | Step::Update(_)
                    | Step::AddIfNotPresent(_)
                    | Step::Delete(_)
                    | Step::DeleteKey(_)
                    | Step::Replace(_)
            );
            (populated, queue.entries().iter().map(entry_text).collect::<Vec<_>>())
        };
        while let Some((value, step)) = steps.pop_front() {
            let Step::Pop { batch } = step else {
                let (_, waiting) = produce(&mut line, &mut initial, &mut closed, value, &step);
                prop_assert_eq!(waiting, line.clone());
                continue;
            };
            let synced = queue.has_synced();
            let guard = if batch { consumer.try_pop_batch() } else { consumer.try_pop() };
            let guard = match guard {
                Ok(Some(guard)) => guard,
                Ok(None) => {
                    prop_assert!(line.is_empty() && !closed);
                    continue;
                }
                Err(Closed) => {
                    prop_assert!(line.is_empty() && closed);
                    continue;
                }
            };
            prop_assert_eq!(guard.is_in_initial_list(), !synced);
            let taken: Vec<String> = guard.iter().map(entry_text).collect();
            prop_assert_eq!(&taken[..], &line[..taken.len()]);
            // As long as it may be, and no longer.
            let keys: Vec<Option<&String>> = guard.iter().map(Entry::key).collect();
            let limit = if initial > 0 { initial } else { usize::MAX };
            prop_assert!(taken.len() == 1 || (batch && taken.len() <= limit));
            for (place, key) in keys.iter().enumerate() {
                prop_assert!(taken.len() == 1 || (key.is_some() && !keys[..place].contains(key)));
            }
            if batch && taken.len() < limit && keys[0].is_some() && let Some(next) = line.get(taken.len()) {
                let next_key = next.split_once(' ').and_then(|(_, rest)| rest.split('=').next()).map(str::to_owned);
                let is_object = !["ReplacedAll", "SyncAll", "Bookmark"].iter().any(|start| next.starts_with(start));
                let must_wait = !is_object || keys.contains(&next_key.as_ref());
                prop_assert!(must_wait, "{} could have come with {:?}", next, taken);
            }
            let was_initial = initial > 0;
            initial = initial.saturating_sub(taken.len());
            line.drain(..taken.len());
            loop {
                match steps.pop_front() {
                    Some((_, Step::Done { .. })) | None => {
                        drop(guard);
                        break;
                    }
                    Some((_, Step::Requeue)) => {
                        guard.requeue();
                        if was_initial || initial > 0 {
                            initial += taken.len();
                        }
                        line.splice(..0, taken);
                        break;
                    }
                    Some((value, step)) => {
                        let (populated, waiting) = produce(&mut line, &mut initial, &mut closed, value, &step);
                        prop_assert_eq!(waiting, line.clone());
                        prop_assert_eq!(queue.has_synced(), populated && initial == 0 && !was_initial);
                    }
                }
            }
        }
    }
}
