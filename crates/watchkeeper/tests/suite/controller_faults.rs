//! What a controller makes of faults: of what it calls, of what it watches, and of when it is stopped.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use watchkeeper::limiter::{Bucket, Exponential, RateLimiter};
use watchkeeper::{
    AddOptions, Controller, Error, ErrorKind, Object, ObjectKey, Outcome, RateLimitingQueue, ReconcileError, Scripted,
    ScriptedList, ScriptedWatch, SharedInformer,
};

use crate::support::{Logs, pod, seconds};

type Queue = RateLimitingQueue<&'static str>;

fn limited_by(limiter: impl RateLimiter<&'static str> + 'static) -> Queue {
    RateLimitingQueue::new(limiter)
}

fn queue() -> Queue {
    limited_by(Exponential::new(Duration::from_millis(100), seconds(1000)))
}

fn controller(queue: &Queue) -> Controller<&'static str> {
    Controller::new("test", queue.clone())
}

/// When it was called, in milliseconds.
type Calls = Arc<Mutex<Vec<u128>>>;

/// Runs a controller whose outcome of the n-th call is what `outcome` says.
fn run(
    controller: Controller<&'static str>,
    outcome: impl Fn(usize) -> Result<Outcome, ReconcileError> + Send + Sync + 'static,
) -> (Calls, CancellationToken, JoinHandle<Result<(), Error>>) {
    let (calls, token, began) = (Calls::default(), CancellationToken::new(), Instant::now());
    let noted = calls.clone();
    let running = controller.run(token.clone(), move |_| {
        let call = {
            let mut calls = noted.lock().expect("calls");
            calls.push(began.elapsed().as_millis());
            calls.len() - 1
        };
        let outcome = outcome(call);
        async move { outcome }
    });
    (calls, token, tokio::spawn(running))
}

fn times(calls: &Calls) -> Vec<u128> {
    calls.lock().expect("calls").clone()
}

// Stopping.

#[tokio::test(start_paused = true)]
async fn workers_that_had_nothing_to_do_have_left_nothing_behind_whatever_the_grace_period() {
    for grace in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let (_, token, running) = run(controller(&queue()).workers(8).grace(grace), |_| Ok(Outcome::Done));
        tokio::time::sleep(seconds(1)).await;
        token.cancel();
        running.await.expect("no panic").unwrap_or_else(|error| panic!("{grace:?}: {error}"));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_grace_period_the_keys_that_are_put_back_are_counted_and_no_idle_worker() {
    let queue = queue();
    queue.add("a");
    let token = CancellationToken::new();
    let running = tokio::spawn(controller(&queue).workers(8).grace(Duration::ZERO).run(token.clone(), |_| async {
        tokio::time::sleep(seconds(3600)).await;
        Ok(Outcome::Done)
    }));
    tokio::time::sleep(seconds(1)).await;
    token.cancel();
    let error = running.await.expect("no panic").expect_err("it did not finish");
    assert!(error.to_string().ends_with("back in the queue: 1"), "{error}");
    assert_eq!(*queue.get().await.expect("it is back"), "a");
}

fn informer() -> SharedInformer<Pod> {
    let list = ScriptedList::new("5", [pod("a", "1")]);
    SharedInformer::new(Scripted::new().answer_list(list).answer_watch(ScriptedWatch::new().hang()))
}

fn keys() -> RateLimitingQueue<ObjectKey> {
    RateLimitingQueue::new(Exponential::new(Duration::from_millis(100), seconds(1000)))
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_cancelled_with_its_informers_has_not_failed_however_early() {
    // Before it runs.
    let (pods, token) = (informer(), CancellationToken::new());
    pods.start(token.clone()).expect("a runtime");
    token.cancel();
    pods.stopped().await;
    let controller = Controller::new("test", keys()).reconciles(&pods);
    controller.run(token, |_| async { Ok(Outcome::Done) }).await.expect("it was cancelled");

    // While it waits for a list.
    let (pods, token) = (SharedInformer::<Pod>::new(Scripted::new()), CancellationToken::new());
    pods.start(token.clone()).expect("a runtime");
    let running = Controller::new("test", keys()).reconciles(&pods).run(token.clone(), |_| async { Ok(Outcome::Done) });
    let mut running = std::pin::pin!(running);
    assert!(tokio::time::timeout(seconds(1), &mut running).await.is_err());
    token.cancel();
    pods.stopped().await;
    running.await.expect("it was cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_informer_stops_ends_and_says_so_when_what_it_works_on_is_done() {
    let pods = informer();
    pods.start(CancellationToken::new()).expect("a runtime");
    let finished = Arc::new(AtomicUsize::new(0));
    let count = finished.clone();
    let controller = Controller::new("test", keys()).reconciles(&pods);
    let running = tokio::spawn(controller.run(CancellationToken::new(), move |_| {
        let finished = count.clone();
        async move {
            tokio::time::sleep(seconds(10)).await;
            finished.fetch_add(1, SeqCst);
            Ok(Outcome::Done)
        }
    }));
    tokio::time::sleep(seconds(1)).await;
    pods.stop();
    let ended = tokio::time::timeout(seconds(60), running).await.expect("it does not wait for ever");
    let error = ended.expect("no panic").expect_err("nothing comes any more");
    assert_eq!(error.kind(), ErrorKind::Stopped, "{error}");
    assert_eq!(finished.load(SeqCst), 1);
}

// What it calls.

/// Panics when somebody wants to know what it is.
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("as asked")
    }
}

impl fmt::Debug for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("as asked")
    }
}

