//! What a controller does with keys.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use watchkeeper::limiter::Exponential;
use watchkeeper::{
    Controller, Error, ErrorKind, Object, ObjectKey, Outcome, Predicate, RateLimitingQueue, ReconcileError, Scripted,
    ScriptedList, ScriptedWatch, SharedInformer,
};

use crate::support::{key, pod, seconds};

type Queue = RateLimitingQueue<&'static str>;

fn queue() -> Queue {
    RateLimitingQueue::new(Exponential::new(Duration::from_millis(100), seconds(1000)))
}

fn controller(queue: &Queue) -> Controller<&'static str> {
    Controller::new("test", queue.clone())
}

/// What was called, and when, in milliseconds.
#[derive(Clone)]
struct Calls(Arc<Mutex<Vec<(&'static str, u128)>>>, Instant);

impl Calls {
    fn new() -> Self {
        Self(Arc::default(), Instant::now())
    }

    /// Notes a call, and says how many there were before with that key.
    fn note(&self, key: &'static str) -> usize {
        let mut calls = self.0.lock().expect("calls");
        calls.push((key, self.1.elapsed().as_millis()));
        calls.iter().filter(|(known, _)| *known == key).count() - 1
    }

    fn times(&self, key: &str) -> Vec<u128> {
        self.0.lock().expect("calls").iter().filter(|(known, _)| *known == key).map(|(_, at)| *at).collect()
    }
}

/// Runs a controller whose outcome for the n-th call with a key is what `outcome` says.
fn run(
    controller: Controller<&'static str>,
    outcome: impl Fn(&'static str, usize) -> Result<Outcome, ReconcileError> + Send + Sync + 'static,
) -> (Calls, CancellationToken, JoinHandle<Result<(), Error>>) {
    let (calls, token) = (Calls::new(), CancellationToken::new());
    let noted = calls.clone();
    let running = controller.run(token.clone(), move |key| {
        let outcome = outcome(key, noted.note(key));
        async move { outcome }
    });
    (calls, token, tokio::spawn(running))
}

#[tokio::test(start_paused = true)]
async fn what_is_done_comes_again_only_when_it_is_added_again() {
    let queue = queue();
    queue.add("a");
    let (calls, token, running) = run(controller(&queue), |_, _| Ok(Outcome::Done));
    tokio::time::sleep(seconds(3600)).await;
    assert_eq!(calls.times("a"), [0]);
    queue.add("a");
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(calls.times("a").len(), 2);
    token.cancel();
    running.await.expect("no panic").expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn errors_are_tried_again_with_backoff_and_success_makes_the_next_failure_the_first() {
    let queue = queue();
    queue.add("a");
    let controller = controller(&queue);
    let stats = controller.stats();
    let (calls, ..) = run(controller, |_, call| match call {
        0 | 1 | 2 | 4 => Err("not yet".into()),
        _ => Ok(Outcome::Done),
    });
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(calls.times("a"), [0, 100, 300, 700]);
    assert_eq!(queue.num_requeues(&"a"), 0);
    queue.add("a");
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(calls.times("a")[4..], [60_000, 60_100]);
    assert_eq!((stats.get().failed, stats.get().succeeded, stats.get().given_up), (4, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn requeue_waits_as_a_failure_does_and_requeue_after_as_long_as_it_says() {
    let queue = queue();
    queue.add("soon");
    queue.add("later");
    let (calls, ..) = run(controller(&queue), |key, call| match (key, call) {
        (_, 3..) => Ok(Outcome::Done),
        ("soon", _) => Ok(Outcome::Requeue),
        _ => Ok(Outcome::RequeueAfter(seconds(10))),
    });
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(calls.times("soon"), [0, 100, 300, 700]);
    assert_eq!(calls.times("later"), [0, 10_000, 20_000, 30_000]);
}

#[tokio::test(start_paused = true)]
async fn after_the_last_retry_a_key_is_reported_and_left_alone_until_something_changes() {
    let queue = queue();
    queue.add("a");
    let reported = Arc::new(Mutex::new(Vec::new()));
    let hook = reported.clone();
    let controller = controller(&queue).max_retries(2).on_give_up(move |key, error| {
        hook.lock().expect("reports").push(format!("{key}: {error}"));
        panic!("a hook that panics harms nobody");
    });
    let stats = controller.stats();
    let (calls, ..) = run(controller, |_, _| Err("no".into()));
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(calls.times("a"), [0, 100, 300]);
    assert_eq!(*reported.lock().expect("reports"), ["a: no"]);
    assert_eq!(stats.get().given_up, 1);
    queue.add("a");
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(calls.times("a")[3..], [60_000, 60_100, 60_300], "it begins anew");
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_not_tried_again() {
    let queue = queue();
    queue.add("a");
    let (calls, ..) = run(controller(&queue), |_, _| Err(ReconcileError::terminal("never")));
    tokio::time::sleep(seconds(3600)).await;
    assert_eq!(calls.times("a"), [0]);
    assert_eq!(queue.num_requeues(&"a"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_counted_and_tried_again_and_the_worker_goes_on() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    let controller = controller(&queue);
    let stats = controller.stats();
    let (calls, token, running) = run(controller, |key, call| match (key, call) {
        ("a", 0..2) => panic!("as asked"),
        _ => Ok(Outcome::Done),
    });
    tokio::time::sleep(seconds(60)).await;
    assert_eq!((calls.times("a"), calls.times("b")), (vec![0, 100, 300], vec![0]));
    assert_eq!((stats.get().panics, stats.get().failed, stats.get().active), (2, 2, 0));
    token.cancel();
    running.await.expect("the panics stay inside").expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_given_up_and_tried_again() {
    let queue = queue();
    queue.add("a");
    let controller = controller(&queue).timeout(seconds(5));
    let (stats, calls) = (controller.stats(), Calls::new());
    let noted = calls.clone();
    tokio::spawn(controller.run(CancellationToken::new(), move |key| {
        let call = noted.note(key);
        async move {
            tokio::time::sleep(seconds(if call == 0 { 60 } else { 1 })).await;
            Ok(Outcome::Done)
        }
    }));
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(calls.times("a"), [0, 5100]);
    assert_eq!((stats.get().timeouts, stats.get().succeeded), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn several_workers_work_at_once_but_never_on_one_key() {
    let queue = queue();
    let at_work = Arc::new(Mutex::new(BTreeMap::<&str, usize>::new()));
    let most = Arc::new(AtomicUsize::new(0));
    let (noted, high) = (at_work.clone(), most.clone());
    tokio::spawn(controller(&queue).workers(3).run(CancellationToken::new(), move |key| {
        let (at_work, most) = (noted.clone(), high.clone());
        async move {
            {
                let mut at_work = at_work.lock().expect("workers");
                *at_work.entry(key).or_default() += 1;
                assert_eq!(at_work[key], 1, "{key} is with two workers");
                most.fetch_max(at_work.values().sum(), SeqCst);
            }
            tokio::time::sleep(seconds(1)).await;
            *at_work.lock().expect("workers").entry(key).or_default() -= 1;
            Ok(Outcome::Done)
        }
    }));
    for _ in 0..10 {
        for key in ["a", "b", "c", "d", "e"] {
            queue.add(key);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    tokio::time::sleep(seconds(60)).await;
    assert_eq!((most.load(SeqCst), queue.len()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_running_work_finish_and_begins_no_other() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    let (token, finished) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let count = finished.clone();
    let running = tokio::spawn(controller(&queue).grace(seconds(30)).run(token.clone(), move |_| {
        let finished = count.clone();
        async move {
            tokio::time::sleep(seconds(20)).await;
            finished.fetch_add(1, SeqCst);
            Ok(Outcome::Done)
        }
    }));
    tokio::time::sleep(seconds(1)).await;
    token.cancel();
    running.await.expect("no panic").expect("it finished in time");
    assert_eq!(finished.load(SeqCst), 1);
    assert_eq!(*queue.get().await.expect("what was not begun is still there"), "b");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_finish_in_time_is_dropped_and_its_key_goes_back() {
    let queue = queue();
    queue.add("slow");
    let token = CancellationToken::new();
    let began = Instant::now();
    let running = tokio::spawn(controller(&queue).workers(2).grace(seconds(5)).run(token.clone(), |_| async {
        tokio::time::sleep(seconds(3600)).await;
        Ok(Outcome::Done)
    }));
    tokio::time::sleep(seconds(1)).await;
    token.cancel();
    let error = running.await.expect("no panic").expect_err("it did not finish");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("back in the queue: 1"), "{error}");
    assert_eq!(began.elapsed(), seconds(6));
    assert_eq!(*queue.get().await.expect("no key is lost"), "slow");
}

#[tokio::test(start_paused = true)]
async fn dropping_a_run_loses_no_key() {
    let queue = queue();
    queue.add("a");
    let running = controller(&queue).run(CancellationToken::new(), |_| async {
        tokio::time::sleep(seconds(3600)).await;
        Ok(Outcome::Done)
    });
    assert!(tokio::time::timeout(seconds(1), running).await.is_err());
    tokio::task::yield_now().await;
    assert_eq!(*queue.get().await.expect("it is back"), "a");
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_shut_down_ends_the_controller_when_it_is_empty() {
    let queue = queue();
    queue.add("a");
    queue.shut_down();
    let (calls, _, running) = run(controller(&queue), |_, _| Ok(Outcome::Done));
    running.await.expect("no panic").expect("over");
    assert_eq!(calls.times("a").len(), 1);
}

// With informers.

fn keys() -> RateLimitingQueue<ObjectKey> {
    RateLimitingQueue::new(Exponential::new(Duration::from_millis(100), seconds(1000)))
}

fn object(json: &str) -> Object {
    Object::from_json(json.to_owned()).expect("an object")
}

/// Runs a controller, and gives the keys that came, in their order.
async fn reconciled<K: 'static>(informer: &SharedInformer<K>, controller: Controller, after: Duration) -> Vec<String> {
    informer.start(CancellationToken::new()).expect("a runtime");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let running = tokio::spawn(controller.run(CancellationToken::new(), move |key| {
        noted.lock().expect("keys").push(key.to_string());
        async { Ok(Outcome::Done) }
    }));
    tokio::time::sleep(after).await;
    running.abort();
    informer.shutdown().await;
    std::mem::take(&mut *seen.lock().expect("keys"))
}

#[tokio::test(start_paused = true)]
async fn the_objects_of_an_informer_are_reconciled_and_what_changes_before_what_was_there() {
    let watch = ScriptedWatch::new().modified(pod("c", "7")).hang();
    let source = Scripted::new()
        .answer_list(ScriptedList::new("5", [pod("a", "1"), pod("b", "2"), pod("c", "3")]))
        .answer_watch(watch);
    let pods: SharedInformer<Pod> = SharedInformer::new(source);
    let queue = keys();
    // The workers begin when the informer has synced; by then the change has come too.
    let slow = pods.clone();
    let controller = Controller::new("test", queue.clone()).reconciles(&pods).watches(&slow, |_| [key("always")]);
    let seen = reconciled(&pods, controller, seconds(1)).await;
    assert_eq!(seen.len(), 4, "{seen:?}");
    let at = |name: &str| seen.iter().position(|key| key == name).expect("reconciled");
    assert!(at("shop/c") < at("shop/a") && at("shop/a") < at("shop/b"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn what_an_object_pointed_to_before_is_told_too() {
    let labelled = |app: &str, version: &str| {
        object(&format!(
            r#"{{"metadata":{{"name":"a","namespace":"shop","uid":"1","resourceVersion":"{version}","labels":{{"app":"{app}"}}}}}}"#
        ))
    };
    let source = Scripted::new()
        .answer_list(ScriptedList::new("5", [labelled("old", "1")]))
        .answer_watch(ScriptedWatch::new().wait(seconds(10)).modified(labelled("new", "6")).hang());
    let pods: SharedInformer<Pod> = SharedInformer::new(source);
    let controller = Controller::new("test", keys())
        .watches(&pods, |pod| pod.labels().get("app").map(|app| ObjectKey::namespaced("apps", app)));
    let seen = reconciled(&pods, controller, seconds(20)).await;
    assert_eq!(seen, ["apps/old", "apps/old", "apps/new"]);
}

#[tokio::test(start_paused = true)]
async fn the_owner_that_controls_an_object_is_reconciled_whatever_its_version_and_scope() {
    let owned = |name: &str, owners: &str| {
        object(&format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"shop","resourceVersion":"1","ownerReferences":[{owners}]}}}}"#
        ))
    };
    let owner = |api_version: &str, kind: &str, name: &str, controller: bool| {
        format!(
            r#"{{"apiVersion":"{api_version}","kind":"{kind}","name":"{name}","uid":"u","controller":{controller}}}"#
        )
    };
    let children = || {
        Scripted::new()
            .answer_list(ScriptedList::new(
                "5",
                [
                    owned("a", &owner("apps/v1", "ReplicaSet", "one", true)),
                    owned("b", &owner("apps/v1beta1", "ReplicaSet", "two", true)),
                    owned("c", &owner("apps/v1", "ReplicaSet", "not-its-controller", false)),
                    owned("d", &owner("example.com/v1", "ReplicaSet", "of-another-group", true)),
                    owned("e", &owner("v1", "Namespace", "shop", true)),
                    owned("f", ""),
                ],
            ))
            .answer_watch(ScriptedWatch::new().hang())
    };
    let pods: SharedInformer<Pod> = SharedInformer::new(children());
    let controller = Controller::new("test", keys()).owns::<k8s_openapi::api::apps::v1::ReplicaSet, Pod>(&pods);
    assert_eq!(reconciled(&pods, controller, seconds(1)).await, ["shop/one", "shop/two"]);

    let pods: SharedInformer<Pod> = SharedInformer::new(children());
    let controller = Controller::new("test", keys()).owns::<Namespace, Pod>(&pods);
    assert_eq!(reconciled(&pods, controller, seconds(1)).await, ["shop"], "a namespace is in none");
}

#[tokio::test(start_paused = true)]
async fn predicates_keep_out_updates_that_changed_nothing_that_matters() {
    let state = |version: &str, generation: i64, app: &str| {
        object(&format!(
            r#"{{"metadata":{{"name":"a","namespace":"shop","uid":"1","resourceVersion":"{version}","generation":{generation},"labels":{{"app":"{app}"}}}}}}"#
        ))
    };
    // The first, a change of status, one of the spec, one of labels.
    let source = || {
        let watch = ScriptedWatch::new().wait(seconds(10)).modified(state("6", 1, "web")).wait(seconds(10));
        let watch = watch.modified(state("7", 2, "web")).wait(seconds(10)).modified(state("8", 2, "db")).hang();
        Scripted::new().answer_list(ScriptedList::new("5", [state("1", 1, "web")])).answer_watch(watch)
    };
    let count = async |predicate: Predicate<Pod>| {
        let pods: SharedInformer<Pod> = SharedInformer::builder(source()).resync_period(seconds(35)).build();
        let controller = Controller::new("test", keys()).reconciles_if(&pods, predicate);
        reconciled(&pods, controller, seconds(60)).await.len()
    };
    assert_eq!(count(Predicate::new(|_| true)).await, 5, "all, and a resync");
    assert_eq!(count(Predicate::version()).await, 4);
    assert_eq!(count(Predicate::generation()).await, 2);
    assert_eq!(count(Predicate::labels()).await, 2);
    assert_eq!(count(Predicate::generation().or(Predicate::labels())).await, 3);
    assert_eq!(count(Predicate::generation().and(Predicate::labels())).await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_cannot_sync_is_an_error_of_the_run() {
    let forbidden = || Error::api(403, "Forbidden", "no");
    let source = Scripted::new().fail_list(forbidden()).fail_list(forbidden()).fail_list(forbidden());
    let pods: SharedInformer<Pod> = SharedInformer::new(source);
    pods.start(CancellationToken::new()).expect("a runtime");
    let controller = Controller::new("test", keys()).reconciles(&pods);
    let error = controller.run(CancellationToken::new(), |_| async { Ok(Outcome::Done) }).await;
    assert!(error.expect_err("it is forbidden").is_forbidden());
    assert!(pods.handlers().is_empty(), "its handler is gone with it");
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_was_to_come_does_not_once_the_key_is_settled_but_a_time_that_was_asked_for_does() {
    for last in ["well", "terminal"] {
        let queue = queue();
        queue.add("a");
        let (calls, ..) = run(controller(&queue), move |_, call| match (call, last) {
            (0, _) => Err("tried again in 100 ms".into()),
            (_, "terminal") => Err(ReconcileError::terminal("no")),
            _ => Ok(Outcome::Done),
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        // Something happens before that.
        queue.add("a");
        tokio::time::sleep(seconds(60)).await;
        assert_eq!((calls.times("a"), queue.waiting_len()), (vec![0, 10], 0), "{last}");

        queue.add_after("b", Duration::from_millis(500));
        queue.add("b");
        tokio::time::sleep(Duration::from_millis(10)).await;
        queue.add("b");
        tokio::time::sleep(seconds(60)).await;
        assert_eq!(calls.times("b").len(), 3, "{last}: {:?}", calls.times("b"));
    }
}
