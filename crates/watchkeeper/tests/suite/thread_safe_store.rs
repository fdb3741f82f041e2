//! Stores that are told the keys: client-go's `thread_safe_store_test.go`, and what many threads do to one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tracing::Level;
use watchkeeper::{Change, Index, ResourceVersion, ThreadSafeStore};

use crate::support::{Logs, key, pod, without_deadlock};

type Words = ThreadSafeStore<String, String>;

/// A store of sentences, indexed by their words.
fn words() -> Words {
    ThreadSafeStore::new().with_index("word", Index::of(split)).expect("a name")
}

#[expect(clippy::ptr_arg, reason = "an index function of a store of strings")]
fn split(text: &String) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn put(store: &Words, key: &str, text: &str) {
    store.add(key.to_owned(), text.to_owned());
}

fn keys(store: &Words, word: &str) -> Vec<String> {
    store.index_keys("word", word).expect("an index")
}

#[test]
fn a_value_of_the_index_that_nothing_has_any_more_disappears() {
    let store = words();
    put(&store, "a", "x");
    store.delete(&"a".to_owned());
    assert_eq!(store.index_values("word").expect("an index"), [""; 0]);
    assert_eq!(keys(&store, "x"), [""; 0]);
}

#[test]
fn a_value_of_the_index_that_something_else_has_stays() {
    let store = words();
    put(&store, "a", "x");
    put(&store, "b", "x");
    store.delete(&"a".to_owned());
    assert_eq!(store.index_values("word").expect("an index"), ["x"]);
    assert_eq!(keys(&store, "x"), ["b"]);
}

#[test]
fn several_values_follow_adds_updates_and_deletions() {
    let store = words();
    put(&store, "a", "x y");
    put(&store, "b", "y z");
    assert_eq!(
        (keys(&store, "x"), keys(&store, "y"), keys(&store, "z")),
        (vec!["a".into()], vec!["a".into(), "b".into()], vec!["b".to_owned()])
    );
    store.update("a".to_owned(), "z z q".to_owned());
    assert_eq!(store.index_values("word").expect("an index"), ["q", "y", "z"]);
    assert_eq!((keys(&store, "y"), keys(&store, "z")), (vec!["b".to_owned()], vec!["a".to_owned(), "b".to_owned()]));
    put(&store, "a", "q");
    assert_eq!((keys(&store, "q"), keys(&store, "z")), (vec!["a".to_owned()], vec!["b".to_owned()]));
    put(&store, "a", "");
    store.delete(&"b".to_owned());
    assert_eq!(store.index_values("word").expect("an index"), [""; 0]);
    assert_eq!(store.len(), 1);
}

#[test]
fn the_last_version_is_that_of_the_last_change_that_has_one() {
    let store = ThreadSafeStore::new().version_of(|text: &String| text.strip_prefix('v').map(ResourceVersion::from));
    let is = |version: &str| assert_eq!(store.last_version().as_str(), version);
    let text = str::to_owned;
    is("");
    store.add(1, text("v10"));
    is("10");
    store.update(1, text("v9"));
    is("9");
    store.add(2, text("no version"));
    is("9");
    store.delete_with(&1, &text("v12"));
    is("12");
    store.delete_with(&99, &text("v13"));
    is("13");
    store.delete(&2);
    is("13");
    store.apply([(1, Change::Add(text("v20"))), (2, Change::Update(text("v15"))), (3, Change::Delete(None))]);
    is("15");
    store.apply([(1, Change::Delete(Some(text("v21"))))]);
    is("21");
    store.replace([(1, text("v99"))], ResourceVersion::from("50"));
    is("50");
    assert_eq!(store.snapshot().version().as_str(), "50");
    store.bookmark(&ResourceVersion::from("51"));
    is("51");
}

#[test]
fn the_last_version_of_objects_is_theirs() {
    let store = watchkeeper::Indexer::objects();
    store.add(pod("a", "3")).expect("a key");
    assert_eq!(store.last_version().as_str(), "3");
    store.delete(&pod("a", "5")).expect("a key");
    assert_eq!((store.last_version().as_str(), store.get_by_key(&key("a")).is_none()), ("5", true));
}

