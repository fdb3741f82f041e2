//! A reflector, a queue and a function, put together.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;
use watchkeeper::queue::{AtomicFifo, Batch, Delta, DeltaFifo, Deltas, Entry};
use watchkeeper::{Error, Indexer, Object, Pump, Scripted, ScriptedList, ScriptedWatch};

use crate::support::{key, pass, pod, seconds};

/// Two objects are listed; then one is added, one changes, one is deleted.
fn source() -> Scripted {
    let watch = ScriptedWatch::new().added(pod("c", "11")).modified(pod("a", "12")).deleted(pod("b", "13"));
    Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1"), pod("b", "2")])).answer_watch(watch.hang())
}

fn apply(store: &Indexer<Object>, changes: &Deltas<Object>) -> Result<(), Error> {
    for change in changes.iter() {
        match change {
            Delta::Deleted { .. } => store.delete_by_key(changes.key()),
            Delta::Added(pod) | Delta::Updated(pod) | Delta::Replaced(pod) | Delta::Sync(pod) => {
                store.update(pod.clone())?
            }
        }
    }
    Ok(())
}

fn contents(store: &Indexer<Object>) -> Vec<String> {
    let mut all: Vec<_> =
        store.list().iter().map(|object| format!("{}@{}", object.key(), object.resource_version())).collect();
    all.sort();
    all
}

/// What came, as words.
fn words(changes: &Deltas<Object>) -> String {
    let types: Vec<_> = changes.iter().map(|delta| delta.delta_type().to_string()).collect();
    format!("{} {}", changes.key().name(), types.join("+"))
}

type Notes = Arc<Mutex<Vec<String>>>;

