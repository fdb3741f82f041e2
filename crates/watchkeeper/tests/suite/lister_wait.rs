//! Waiting until a version can be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Pod;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use watchkeeper::{Error, Indexer, Lister, Object, Operation, Replacement, ResourceVersion, WaitError};

use crate::support::{key, pod, seconds};

fn pods() -> Lister<Pod> {
    Lister::new(Arc::new(Indexer::objects()))
}

fn version(version: &str) -> ResourceVersion {
    ResourceVersion::from(version)
}

/// Waits on a task of its own, and tells what could be read then.
async fn waiting(pods: &Lister<Pod>, wanted: &str) -> JoinHandle<Result<ResourceVersion, WaitError>> {
    let (pods, wanted) = (pods.clone(), version(wanted));
    let task = tokio::spawn(async move { pods.wait_for(&wanted).await.map(|()| pods.last_version()) });
    // It gets to where it waits.
    sleep(Duration::from_millis(1)).await;
    task
}

/// One who waits for version 12 is let go by what this does to the store, and not before.
async fn lets_go(change: impl FnOnce(&Indexer<Object>)) {
    let pods = pods();
    pods.store().add(pod("old", "7")).expect("a key");
    let task = waiting(&pods, "12").await;
    assert!(!task.is_finished());
    change(pods.store());
    let began = Instant::now();
    let read = task.await.expect("no panic").expect("decimal versions");
    assert_eq!((began.elapsed(), read), (Duration::ZERO, pods.last_version()));
}

