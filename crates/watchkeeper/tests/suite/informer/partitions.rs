//! Several namespaces, each listed and watched by itself.

use watchkeeper::{Backoff, HandlerOptions, Phase, Reason};

use super::*;

/// Objects a in `shop` and b in `bank`.
fn two() -> Cluster {
    let cluster = Cluster::with(&["a"]);
    cluster.put_in("bank", "b");
    cluster
}

fn of_both(cluster: &Cluster, queue: InformerQueue) -> SharedInformer<Pod> {
    informer(cluster.of_namespaces(&["shop", "bank"]), queue)
}

#[tokio::test(start_paused = true)]
async fn each_namespace_is_listed_and_watched_by_itself_and_others_are_not() {
    for queue in both_queues() {
        let cluster = two();
        cluster.put_in("mill", "c");
        let pods = of_both(&cluster, queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        pods.synced().await.expect("it syncs");
        cluster.put_in("mill", "d");
        cluster.put_in("bank", "e");
        settle().await;
        assert_eq!(notes.take_sorted(), ["+a@11 Initial", "+b@12 Initial", "+e@15 Watch"]);
        assert_eq!((cluster.lists_of("shop"), cluster.lists_of("bank"), cluster.open_watches()), (1, 1, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_forbidden_does_not_stop_the_others_and_is_reported() {
    for queue in both_queues() {
        let cluster = two();
        cluster.forbid("bank");
        let pods = of_both(&cluster, queue);
        let (notes, handle) = noting(&pods);
        start(&pods);
        let error = pods.synced().await.expect_err("one is forbidden");
        assert!(error.is_forbidden(), "{error}");
        cluster.put("a");
        settle().await;
        assert_eq!(notes.take(), ["+a@11 Initial", "~a@11>13 Watch"]);
        assert!(!pods.has_synced() && !handle.has_synced());
        let status = pods.status();
        assert_eq!(status.phase, Phase::BackingOff, "the one that is worst off counts");
        assert!(status.last_error.expect("an error").0.is_forbidden());
        let phases: Vec<_> = status.partitions.iter().map(|(name, status)| (name.as_deref(), status.phase)).collect();
        assert_eq!(phases, [(Some("shop"), Phase::Watching), (Some("bank"), Phase::BackingOff)]);
        cluster.allow_all();
        pass(seconds(120)).await;
        pods.synced().await.expect("it syncs");
        assert!(handle.has_synced());
        assert_eq!(notes.take(), ["+b@12 Initial"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_whose_watch_is_refused_after_its_list_keeps_nobody_waiting_for_another() {
    let cluster = two();
    let source = cluster.of_namespaces(&["shop", "bank"]);
    let pods: SharedInformer<Pod> = SharedInformer::builder(source)
        .reflector(|reflector| reflector.backoff(Backoff::new(seconds(1), seconds(1)).jitter(0.0)))
        .build();
    cluster.forbid("bank");
    start(&pods);
    pass(Duration::from_millis(1500)).await;
    cluster.allow_all();
    cluster.forbid("shop");
    // Bank has had its list by now, and shop is refused from then on, again and again.
    pass(seconds(60)).await;
    pods.synced().await.expect("each has had its list");
}

#[tokio::test(start_paused = true)]
async fn it_is_synced_when_all_are_and_a_handler_when_it_has_heard_of_all() {
    for queue in both_queues() {
        let cluster = two();
        cluster.forbid("bank");
        let pods = of_both(&cluster, queue);
        let (notes, handle) = noting(&pods);
        start(&pods);
        pass(Duration::from_millis(500)).await;
        assert!(!pods.has_synced() && !handle.has_synced());
        let (late, late_handle) = noting(&pods);
        cluster.allow_all();
        pass(seconds(5)).await;
        assert!(pods.has_synced() && handle.has_synced() && late_handle.has_synced());
        for notes in [notes, late] {
            assert_eq!(notes.take(), ["+a@11 Initial", "+b@12 Initial"], "each is the first list of its namespace");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_one_finds_deletions_in_it_and_leaves_the_others_alone() {
    for queue in both_queues() {
        let cluster = two();
        cluster.put("gone");
        let pods = of_both(&cluster, queue);
        let (notes, _) = noting_with(&pods, HandlerOptions::new().tell_unchanged(true));
        start(&pods);
        pods.synced().await.expect("it syncs");
        settle().await;
        notes.take();
        cluster.forbid("shop");
        cluster.delete("gone");
        cluster.put("new");
        recover().await;
        assert!(notes.take().is_empty());
        // What was missed is told by a list of that namespace alone.
        cluster.allow_all();
        pass(seconds(120)).await;
        assert_eq!(notes.take_sorted(), ["+new@15 Relist", "-gone@13? Relist", "~a@11>11 Relist"]);
        assert_eq!(cluster.lists_of("bank"), 1);
        assert_eq!(contents(pods.store()), ["a@11", "b@12", "new@15"]);
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_version_waits_for_that_namespace() {
    let cluster = two();
    let pods = of_both(&cluster, InformerQueue::Atomic);
    start(&pods);
    let lister = pods.synced().await.expect("it syncs");
    let waits = |namespace: &'static str, version: &'static str| {
        let lister = lister.namespace(namespace);
        tokio::spawn(async move { lister.wait_for(&version.into()).await })
    };
    cluster.put_in("shop", "a");
    settle().await;
    let (shop, bank, all) = (waits("shop", "13"), waits("bank", "13"), {
        let lister = lister.clone();
        tokio::spawn(async move { lister.wait_for(&"13".into()).await })
    });
    settle().await;
    assert!(shop.is_finished() && !bank.is_finished() && !all.is_finished());
    cluster.put_in("bank", "b");
    settle().await;
    assert!(bank.is_finished() && all.is_finished());
    assert!(waits("farm", "13").await.expect("no panic").is_err(), "nobody watches that");
    cluster.bookmark();
    settle().await;
    assert_eq!(lister.last_version().as_str(), "15");
}

#[tokio::test(start_paused = true)]
async fn objects_of_another_namespace_are_not_believed() {
    use watchkeeper::{ListWatch, Scope};
    let answer = |namespace: &'static str, version: &str| {
        let pod = crate::support::pod_json("a", "1");
        format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{pod},{}]}}"#,
            pod.replace("\"shop\"", &format!("\"{namespace}\""))
        )
    };
    let client = crate::support::client(move |request| {
        let bank = request.uri().path().contains("/namespaces/bank/");
        match request.uri().query().unwrap_or_default().contains("watch") {
            true => http::Response::new(crate::support::body(vec![crate::support::Piece::Hang])),
            false => crate::support::ok(if bank { answer("bank", "20") } else { answer("mill", "10") }),
        }
    });
    let scope = Scope::Namespaces(["shop".to_owned(), "bank".to_owned()].into());
    let source = ListWatch::of::<Pod>(client).scope(scope);
    let pods = builder(source, InformerQueue::Atomic).reflector(|reflector| reflector.streaming_lists(false)).build();
    let (notes, _) = noting(&pods);
    start(&pods);
    pods.synced().await.expect("it syncs");
    settle().await;
    assert_eq!(notes.take().len(), 2);
    let mut keys: Vec<String> = pods.store().list_keys().iter().map(ToString::to_string).collect();
    keys.sort();
    assert_eq!(keys, ["bank/a", "shop/a"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_named_twice_is_watched_once() {
    for queue in both_queues() {
        let cluster = two();
        let pods = informer(cluster.of_namespaces(&["shop", "bank", "shop"]), queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        pods.synced().await.expect("it syncs");
        cluster.put("a");
        settle().await;
        assert_eq!(notes.take_sorted(), ["+a@11 Initial", "+b@12 Initial", "~a@11>13 Watch"]);
        assert_eq!((cluster.lists_of("shop"), cluster.open_watches()), (1, 2));
        assert_eq!(pods.status().failure.map(|failure| failure.to_string()), None);
    }
}

#[tokio::test(start_paused = true)]
async fn no_namespace_at_all_is_an_error() {
    use watchkeeper::{ErrorKind, ListWatch, Scope};
    let client = crate::support::client(|_| panic!("nothing is asked for"));
    let pods: SharedInformer<Pod> =
        SharedInformer::new(ListWatch::of::<Pod>(client).scope(Scope::Namespaces(Default::default())));
    let error = pods.start(CancellationToken::new()).expect_err("there is nothing to watch");
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[tokio::test(start_paused = true)]
async fn stopping_stops_all_of_them() {
    for queue in both_queues() {
        let (before, cluster) = (alive_tasks(), two());
        let pods = of_both(&cluster, queue);
        start(&pods);
        pods.synced().await.expect("it syncs");
        assert_eq!(cluster.open_watches(), 2);
        pods.shutdown().await;
        settle().await;
        assert_eq!((cluster.open_watches(), alive_tasks()), (0, before));
    }
}

#[tokio::test(start_paused = true)]
async fn restarts_and_relists_are_counted_over_all_of_them() {
    let cluster = two();
    let pods = of_both(&cluster, InformerQueue::Atomic);
    start(&pods);
    pods.synced().await.expect("it syncs");
    pass(seconds(2)).await;
    cluster.gap(|_| {});
    recover().await;
    let status = pods.status();
    assert_eq!(status.relists.get(&Reason::Expired), Some(&2), "{status:?}");
    assert_eq!((status.phase, status.objects), (Phase::Watching, 2));
}

#[tokio::test(start_paused = true)]
async fn what_happens_in_one_namespace_is_no_progress_of_another() {
    for queue in both_queues() {
        let cluster = two();
        cluster.forbid("bank");
        let pods: SharedInformer<Pod> = SharedInformer::builder(cluster.of_namespaces(&["shop", "bank"]))
            .queue(queue)
            .reflector(|reflector| reflector.backoff(Backoff::new(seconds(3600), seconds(3600)).jitter(0.0)))
            .build();
        start(&pods);
        let busy = tokio::spawn(async move {
            loop {
                cluster.put("a");
                tokio::time::sleep(seconds(10)).await;
            }
        });
        let waited = tokio::time::timeout(seconds(600), pods.synced()).await;
        let error = waited.expect("it does not wait for ever").expect_err("bank is not there");
        assert_eq!(error.kind(), watchkeeper::ErrorKind::NotSynced);
        assert!(error.to_string().contains("bank") && !error.to_string().contains("shop"), "{error}");
        busy.abort();
    }
}