impl std::error::Error for Unspeakable {}

/// Panics when it is dropped.
struct Undroppable;

impl Drop for Undroppable {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "as asked");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_panics_when_it_is_shown_is_tried_again_with_backoff_by_a_worker_that_goes_on() {
    let _logs = Logs::capture();
    let queue = queue();
    queue.add("a");
    let controller = controller(&queue);
    let stats = controller.stats();
    let (calls, token, running) = run(controller, |call| match call {
        0..3 => Err(Unspeakable.into()),
        _ => Ok(Outcome::Done),
    });
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(times(&calls), [0, 100, 300, 700]);
    assert_eq!((stats.get().panics, stats.get().failed, stats.get().succeeded), (3, 3, 1));
    assert!(!running.is_finished(), "the worker goes on");
    token.cancel();
    running.await.expect("the panics stay inside").expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_when_it_is_given_up_is_tried_again_with_backoff_by_a_worker_that_goes_on() {
    let queue = queue();
    queue.add("a");
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let running = tokio::spawn(controller(&queue).timeout(seconds(1)).run(CancellationToken::new(), move |_| {
        let call = count.fetch_add(1, SeqCst);
        async move {
            if call < 2 {
                let _bomb = Undroppable;
                tokio::time::sleep(seconds(3600)).await;
            }
            Ok(Outcome::Done)
        }
    }));
    tokio::time::sleep(seconds(60)).await;
    assert!(!running.is_finished(), "the worker goes on");
    assert_eq!((calls.load(SeqCst), queue.num_requeues(&"a")), (3, 0));
}

// How often.

#[tokio::test(start_paused = true)]
async fn retries_are_counted_also_if_the_limiter_counts_nothing() {
    let queue = limited_by(Bucket::new(10.0, 100));
    queue.add("a");
    let controller = controller(&queue).max_retries(2);
    let stats = controller.stats();
    let (calls, ..) = run(controller, |_| Err("no".into()));
    tokio::time::sleep(seconds(60)).await;
    assert_eq!((times(&calls).len(), stats.get().given_up), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn what_asked_to_be_tried_again_has_not_failed() {
    let queue = queue();
    queue.add("a");
    let controller = controller(&queue).max_retries(2);
    let stats = controller.stats();
    let (calls, ..) = run(controller, |call| match call {
        0..5 => Ok(Outcome::Requeue),
        5..7 => Err("not yet".into()),
        _ => Ok(Outcome::Done),
    });
    tokio::time::sleep(seconds(3600)).await;
    assert_eq!((times(&calls).len(), stats.get().given_up), (8, 0));
}

#[tokio::test(start_paused = true)]
async fn what_was_not_urgent_is_not_when_it_is_tried_again() {
    let queue = queue();
    queue.add_with("old", AddOptions { priority: -100, ..AddOptions::default() });
    let order = Arc::new(Mutex::new(Vec::new()));
    let noted = order.clone();
    let again = queue.clone();
    tokio::spawn(controller(&queue).run(CancellationToken::new(), move |key| {
        noted.lock().expect("order").push(key);
        let (first, again) = (noted.lock().expect("order").len() == 1, again.clone());
        async move {
            if first {
                return Err("no".into());
            }
            if key == "busy" {
                // The other one is due meanwhile, and comes before what happens now, or does not.
                tokio::time::sleep(seconds(1)).await;
                assert_eq!(again.len(), 1);
                again.add("new");
            }
            Ok(Outcome::Done)
        }
    }));
    tokio::time::sleep(Duration::from_millis(50)).await;
    queue.add("busy");
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(*order.lock().expect("order"), ["old", "busy", "new", "old"]);
}

// Owners.

#[tokio::test(start_paused = true)]
async fn an_owner_reference_that_makes_no_sense_hides_no_other() {
    let owner = r#"{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u","controller":true}"#;
    for other in [
        r#"{"apiVersion":"v1","kind":"Node","name":"n","uid":"v","controller":null}"#,
        r#"{"apiVersion":"v1","kind":"Node","uid":"v"}"#,
        r#"{"apiVersion":1,"kind":null,"name":[],"controller":"yes"}"#,
        "null",
        "7",
    ] {
        let child = format!(
            r#"{{"metadata":{{"name":"a","namespace":"shop","resourceVersion":"1","ownerReferences":[{other},{owner}]}}}}"#
        );
        let child = Object::from_json(child).expect("an object");
        let list = ScriptedList::new("5", [child]);
        let source = Scripted::new().answer_list(list).answer_watch(ScriptedWatch::new().hang());
        let pods: SharedInformer<Pod> = SharedInformer::new(source);
        pods.start(CancellationToken::new()).expect("a runtime");
        let queue = keys();
        let controller = Controller::new("test", queue.clone()).owns::<ReplicaSet, Pod>(&pods);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let running = tokio::spawn(controller.run(CancellationToken::new(), move |key| {
            noted.lock().expect("keys").push(key.to_string());
            async { Ok(Outcome::Done) }
        }));
        tokio::time::sleep(seconds(1)).await;
        running.abort();
        assert_eq!(*seen.lock().expect("keys"), ["shop/web"], "{other}");
    }
}