#[test]
fn readers_go_on_while_an_index_function_of_a_replacement_is_busy() {
    let (entered, has_entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new((entered, released));
    let store = ThreadSafeStore::new().with_index(
        "slow",
        Index::of(move |text: &String| {
            if text == "slow" {
                let gate = gate.lock().expect("not poisoned");
                gate.0.send(()).expect("somebody listens");
                gate.1.recv().expect("somebody releases");
            }
            [text.clone()]
        }),
    );
    let store: &Words = &store.expect("a name");
    put(store, "a", "before");
    std::thread::scope(|threads| {
        let replacement = threads.spawn(|| {
            store.replace([("a".to_owned(), "slow".to_owned())], ResourceVersion::from("2"));
        });
        has_entered.recv().expect("the function is called");
        assert_eq!(store.get(&"a".to_owned()).as_deref(), Some("before"));
        assert_eq!(store.by_index("slow", "before").expect("an index").len(), 1);
        put(store, "b", "meanwhile");
        assert_eq!(store.len(), 2, "writers need not wait for it either");
        release.send(()).expect("the function waits");
        replacement.join().expect("replaced");
    });
    assert_eq!(store.list(), ["slow"]);
}

#[test]
fn a_value_on_which_an_index_function_panics_is_stored_without_values_in_that_index() {
    let store: Words = ThreadSafeStore::new()
        .with_index("word", Index::of(no_bad_words))
        .and_then(|store| store.with_index("length", Index::of(|text: &String| [text.len().to_string()])))
        .expect("names");
    let words = || (store.index_values("word").expect("an index"), store.index_values("length").expect("an index"));
    let logs = Logs::capture();
    put(&store, "a", "x");
    put(&store, "a", "y bad");
    assert_eq!(words(), (vec![], vec!["5".to_owned()]), "neither the old values nor those before the panic");
    store.replace([("b".to_owned(), "y".to_owned()), ("c".to_owned(), "bad".to_owned())], "1".into());
    assert_eq!((store.len(), words()), (2, (vec!["y".to_owned()], vec!["1".to_owned(), "3".to_owned()])));
    store.apply([("b".to_owned(), Change::Delete(None)), ("d".to_owned(), Change::Add("z bad z".to_owned()))]);
    assert_eq!((store.len(), words()), (2, (vec![], vec!["3".to_owned(), "7".to_owned()])));
    let lines = logs.lines(Level::ERROR, "the index panicked");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[2].contains(r#"index=word key="d""#) && !lines[2].contains("bad"), "{lines:?}");
    put(&store, "c", "w");
    assert_eq!(keys(&store, "w"), ["c"]);
    assert_eq!(store.index("word", &"w bad".to_owned()).expect("an index"), [""; 0], "it shares none");
}

/// Panics when it comes to a bad one.
fn no_bad_words(text: &String) -> impl Iterator<Item = String> + use<> {
    split(text).into_iter().inspect(|word| assert_ne!(word, "bad"))
}

#[test]
fn an_index_function_may_read_the_store() {
    let slot: Arc<std::sync::OnceLock<Arc<Words>>> = Arc::default();
    let inner = slot.clone();
    let count = Index::of(move |_: &String| inner.get().map(|store| store.len().to_string()));
    let store: Arc<Words> = Arc::new(ThreadSafeStore::new().with_index("count", count).expect("a name"));
    assert!(slot.set(store.clone()).is_ok());
    put(&store, "a", "");
    put(&store, "b", "");
    assert_eq!(store.index_values("count").expect("an index"), ["0", "1"]);
}

/// Values panic when they are copied.
static PANIC: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Fragile(u32);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!PANIC.load(Ordering::Relaxed), "a copy that fails");
        Self(self.0)
    }
}

