//! What the controllers do when something changes.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use watchkeeper::ObjectKey;

use super::support::{Bench, is_owned, is_ready, key, quiet};
use crate::living::api::{Resource, Target};

const LONG: Duration = Duration::from_secs(120);

#[tokio::test(start_paused = true)]
async fn scaling_up_and_down_converges_with_the_right_owners() {
    let bench = Bench::start(quiet(300)).await;
    let deployment = bench.large_deployment();
    let key = key(&deployment);
    for wanted in [20, 2, 0, 3] {
        bench.patch_deployment(&deployment, json!({"replicas": wanted})).await;
        bench.until("as many pods as wanted", LONG, |bench| bench.has_converged(&key)).await;
        assert_eq!(bench.pods_of(&deployment).len(), wanted);
    }
    let sets = bench.all("apps", "replicasets");
    let newest = sets.iter().filter(|set| is_owned(set, &deployment) && set["spec"]["replicas"] == 3).count();
    assert_eq!(newest, 1, "no other ReplicaSet was made for it");
    // The slices follow.
    for service in
        bench.all("", "services").iter().filter(|service| service["metadata"]["name"] == deployment["metadata"]["name"])
    {
        let slices = bench.all("discovery.k8s.io", "endpointslices");
        let slice = slices.iter().find(|slice| is_owned(slice, service)).expect("a slice");
        assert_eq!(slice["endpoints"].as_array().map(Vec::len), Some(3));
    }
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_replaces_all_pods_and_never_has_too_few() {
    let bench = Bench::start(quiet(300)).await;
    let deployment = bench.large_deployment();
    let key = key(&deployment);
    bench.patch_deployment(&deployment, json!({"replicas": 12})).await;
    bench.until("twelve pods", LONG, |bench| bench.has_converged(&key)).await;
    let names = |bench: &Bench| -> Vec<Value> {
        bench.pods_of(&deployment).iter().map(|pod| pod["metadata"]["name"].clone()).collect()
    };
    let before = names(&bench);
    let mut containers = deployment["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["image"] = "shop/web:99.0.0".into();
    bench.patch_deployment(&deployment, json!({"template": {"spec": {"containers": containers}}})).await;
    let mut rounds = 0;
    while !bench.has_converged(&key) {
        let pods = bench.pods_of(&deployment);
        let available = pods.iter().filter(|pod| is_ready(pod)).count();
        assert!(available >= 9, "{available} of 12, of which three may be missing");
        assert!(pods.len() <= 15, "{} of 12, and three more there may be", pods.len());
        rounds += 1;
        assert!(rounds < 20_000, "no end: {:?}", bench.living.queues());
        sleep(Duration::from_millis(60)).await;
    }
    assert!(rounds > 50, "it takes its time: {rounds}");
    assert!(names(&bench).iter().all(|name| !before.contains(name)));
    let deployment = bench.get("apps", "deployments", &key).expect("it");
    let revision = &deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
    let newest = bench
        .all("apps", "replicasets")
        .into_iter()
        .find(|set| is_owned(set, &deployment) && set["spec"]["replicas"] == 12);
    assert_eq!(&newest.expect("a set")["metadata"]["annotations"]["deployment.kubernetes.io/revision"], revision);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_crashes_waits_longer_each_time_and_recovers() {
    let bench = Bench::start(quiet(300)).await;
    bench.living.ready().await.expect("informers");
    let deployment = bench.large_deployment();
    let pod = key(&bench.pods_of(&deployment)[0]);
    let restarts = |bench: &Bench| -> i64 {
        let pod = bench.get("", "pods", &pod).expect("the pod");
        pod["status"]["containerStatuses"][0]["restartCount"].as_i64().expect("a number")
    };
    let waits = |bench: &Bench| {
        let pod = bench.get("", "pods", &pod).expect("the pod");
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    };
    let before = restarts(&bench);
    let (namespace, name) = pod.split_once('/').expect("a key");
    bench.living.fates.fail(&ObjectKey::namespaced(namespace, name), 2);
    bench.until("it crashes", LONG, waits).await;
    bench.until("it is started again", LONG, |bench| !waits(bench)).await;
    bench.until("it crashes again", LONG, waits).await;
    let key = key(&deployment);
    assert!(!bench.has_converged(&key), "one is missing");
    bench.until("it is ready again", LONG, |bench| bench.has_converged(&key)).await;
    assert_eq!(restarts(&bench), before + 2);
    sleep(LONG).await;
    assert_eq!(restarts(&bench), before + 2);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn with_a_deployment_all_that_is_its_goes() {
    for foreground in [false, true] {
        let bench = Bench::start(quiet(300)).await;
        let deployment = bench.large_deployment();
        let sets: Vec<Value> =
            bench.all("apps", "replicasets").into_iter().filter(|set| is_owned(set, &deployment)).collect();
        assert!(!sets.is_empty() && !bench.pods_of(&deployment).is_empty());
        if foreground {
            // As the server does it, when it is asked to.
            let patch = json!({"metadata": {"finalizers": ["foregroundDeletion"]}});
            let (namespace, name) = (&deployment["metadata"]["namespace"], &deployment["metadata"]["name"]);
            let (namespace, name) = (namespace.as_str().expect("text"), name.as_str().expect("text"));
            let target = Target { resource: Resource::Deployments, namespace, name };
            bench.api.patch(target, &patch).await.expect("a finalizer");
        }
        bench.delete(Resource::Deployments, &deployment).await;
        let is_left = |bench: &Bench| {
            let is_of_it = |set: &Value| is_owned(set, &deployment);
            bench.get("apps", "deployments", &key(&deployment)).is_some()
                || bench.all("apps", "replicasets").iter().any(is_of_it)
                || bench.all("", "pods").iter().any(|pod| sets.iter().any(|set| is_owned(pod, set)))
        };
        bench.until("nothing is left", LONG, |bench| !is_left(bench)).await;
        sleep(LONG).await;
        assert!(!is_left(&bench));
        bench.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_node_gets_no_new_pods() {
    let bench = Bench::start(quiet(600)).await;
    let node = bench.all("", "nodes").pop().expect("a node");
    let name = node["metadata"]["name"].as_str().expect("a name").to_owned();
    let target = Target { resource: Resource::Nodes, namespace: "", name: &name };
    bench.api.patch(target, &json!({"spec": {"unschedulable": true}})).await.expect("a cordon");
    let on_it =
        |bench: &Bench| bench.all("", "pods").iter().filter(|pod| pod["spec"]["nodeName"] == name.as_str()).count();
    let before = on_it(&bench);
    let deployment = bench.large_deployment();
    bench.patch_deployment(&deployment, json!({"replicas": 50})).await;
    bench.until("fifty pods", LONG, |bench| bench.has_converged(&key(&deployment))).await;
    assert!(on_it(&bench) <= before);
    bench.api.patch(target, &json!({"spec": {"unschedulable": null}})).await.expect("no cordon");
    bench.patch_deployment(&deployment, json!({"replicas": 60})).await;
    bench.until("sixty pods", LONG, |bench| bench.has_converged(&key(&deployment))).await;
    assert!(on_it(&bench) > before, "it had the fewest");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_away_takes_its_pods_out_of_reach_and_brings_them_back() {
    let bench = Bench::start(quiet(300)).await;
    bench.living.ready().await.expect("informers");
    let node = bench.all("", "nodes").pop().expect("a node");
    let name = node["metadata"]["name"].as_str().expect("a name");
    let ready = |bench: &Bench| {
        let pods = bench.all("", "pods");
        let runs = pods.iter().filter(|pod| pod["spec"]["nodeName"] == name && pod["status"]["phase"] == "Running");
        let (ready, not): (Vec<&Value>, Vec<&Value>) = runs.partition(|pod| is_ready(pod));
        (ready.len(), not.len())
    };
    let (all, _) = ready(&bench);
    bench.living.outages.set(&ObjectKey::cluster(name), true);
    bench.until("none is ready", LONG, |bench| ready(bench) == (0, all)).await;
    bench.living.outages.set(&ObjectKey::cluster(name), false);
    bench.until("all are ready", LONG, |bench| ready(bench) == (all, 0)).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_all_that_is_in_it() {
    let bench = Bench::start(quiet(600)).await;
    bench.living.ready().await.expect("informers");
    let target = Target { resource: Resource::Namespaces, namespace: "", name: "shop" };
    assert!(bench.all("", "pods").iter().any(|pod| pod["metadata"]["namespace"] == "shop"));
    bench.api.delete(target, "", None).await.expect("a deletion");
    bench.until("it is gone", LONG, |bench| bench.get("", "namespaces", "shop").is_none()).await;
    for (group, plural) in
        [("", "pods"), ("", "configmaps"), ("", "secrets"), ("apps", "replicasets"), ("", "services")]
    {
        let left = bench.all(group, plural).iter().filter(|object| object["metadata"]["namespace"] == "shop").count();
        assert_eq!(left, 0, "{plural}");
    }
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_left_alone_and_harms_nobody_else() {
    let bench = Bench::start(quiet(300)).await;
    let object = |kind: &str, name: &str, spec: Value| {
        let version = if kind == "Pod" { "v1" } else { "apps/v1" };
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
    };
    let huge =
        json!({"template": {"spec": {}}, "replicas": 2_000_000_000, "strategy": {"rollingUpdate": {"maxSurge": "x"}}});
    for object in [
        object("Deployment", "no-template", json!({"replicas": 3})),
        object("Deployment", "bad-types", json!({"replicas": "three", "template": []})),
        object("Deployment", "negative", json!({"replicas": -5, "template": {"spec": {}}})),
        object("Deployment", "huge", huge),
        object("ReplicaSet", "nothing", json!({})),
        object("Pod", "bare", json!({})),
        object("Pod", "lost", json!({"nodeName": "nowhere"})),
        object("Pod", "odd", json!({"nodeName": 7, "containers": {"a": 1}})),
    ] {
        bench.server.put(object).expect("an object");
    }
    sleep(LONG).await;
    let pods = bench.all("", "pods").len();
    assert!(pods <= 300 + 500 + 3, "{pods} pods");
    let bare = bench.get("", "pods", "shop/bare").expect("the pod");
    assert_eq!(bare["status"]["phase"], "Running");
    assert_eq!(bench.get("", "pods", "shop/lost"), None, "its node is not there");
    bench.server.remove(&bench.server.kind("apps", "deployments").expect("a kind"), "shop/huge");
    bench.until("it is gone", 5 * LONG, |bench| bench.all("", "pods").len() < 300).await;
    let deployment = bench.large_deployment();
    bench.patch_deployment(&deployment, json!({"replicas": 9})).await;
    bench.until("nine pods", LONG, |bench| bench.has_converged(&key(&deployment))).await;
    bench.stop().await;
}
