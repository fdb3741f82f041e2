//! What breaks the protocol in a way that no client can see: the comparison with the server does, and a list heals it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::core::DynamicObject;
use tokio::time::sleep;
use watchkeeper::{Found, InformerQueue, Reason, TableRow, Verification};
use watchkeeper_apiserver::{Fault, Match};

use crate::heals::{list_heals_with, relists, relists_for};
use crate::support::{Bench, MODES, Mode, Sample, Setup};

/// Each way to list, each type, each queue.
macro_rules! each {
    ($test:ident) => {
        for mode in MODES {
            for queue in [InformerQueue::Atomic, InformerQueue::Delta] {
                $test::<Pod>(Setup { queue, ..Setup::new(mode) }).await;
                $test::<DynamicObject>(Setup { queue, ..Setup::new(mode) }).await;
                $test::<TableRow<Pod>>(Setup { queue, ..Setup::new(mode) }).await;
            }
        }
    };
}

/// Changes pods 1 to 4 on a watch with a fault; what the comparison says of it.
async fn noticed<K: Sample>(bench: &Bench<K>, fault: Fault) -> Verification {
    bench.put("p1");
    sleep(Duration::from_secs(20)).await;
    bench.assert_true("before");
    bench.assert_verified("before").await;
    let rule = bench.server.faults().on(Match::watch("pods").once()).then(fault);
    bench.cut().await;
    for name in ["p1", "p2", "p3", "p4"] {
        bench.put(name);
        sleep(Duration::from_secs(2)).await;
    }
    sleep(Duration::from_secs(30)).await;
    assert_eq!(rule.injected(), 1);
    verified(bench).await
}

/// What the comparison says, twice: it changes nothing.
async fn verified<K: Sample>(bench: &Bench<K>) -> Verification {
    let before = bench.informer.store().snapshot().len();
    let first = bench.informer.verify_against_server().await.unwrap();
    let second = bench.informer.verify_against_server().await.unwrap();
    assert!(!first.is_same(), "the fault is to be noticed");
    assert_eq!(first.differences, second.differences);
    assert_eq!(bench.informer.store().snapshot().len(), before);
    assert_eq!(relists(&bench.informer.status()), 0, "nobody has listed");
    first
}

fn keys(verification: &Verification) -> Vec<String> {
    verification.differences.iter().map(|difference| difference.key.to_string()).collect()
}

async fn healed_by_a_list<K: Sample>(bench: Bench<K>) {
    bench.server.faults().clear();
    bench.listen("late");
    bench.informer.relist();
    sleep(Duration::from_secs(60)).await;
    bench.assert_true("after the relist");
    bench.assert_verified("after the relist").await;
    bench.leave().await;
    bench.write_on(5).await;
    sleep(Duration::from_secs(60)).await;
    bench.assert_true("after more writes");
    let status = bench.end("unseen").await;
    assert_eq!((relists(&status), relists_for(&status, Reason::Requested)), (1, 1), "{status:?}");
}