#[tokio::test(start_paused = true)]
async fn an_object_of_the_version_lets_go() {
    lets_go(|store| store.add(pod("new", "12")).expect("a key")).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_of_a_later_version_lets_go() {
    lets_go(|store| store.update(pod("old", "100")).expect("a key")).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_of_the_version_lets_go() {
    lets_go(|store| store.delete(&pod("old", "12")).expect("a key")).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_of_the_version_lets_go() {
    lets_go(|store| store.replace([pod("listed", "3")], version("12")).expect("keys")).await;
    let reflected = Replacement { resource_version: version("12"), complete: true, ..Replacement::default() };
    lets_go(|store| watchkeeper::ReflectorStore::replace(store, reflected).expect("a list")).await;
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_of_the_version_lets_go() {
    lets_go(|store| store.bookmark(&version("12"))).await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_lets_go_when_all_of_it_can_be_read() {
    let pods = pods();
    let task = waiting(&pods, "12").await;
    let batch = ["12", "13", "14"].map(|version| Operation::Add(pod(&format!("p{version}"), version)));
    pods.store().apply(batch).into_result().expect("keys");
    assert_eq!(task.await.expect("no panic"), Ok(version("14")));
}

#[tokio::test(start_paused = true)]
async fn the_very_object_that_is_there_already_lets_go_too() {
    let pods = pods();
    let object = pod("same", "12");
    pods.store().add(object.clone()).expect("a key");
    // A list that is older than what it has.
    pods.store().replace([object.clone()], version("9")).expect("keys");
    let task = waiting(&pods, "12").await;
    assert!(!task.is_finished());
    pods.store().add(object).expect("a key");
    assert_eq!(task.await.expect("no panic"), Ok(version("12")));
}

#[tokio::test(start_paused = true)]
async fn versions_below_and_deletions_without_one_do_not_let_go() {
    let pods = pods();
    let task = waiting(&pods, "100").await;
    pods.store().add(pod("a", "7")).expect("a key");
    pods.store().add(pod("b", "99")).expect("a key");
    pods.store().delete_by_key(&key("a"));
    pods.store().replace([], ResourceVersion::unset()).expect("keys");
    pods.store().bookmark(&ResourceVersion::any());
    sleep(seconds(3600)).await;
    assert!(!task.is_finished());
    pods.store().bookmark(&version("100"));
    assert_eq!(task.await.expect("no panic"), Ok(version("100")));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_has_been_reached_is_not_waited_for() {
    let pods = pods();
    pods.store().add(pod("a", "100")).expect("a key");
    for reached in ["100", "99", "1"] {
        assert_eq!(pods.wait_for(&version(reached)).now_or_never(), Some(Ok(())), "{reached}");
    }
    assert_eq!(pods.wait_for(&version("101")).now_or_never(), None);
}

#[tokio::test(start_paused = true)]
async fn versions_are_compared_as_numbers_of_any_length() {
    let pods = pods();
    let task = waiting(&pods, "100000000000000000000000").await;
    pods.store().bookmark(&version("99999999999999999999999"));
    sleep(seconds(1)).await;
    assert!(!task.is_finished());
    pods.store().bookmark(&version("100000000000000000000001"));
    assert!(task.await.expect("no panic").is_ok());
}

#[test]
fn a_version_that_is_no_number_is_an_error_at_once() {
    let pods = pods();
    for strange in ["", "0", "v7", "007", "-1", "1.5", "abc"] {
        let error = pods.wait_for(&version(strange)).now_or_never().expect("at once").expect_err(strange);
        assert_eq!(error, WaitError::NoNumber { version: version(strange) });
        assert!(error.to_string().contains(&format!("version {strange:?} cannot be waited for")), "{error}");
    }
}

#[test]
fn a_store_whose_version_is_no_number_is_an_error_at_once() {
    let pods = pods();
    pods.store().bookmark(&version("v7"));
    let error = pods.wait_for(&version("7")).now_or_never().expect("at once").expect_err("no number");
    assert_eq!(error, WaitError::Incomparable { here: version("v7") });
    assert!(Error::from(error).to_string().contains(r#"the store is at "v7""#));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_comes_to_a_version_that_is_no_number_lets_go_with_an_error() {
    let pods = pods();
    let task = waiting(&pods, "7").await;
    pods.store().add(pod("a", "v7")).expect("a key");
    assert_eq!(task.await.expect("no panic"), Err(WaitError::Incomparable { here: version("v7") }));
}

#[tokio::test(start_paused = true)]
async fn many_wait_and_each_is_let_go_by_its_version() {
    let pods = pods();
    let mut tasks = Vec::new();
    for wanted in 1..=1000_u32 {
        let (pods, wanted) = (pods.clone(), version(&wanted.to_string()));
        tasks.push(tokio::spawn(async move { pods.wait_for(&wanted).await }));
    }
    sleep(Duration::from_millis(1)).await;
    for reached in [0, 1, 9, 10, 11, 99, 500, 999, 1000_usize] {
        pods.store().bookmark(&version(&reached.to_string()));
        sleep(Duration::from_millis(1)).await;
        assert_eq!(tasks.iter().filter(|task| task.is_finished()).count(), reached);
        assert!(tasks.iter().take(reached).all(JoinHandle::is_finished));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_reached_lets_go_even_if_the_store_goes_back_at_once() {
    let pods = pods();
    let task = waiting(&pods, "12").await;
    pods.store().add(pod("a", "12")).expect("a key");
    pods.store().replace([pod("a", "5")], version("5")).expect("keys");
    assert_eq!(task.await.expect("no panic"), Ok(version("5")));
}

#[tokio::test(start_paused = true)]
async fn one_who_stops_waiting_harms_nobody() {
    let pods = pods();
    let other = waiting(&pods, "12").await;
    let stopped = timeout(seconds(5), pods.wait_for(&version("12"))).await;
    assert!(stopped.is_err());
    let aborted = waiting(&pods, "11").await;
    aborted.abort();
    assert!(aborted.await.expect_err("aborted").is_cancelled());
    pods.store().bookmark(&version("12"));
    assert!(other.await.expect("no panic").is_ok());
}

/// Those who wait and the one who writes set out for each version at the same time.
#[test]
fn no_wake_up_is_lost_between_threads() {
    const ROUNDS: usize = 5000;
    const WAITERS: usize = 2;
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(WAITERS).enable_time().build();
    let (pods, setting_out) = (pods(), Arc::new(AtomicUsize::new(0)));
    let waiter = || {
        let (pods, setting_out) = (pods.clone(), setting_out.clone());
        async move {
            for round in 1..=ROUNDS {
                setting_out.fetch_add(1, Ordering::Relaxed);
                pods.wait_for(&version(&round.to_string())).await.expect("decimal versions");
            }
        }
    };
    let threads = threads.expect("threads");
    let waiters: Vec<_> = (0..WAITERS).map(|_| threads.spawn(waiter())).collect();
    let writer = std::thread::spawn({
        let pods = pods.clone();
        move || {
            for round in 1..=ROUNDS {
                while setting_out.load(Ordering::Relaxed) < round * WAITERS {
                    std::thread::yield_now();
                }
                pods.store().bookmark(&version(&round.to_string()));
            }
        }
    });
    threads.block_on(async {
        for waiter in waiters {
            timeout(seconds(60), waiter).await.expect("nobody waits for what has come").expect("no panic");
        }
    });
    writer.join().expect("no panic");
}