#[test]
fn a_value_that_cannot_be_copied_breaks_nothing() {
    let store = ThreadSafeStore::new().with_index("parity", Index::of(|f: &Fragile| [(f.0 % 2).to_string()]));
    let store: ThreadSafeStore<Fragile, u32> = store.expect("a name");
    for number in 0..10 {
        store.add(number, Fragile(number));
    }
    let snapshot = store.snapshot();
    PANIC.store(true, Ordering::Relaxed);
    let attempts: [&dyn Fn(); 3] = [&|| store.add(3, Fragile(4)), &|| store.delete(&3), &|| store.add(30, Fragile(30))];
    for attempt in attempts {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt)).expect_err("the copy's panic");
    }
    PANIC.store(false, Ordering::Relaxed);
    drop(snapshot);
    assert_eq!((store.len(), store.snapshot().iter().count()), (10, 10));
    assert_eq!(store.index_keys("parity", "1").expect("an index"), [1, 3, 5, 7, 9]);
    store.delete(&3);
    store.add(30, Fragile(30));
    assert_eq!(store.index_keys("parity", "0").expect("an index"), [0, 2, 4, 6, 8, 30]);
    assert_eq!(store.index_keys("parity", "1").expect("an index"), [1, 5, 7, 9]);
}

/// Writes to a store when it is dropped.
#[derive(Clone)]
struct Parting(std::sync::Weak<Partings>);

type Partings = ThreadSafeStore<Parting, PartingKey>;

impl Drop for Parting {
    fn drop(&mut self) {
        if let Some(store) = self.0.upgrade() {
            store.bookmark(&ResourceVersion::from("dropped"));
        }
    }
}