async fn dropped_change<K: Sample>(setup: Setup) {
    let bench = Bench::<K>::start(setup).await;
    let verification = noticed(&bench, Fault::DropEvent { nth: 2 }).await;
    assert_eq!(keys(&verification), ["default/p2"], "{verification}");
    assert!(matches!(verification.differences[0].found, Found::Different { .. }), "{verification}");
    healed_by_a_list(bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_change_is_noticed() {
    each!(dropped_change);
}

async fn dropped_deletion_and_addition<K: Sample>(setup: Setup) {
    let bench = Bench::<K>::start(setup).await;
    let faults = bench.server.faults();
    faults.on(Match::watch("pods").once()).then(Fault::DropEvent { nth: 1 }).then(Fault::DropEvent { nth: 2 });
    bench.cut().await;
    bench.delete("p1");
    bench.put("new");
    bench.put("p3");
    sleep(Duration::from_secs(20)).await;
    let verification = verified(&bench).await;
    assert_eq!(keys(&verification), ["default/new", "default/p1"], "{verification}");
    assert!(matches!(verification.differences[0].found, Found::Missing { .. }), "{verification}");
    assert!(matches!(verification.differences[1].found, Found::Extra { .. }), "{verification}");
    healed_by_a_list(bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_deletion_and_a_dropped_addition_are_noticed() {
    each!(dropped_deletion_and_addition);
}

async fn left_out_of_a_list<K: Sample>(setup: Setup) {
    let lists = setup.mode.lists().once();
    let bench = Bench::<K>::start_with(setup, |server| {
        server.faults().on(lists).then(Fault::DropEvent { nth: 2 });
    })
    .await;
    let verification = verified(&bench).await;
    assert_eq!(keys(&verification), ["default/p1"], "{verification}");
    assert!(matches!(verification.differences[0].found, Found::Missing { .. }), "{verification}");
    healed_by_a_list(bench).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_list_leaves_out_is_noticed() {
    each!(left_out_of_a_list);
}

async fn old_state<K: Sample>(setup: Setup) {
    let bench = Bench::<K>::start(setup).await;
    let verification = noticed(&bench, Fault::OldState { nth: 1 }).await;
    assert_eq!(keys(&verification), ["default/p1"], "{verification}");
    assert!(matches!(verification.differences[0].found, Found::Different { .. }), "{verification}");
    healed_by_a_list(bench).await;
}

#[tokio::test(start_paused = true)]
async fn an_old_state_sent_again_is_noticed() {
    each!(old_state);
}

async fn rewind<K: Sample>(setup: Setup) {
    let bench = Bench::<K>::start(setup).await;
    bench.write_some();
    bench.delete("p0");
    sleep(Duration::from_secs(2)).await;
    // Before the last write there was a p0, and p1 to p4 were older.
    let to = bench.server.storage().revision() - 1;
    let verification = noticed(&bench, Fault::Rewind { nth: 4, to }).await;
    assert!(keys(&verification).contains(&"default/p0".to_owned()), "{verification}");
    assert!(verification.difference_count >= 5, "{verification}");
    healed_by_a_list(bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_goes_back_in_time_is_noticed() {
    each!(rewind);
}

/// A bookmark says that everything up to a version was sent. Whoever goes on from there after a cut misses what was not.
async fn lying_bookmark<K: Sample>(setup: Setup) {
    let bench = Bench::<K>::start(setup).await;
    bench.server.faults().on(Match::watch("pods").once()).then(Fault::BookmarksLie { ahead: 2 });
    bench.cut().await;
    sleep(Duration::from_secs(100)).await;
    bench.assert_verified("nothing was written yet").await;
    bench.cut().await;
    for name in ["p1", "p2", "p3"] {
        bench.put(name);
    }
    sleep(Duration::from_secs(100)).await;
    let verification = verified(&bench).await;
    assert_eq!(keys(&verification), ["default/p1", "default/p2"], "{verification}");
    healed_by_a_list(bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_that_lies_is_noticed() {
    each!(lying_bookmark);
}

async fn wrong_kind<K: Sample>(setup: Setup) {
    let bench = Bench::<K>::start(setup).await;
    let verification = noticed(&bench, Fault::WrongKind { nth: 2 }).await;
    assert_eq!(keys(&verification), ["default/p2"], "{verification}");
    healed_by_a_list(bench).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_in_a_watch_is_noticed() {
    each!(wrong_kind);
}

/// In a list it makes the whole list doubtful, and the reflector lists again on its own.
#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_in_a_list_heals_on_its_own() {
    list_heals_with(Mode::Streaming, 1, &Fault::WrongKind { nth: 2 }, |_| {}).await;
    list_heals_with(Mode::Paged, 2, &Fault::WrongKind { nth: 2 }, |_| {}).await;
}

/// A new cluster at the old address. Its versions are lower than what the cache is at, and its watch is silent.
async fn new_cluster<K: Sample>(setup: Setup) {
    let bench = Bench::<K>::start(setup).await;
    bench.write_on(5).await;
    bench.server.faults().restart(false);
    bench.put("new");
    sleep(Duration::from_secs(30)).await;
    let cached = bench.informer.store().snapshot().len() as u64;
    let verification = verified(&bench).await;
    assert_eq!(verification.difference_count, cached + 1, "{verification}");
    assert!(keys(&verification).contains(&"default/new".to_owned()), "{verification}");
    bench.informer.relist();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.informer.store().snapshot().len(), 1);
    bench.write_on(5).await;
    sleep(Duration::from_secs(60)).await;
    bench.assert_verified("after the relist").await;
    bench.end("a new cluster").await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_without_data_is_noticed() {
    each!(new_cluster);
}

/// Differences are told one by one up to a number, and counted beyond it; texts have keys and versions only.
#[tokio::test(start_paused = true)]
async fn differences_are_capped_and_show_no_bodies() {
    let bench = Bench::<Pod>::start(Setup::new(Mode::Paged)).await;
    let rule = bench.server.faults().on(Match::watch("pods").once());
    let rule =
        (1..=150).fold(rule.then(Fault::DropEvent { nth: 151 }), |rule, nth| rule.then(Fault::DropEvent { nth }));
    bench.cut().await;
    (0..150).for_each(|number| bench.put(&format!("many-{number}")));
    bench.put("last");
    bench.put("really-last");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(rule.injected(), 1);
    let verification = bench.informer.verify_against_server().await.unwrap();
    assert_eq!((verification.difference_count, verification.differences.len()), (151, 100), "{verification}");
    let text = format!("{verification}\n{verification:?}");
    assert!(text.contains("and 51 more") && text.contains("default/many-100"), "{text}");
    assert!(!text.contains("annotations") && !text.contains("image"), "{text}");
    bench.informer.relist();
    sleep(Duration::from_secs(200)).await;
    bench.assert_true("after the relist");
    bench.end("many differences").await;
}

/// Changes that come while it compares are no differences, however many there are.
#[tokio::test(start_paused = true)]
async fn a_busy_server_looks_the_same() {
    for queue in [InformerQueue::Atomic, InformerQueue::Delta] {
        for mode in MODES {
            let bench = Bench::<Pod>::start(Setup { queue, ..Setup::new(mode) }).await;
            // So slow a list that everything changes meanwhile.
            bench.server.faults().on(Match::list("pods")).then(Fault::Drip { bytes_per_second: 900 });
            let write = async {
                loop {
                    bench.write_some();
                    sleep(Duration::from_millis(300)).await;
                }
            };
            let compare = async {
                for _ in 0..5 {
                    bench.assert_verified("while it changes").await;
                }
            };
            tokio::select! {
                () = compare => {}
                () = write => {}
            }
            bench.server.faults().clear();
            sleep(Duration::from_secs(300)).await;
            bench.assert_true("afterwards");
            bench.end("busy").await;
        }
    }
}

/// The state that the cache is at is gone at the server by the time that it is asked for.
#[tokio::test(start_paused = true)]
async fn a_forgotten_state_is_compared_by_a_newer_one() {
    for queue in [InformerQueue::Atomic, InformerQueue::Delta] {
        let bench = Bench::<Pod>::start(Setup { queue, ..Setup::new(Mode::Paged) }).await;
        bench.write_on(3).await;
        bench.server.compact(bench.server.storage().revision());
        let cannot = [Fault::expired(), Fault::status(400, "BadRequest"), Fault::status(504, "Timeout")];
        // With the other queue no certain state is asked for, so that only the first is no error.
        let asked = if queue == InformerQueue::Atomic { 3 } else { 1 };
        for fault in cannot.into_iter().take(asked) {
            bench.server.faults().on(Match::list("pods").once()).then(fault);
            bench.write_some();
            bench.assert_verified("without its state").await;
        }
        sleep(Duration::from_secs(60)).await;
        bench.end("forgotten").await;
    }
}

/// An error is an error, and not a difference.
#[tokio::test(start_paused = true)]
async fn a_comparison_that_is_refused_fails() {
    let bench = Bench::<Pod>::start(Setup::new(Mode::Streaming)).await;
    bench.server.faults().on(Match::list("pods")).then(Fault::status(403, "Forbidden"));
    assert!(bench.informer.verify_against_server().await.unwrap_err().is_forbidden());
    bench.informer.shutdown().await;
    let error = bench.informer.verify_against_server().await.unwrap_err();
    assert_eq!(error.kind(), watchkeeper::ErrorKind::Stopped);
}