/// A function that notes what came, and the notes.
fn noting() -> (Notes, impl FnMut(&Deltas<Object>) -> Result<(), Infallible> + Send) {
    let notes = Notes::default();
    let noted = notes.clone();
    (notes, move |changes: &Deltas<Object>| {
        noted.lock().expect("not poisoned").push(words(changes));
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn what_is_listed_and_watched_ends_up_in_the_store_through_a_delta_fifo() {
    let store = Arc::new(Indexer::objects());
    let queue = DeltaFifo::objects().known_objects(store.clone()).emit_replaced(true).build();
    let into = store.clone();
    let pump = Pump::new(source(), queue, move |changes: &Deltas<Object>| apply(&into, changes));
    let (state, token) = (pump.state(), CancellationToken::new());
    assert!(!state.has_synced());
    let running = tokio::spawn(pump.run(token.clone()));
    pass(seconds(1)).await;
    assert_eq!(contents(&store), ["shop/a@12", "shop/c@11"]);
    assert!(state.has_synced());
    assert_eq!(state.last_sync_resource_version().as_str(), "13");
    token.cancel();
    running.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn what_is_listed_and_watched_ends_up_in_the_store_through_an_atomic_fifo() {
    let store = Arc::new(Indexer::objects());
    let into = store.clone();
    let pump = Pump::new(source(), AtomicFifo::objects().build(), move |batch: &Batch<Object>| {
        for entry in batch.iter() {
            match entry {
                Entry::ReplacedAll(list) => into.replace(list.items.clone(), list.resource_version.clone())?,
                Entry::Object { key, delta: Delta::Deleted { .. } } => into.delete_by_key(key),
                Entry::Object { delta, .. } => delta.object().map_or(Ok(()), |object| into.update(object.clone()))?,
                Entry::SyncAll | Entry::Bookmark(_) => {}
            }
        }
        Ok::<_, Error>(())
    });
    let (state, token) = (pump.state(), CancellationToken::new());
    let running = tokio::spawn(pump.run(token.clone()));
    pass(seconds(1)).await;
    assert_eq!((contents(&store), state.has_synced()), (vec!["shop/a@12".into(), "shop/c@11".into()], true));
    token.cancel();
    running.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_tried_again_after_longer_and_longer_waits_if_that_was_asked_for() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1")]))
        .answer_watch(ScriptedWatch::new().wait(seconds(2)).added(pod("b", "11")).hang());
    let store = Arc::new(Indexer::objects());
    let queue = DeltaFifo::objects().known_objects(store.clone()).build();
    let into = store.clone();
    let tries = Arc::new(Mutex::new(Vec::new()));
    let (tried, start) = (tries.clone(), tokio::time::Instant::now());
    let pump = Pump::new(source, queue, move |changes: &Deltas<Object>| {
        let mut tried = tried.lock().expect("not poisoned");
        tried.push((changes.key().name().to_owned(), start.elapsed().as_millis()));
        if tried.len() <= 5 {
            return Err(Error::from(watchkeeper::KeyError::new("not now")));
        }
        apply(&into, changes)
    });
    let (state, token) = (pump.state(), CancellationToken::new());
    let running = tokio::spawn(pump.retry_on_error(true).run(token.clone()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!state.has_synced());
    pass(seconds(3)).await;
    assert_eq!((contents(&store), state.has_synced()), (vec!["shop/a@1".into(), "shop/b@11".into()], true));
    let at: Vec<u128> = tries.lock().expect("not poisoned").iter().map(|(_, at)| *at).collect();
    // Waits of 5, 10, 20, 40 and 80 ms; the clock counts whole milliseconds.
    let waits: Vec<u128> = at[..6].windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, least) in waits.iter().zip([5, 10, 20, 40, 80]) {
        assert!((least..=least + 3).contains(wait), "{waits:?}");
    }
    token.cancel();
    running.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn what_always_fails_holds_up_others_for_one_wait_however_much_it_is() {
    let failing: Vec<_> = (0..100).map(|number| pod(&format!("bad{number}"), "1")).collect();
    let watch = ScriptedWatch::new().wait(seconds(60)).added(pod("good", "11")).hang();
    let source = Scripted::new().answer_list(ScriptedList::new("10", failing)).answer_watch(watch);
    let (tries, start) = (Arc::new(Mutex::new((0, None))), tokio::time::Instant::now());
    let tried = tries.clone();
    let pump = Pump::new(source, DeltaFifo::objects().build(), move |changes: &Deltas<Object>| {
        let (count, good) = &mut *tried.lock().expect("not poisoned");
        *count += 1;
        if changes.key().name() != "good" {
            return Err("always");
        }
        *good = Some(start.elapsed());
        Ok(())
    });
    let token = CancellationToken::new();
    let running = tokio::spawn(pump.retry_on_error(true).run(token.clone()));
    pass(seconds(65)).await;
    let (count, good) = *tries.lock().expect("not poisoned");
    assert!(good.is_some_and(|good| good < seconds(62)), "{good:?}");
    // About once a second each.
    assert!((6_000..9_000).contains(&count), "{count}");
    token.cancel();
    running.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn what_failed_counts_as_processed_otherwise() {
    let (queue, consumer) = DeltaFifo::objects().build();
    let pump = Pump::new(source(), (queue.clone(), consumer), |_: &Deltas<Object>| Err("always"));
    let (state, token) = (pump.state(), CancellationToken::new());
    let running = tokio::spawn(pump.run(token.clone()));
    pass(seconds(1)).await;
    assert!(state.has_synced() && queue.is_empty());
    token.cancel();
    running.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_function_comes_out_and_closes_the_watch() {
    let source = source();
    let pump = Pump::new(source.clone(), DeltaFifo::objects().build(), |changes: &Deltas<Object>| {
        assert_ne!(changes.key(), &key("c"), "no");
        Ok::<_, Infallible>(())
    });
    let panic = AssertUnwindSafe(pump.run(CancellationToken::new())).catch_unwind().await;
    assert!(panic.is_err());
    pass(seconds(1)).await;
    assert_eq!(source.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_reflector_comes_out_too() {
    let source =
        Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1")])).answer_watch(ScriptedWatch::new().hang());
    let pump = Pump::new(source.clone(), DeltaFifo::objects().build(), |_: &Deltas<Object>| Ok::<_, Infallible>(()))
        .resync_period(seconds(60))
        .should_resync(|| panic!("no"));
    let run = AssertUnwindSafe(pump.run(CancellationToken::new())).catch_unwind();
    let panic = tokio::time::timeout(seconds(600), run).await.expect("it does not go on without its reflector");
    assert_eq!(panic.expect_err("a panic").downcast_ref(), Some(&"no"));
    assert_eq!(source.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_processed_after_the_cancellation() {
    let objects: Vec<_> = (0..20).map(|number| pod(&format!("p{number}"), "1")).collect();
    let source =
        Scripted::new().answer_list(ScriptedList::new("10", objects)).answer_watch(ScriptedWatch::new().hang());
    let (token, processed) = (CancellationToken::new(), Arc::new(Mutex::new(0)));
    let (cancelled, count) = (token.clone(), processed.clone());
    let pump = Pump::new(source, DeltaFifo::objects().build(), move |_: &Deltas<Object>| {
        *count.lock().expect("not poisoned") += 1;
        cancelled.cancel();
        Ok::<_, Infallible>(())
    });
    pump.run(token).await;
    assert_eq!(*processed.lock().expect("not poisoned"), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_or_processed_if_it_is_cancelled_before_it_runs() {
    let source = source();
    let (notes, note) = noting();
    let (queue, consumer) = DeltaFifo::objects().build();
    queue.add(pod("early", "1")).expect("a key");
    let token = CancellationToken::new();
    token.cancel();
    Pump::new(source.clone(), (queue.clone(), consumer), note).run(token).await;
    assert_eq!((notes.lock().expect("not poisoned").len(), queue.is_closed()), (0, true));
    assert_eq!(source.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_closed_by_another_ends_it_and_leaves_nothing_running() {
    let source = source();
    let (notes, note) = noting();
    let (queue, consumer) = DeltaFifo::objects().build();
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let pump = Pump::new(source.clone(), (queue.clone(), consumer), note);
    let close = async {
        pass(seconds(1)).await;
        queue.close();
    };
    let run = pump.run(CancellationToken::new());
    tokio::time::timeout(seconds(60), async { tokio::join!(run, close) }).await.expect("it ends");
    assert!(!notes.lock().expect("not poisoned").is_empty());
    assert_eq!(source.open_watches(), 0);
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_stops_the_reflector() {
    let source = source();
    let (notes, note) = noting();
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let run = Pump::new(source.clone(), DeltaFifo::objects().build(), note).run(CancellationToken::new());
    assert!(tokio::time::timeout(seconds(1), run).await.is_err());
    pass(seconds(1)).await;
    assert!(!notes.lock().expect("not poisoned").is_empty());
    assert_eq!(source.open_watches(), 0);
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn a_resync_says_all_that_is_known_again_if_it_should() {
    let store = Arc::new(Indexer::objects());
    store.add(pod("a", "1")).expect("a key");
    for (should, expected) in [(true, vec!["a Replaced", "a Sync"]), (false, vec!["a Replaced"])] {
        let source = Scripted::new()
            .answer_list(ScriptedList::new("10", [pod("a", "1")]))
            .answer_watch(ScriptedWatch::new().hang());
        let queue = DeltaFifo::objects().known_objects(store.clone()).emit_replaced(true).build();
        let (notes, note) = noting();
        let pump = Pump::new(source, queue, note).resync_period(seconds(60)).should_resync(move || should);
        let token = CancellationToken::new();
        let running = tokio::spawn(pump.run(token.clone()));
        pass(seconds(90)).await;
        assert_eq!(*notes.lock().expect("not poisoned"), expected);
        token.cancel();
        running.await.expect("it ends");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_reflector_and_function_and_leaves_nothing_running() {
    let source = source();
    let (notes, note) = noting();
    let (queue, consumer) = DeltaFifo::objects().build();
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let token = CancellationToken::new();
    let running = tokio::spawn(Pump::new(source.clone(), (queue.clone(), consumer), note).run(token.clone()));
    pass(seconds(1)).await;
    token.cancel();
    running.await.expect("it ends");
    assert_eq!((source.open_watches(), queue.is_closed()), (0, true));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
    let count = notes.lock().expect("not poisoned").len();
    queue.add(pod("late", "20")).expect("a key");
    pass(seconds(1)).await;
    assert_eq!(notes.lock().expect("not poisoned").len(), count);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_function_does_not_hold_up_the_watch() {
    let (queue, consumer) = DeltaFifo::objects().build();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let pump = Pump::new(source(), (queue, consumer), move |_: &Deltas<Object>| {
        let _told = wait.lock().expect("not poisoned").recv();
        Ok::<_, Infallible>(())
    });
    let (state, token) = (pump.state(), CancellationToken::new());
    let running = tokio::spawn(pump.run(token.clone()));
    while state.last_sync_resource_version().as_str() != "13" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!state.has_synced());
    drop(go_on);
    while !state.has_synced() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    token.cancel();
    running.await.expect("it ends");
}