#[derive(Clone)]
struct PartingKey(u32, #[expect(dead_code, reason = "for its drop")] Parting);

impl PartialEq for PartingKey {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for PartingKey {}

impl PartialOrd for PartingKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PartingKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl std::hash::Hash for PartingKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl std::fmt::Debug for PartingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[test]
fn keys_and_values_are_dropped_with_no_lock_held() {
    without_deadlock(|| {
        let store: Arc<Partings> = Arc::new(ThreadSafeStore::new());
        let value = || Parting(Arc::downgrade(&store));
        let key = |number| PartingKey(number, value());
        store.add(key(1), value());
        store.update(key(1), value());
        store.delete(&key(1));
        store.replace([(key(1), value()), (key(1), value()), (key(2), value())], "1".into());
        store.replace([(key(1), value())], "2".into());
        store.apply([(key(1), Change::Update(value())), (key(1), Change::Delete(Some(value())))]);
        // So many that the store is made anew when most are gone.
        store.apply((0..6000).map(|number| (key(number), Change::Add(value()))));
        store.apply((0..5999).map(|number| (key(number), Change::Delete(None))));
        assert_eq!((store.len(), store.last_version().as_str()), (1, "dropped"));
    });
}

/// Keys of one hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Colliding(u32);

impl std::hash::Hash for Colliding {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        0_u8.hash(state);
    }
}

#[test]
fn keys_of_one_hash_are_told_apart() {
    let store = ThreadSafeStore::new();
    for number in 0..600 {
        store.add(Colliding(number), number);
    }
    for number in (0..600).step_by(2) {
        store.delete(&Colliding(number));
    }
    assert!((0..600).all(|number| store.get(&Colliding(number)) == (number % 2 == 1).then_some(number)));
}

#[test]
fn a_key_is_replaced_with_its_value_and_not_kept() {
    let store = ThreadSafeStore::new();
    let (old, new) = (Arc::new(7), Arc::new(7));
    store.add(old.clone(), "old");
    store.update(new.clone(), "new");
    assert_eq!((Arc::strong_count(&old), Arc::strong_count(&new)), (1, 2));
}

#[test]
fn a_store_that_has_become_nearly_empty_is_made_anew_and_holds_the_same() {
    let store = words();
    for number in 0..6000 {
        put(&store, &number.to_string(), &format!("w{} all n{number}", number % 7));
    }
    let snapshot = store.snapshot();
    let all = store.by_index("word", "all").expect("an index");
    for number in 0..5990 {
        store.delete(&number.to_string());
    }
    for number in 5990..6000 {
        assert_eq!(keys(&store, &format!("n{number}")), [number.to_string()]);
    }
    assert_eq!(keys(&store, "all").len(), 10);
    assert_eq!(store.index_values("word").expect("an index").len(), 10 + 7 + 1);
    assert_eq!((snapshot.iter().count(), all.iter().count()), (6000, 6000));
    for number in 0..1000 {
        put(&store, &number.to_string(), "all");
    }
    assert_eq!((store.len(), keys(&store, "all").len()), (1010, 1010));
}

#[test]
fn a_value_that_most_have_left_is_made_anew_and_found_the_same() {
    let store = words();
    for number in 0..6000 {
        put(&store, &number.to_string(), "pending");
    }
    for number in 0..5990 {
        put(&store, &number.to_string(), if number % 2 == 0 { "running" } else { "done" });
    }
    assert_eq!(keys(&store, "pending").len(), 10);
    assert_eq!((keys(&store, "running").len(), keys(&store, "done").len()), (2995, 2995));
}

#[test]
fn one_value_may_have_very_many_index_values() {
    let store = words();
    let many: Vec<String> = (0..20_000).map(|number| format!("w{number}")).collect();
    let begun = Instant::now();
    put(&store, "a", &many.join(" "));
    put(&store, "b", &many[10_000..].join(" "));
    put(&store, "a", &many[..15_000].join(" "));
    store.delete(&"b".to_owned());
    assert!(begun.elapsed() < Duration::from_secs(5), "not quadratic");
    assert_eq!(store.index_values("word").expect("an index").len(), 15_000);
    assert_eq!(
        (keys(&store, "w0"), keys(&store, "w14999"), keys(&store, "w15000")),
        (vec!["a".into()], vec!["a".to_owned()], vec![])
    );
}

/// Writers move keys between groups, one replaces everything now and then, one adds an index again and again; readers
/// check that whatever they see is one state: each key once, and each under the group that it has.
#[test]
fn many_threads_see_one_state_each_time() {
    let store: ThreadSafeStore<(u32, u32), u32> = ThreadSafeStore::new()
        .with_index("group", Index::of(|v: &(u32, u32)| [(v.1 % 8).to_string()]))
        .expect("a name");
    let until = Instant::now() + Duration::from_millis(400);
    let running = || Instant::now() < until;
    std::thread::scope(|threads| {
        for seed in 0..3 {
            let store = &store;
            threads.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while running() {
                    let key = random.u32(..600);
                    match random.u32(..20) {
                        0..8 => store.add(key, (key, random.u32(..))),
                        8..12 => store.delete(&key),
                        12..19 => {
                            let one = |_| {
                                let key = random.u32(..600);
                                (key, Change::Add((key, key)))
                            };
                            store.apply((0..20).map(one).collect::<Vec<_>>());
                        }
                        _ => store.replace((0..random.u32(..600)).map(|key| (key, (key, key))), "1".into()),
                    }
                }
            });
        }
        for _ in 0..2 {
            threads.spawn(|| {
                while running() {
                    let snapshot = store.snapshot();
                    let keys: std::collections::BTreeSet<u32> = snapshot.iter().map(|(key, _)| *key).collect();
                    assert_eq!((keys.len(), snapshot.iter().count()), (snapshot.len(), snapshot.len()));
                    for group in 0..8 {
                        let found = store.by_index("group", &group.to_string()).expect("an index");
                        assert_eq!(found.iter().count(), found.len());
                        assert!(found.iter().all(|(key, value)| *key == value.0 && value.1 % 8 == group));
                    }
                }
            });
        }
        threads.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            for number in 0.. {
                if !running() {
                    break;
                }
                let name = format!("late-{}", number % 5);
                let index = Index::of(|v: &(u32, u32)| [(v.1 % 3).to_string(), (v.1 % 5).to_string()]);
                if number % 5 == 4 {
                    // Dropped on the way.
                    let mut building = Box::pin(store.add_index(name, index));
                    let _ = futures::FutureExt::now_or_never(&mut building);
                    continue;
                }
                runtime.block_on(store.add_index(name, index)).expect("the same function each time");
            }
        });
    });
    for (name, function) in [("group", None), ("late-0", Some(())), ("late-3", Some(()))] {
        for value in 0..8 {
            let expected = |v: &(u32, u32)| match function {
                None => v.1 % 8 == value,
                Some(()) => v.1 % 3 == value || v.1 % 5 == value,
            };
            let mut keys: Vec<u32> = store.list().iter().filter(|v| expected(v)).map(|v| v.0).collect();
            keys.sort_unstable();
            assert_eq!(store.index_keys(name, &value.to_string()).expect("an index"), keys, "{name} {value}");
        }
    }
}
