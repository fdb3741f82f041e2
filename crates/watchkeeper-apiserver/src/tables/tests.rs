//! Cells of real and of impossible objects.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::kinds::Registry;

/// The cells of an object as it is stored.
fn cells(kind: &Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    let mut object = object.clone();
    filled::fill(&kind.group, &kind.plural, &mut object);
    let row = Row::new(kind, kind.storage_version(), &object, now);
    row.cells.iter().map(|cell| cell.of(row.subject)).collect()
}

fn noon() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().expect("a time")
}

/// Name, ready, status and restarts of a pod with this spec and status.
fn pod(spec: Value, status: Value, deleted: bool) -> String {
    let kind = Registry::new().find("", "pods").expect("pods");
    let mut object = json!({"metadata": {"name": "a"}, "spec": spec, "status": status});
    if deleted {
        object["metadata"]["deletionTimestamp"] = json!("2026-11-15T11:00:00Z");
    }
    let cells = cells(&kind, &object, noon());
    let text = |i: usize| cells[i].as_str().unwrap_or_default().to_owned();
    format!("{} {} {}", text(1), text(2), text(3))
}

#[test]
fn a_pods_status_is_worded_as_kubectl_words_it() {
    let one = || json!({"containers": [{"name": "c"}]});
    let two = || json!({"containers": [{"name": "c"}, {"name": "d"}]});
    let init = || json!({"initContainers": [{"name": "i"}, {"name": "j"}], "containers": [{"name": "c"}]});
    let sidecar = || {
        let sidecar = json!({"name": "s", "restartPolicy": "Always"});
        json!({"initContainers": [sidecar, {"name": "i"}], "containers": [{"name": "c"}]})
    };
    let running = json!({"name": "c", "ready": true, "state": {"running": {}}});
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let waiting = |reason: &str| json!({"name": "c", "state": {"waiting": {"reason": reason}}});
    let ended =
        |reason: &str, code: i64| json!({"name": "d", "state": {"terminated": {"reason": reason, "exitCode": code}}});
    let exited =
        |code: i64, signal: i64| json!({"name": "i", "state": {"terminated": {"exitCode": code, "signal": signal}}});
    let restarted = |count: i64, at: &str| {
        let last = json!({"terminated": {"exitCode": 1, "finishedAt": at}});
        json!({"name": "c", "ready": true, "restartCount": count, "state": {"running": {}}, "lastState": last})
    };
    for (spec, status, shown) in [
        (one(), json!({"phase": "Pending"}), "0/1 Pending 0"),
        (one(), json!({"phase": "Running", "containerStatuses": [running]}), "1/1 Running 0"),
        (one(), json!({"phase": "Failed", "reason": "Evicted"}), "0/1 Evicted 0"),
        (
            one(),
            json!({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}),
            "0/1 ContainerCreating 0",
        ),
        (
            one(),
            json!({"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff")]}),
            "0/1 CrashLoopBackOff 0",
        ),
        (one(), json!({"phase": "Pending", "containerStatuses": [waiting("")]}), "0/1 Pending 0"),
        (one(), json!({"phase": "Succeeded", "containerStatuses": [ended("Completed", 0)]}), "0/1 Completed 0"),
        (one(), json!({"phase": "Failed", "containerStatuses": [ended("Error", 1)]}), "0/1 Error 0"),
        (one(), json!({"phase": "Failed", "containerStatuses": [exited(3, 0)]}), "0/1 ExitCode:3 0"),
        (one(), json!({"phase": "Failed", "containerStatuses": [exited(137, 9)]}), "0/1 Signal:9 0"),
        (
            one(),
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            "0/1 SchedulingGated 0",
        ),
        // One has ended well, the other still runs.
        (
            two(),
            json!({"phase": "Running", "conditions": ready, "containerStatuses": [ended("Completed", 0), running]}),
            "1/2 Running 0",
        ),
        (two(), json!({"phase": "Running", "containerStatuses": [ended("Completed", 0), running]}), "1/2 NotReady 0"),
        (
            two(),
            json!({"phase": "Running", "containerStatuses": [ended("Completed", 0), ended("Error", 2)]}),
            "0/2 Error 0",
        ),
        // Before the containers come the init containers.
        (init(), json!({"phase": "Pending", "initContainerStatuses": [waiting("PodInitializing")]}), "0/1 Init:0/2 0"),
        (init(), json!({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}), "0/1 Init:0/2 0"),
        (init(), json!({"phase": "Pending", "initContainerStatuses": [exited(0, 0), {}]}), "0/1 Init:1/2 0"),
        (
            init(),
            json!({"phase": "Pending", "initContainerStatuses": [waiting("ErrImagePull")]}),
            "0/1 Init:ErrImagePull 0",
        ),
        (init(), json!({"phase": "Pending", "initContainerStatuses": [ended("Error", 1)]}), "0/1 Init:Error 0"),
        (init(), json!({"phase": "Pending", "initContainerStatuses": [exited(4, 0)]}), "0/1 Init:ExitCode:4 0"),
        (init(), json!({"phase": "Pending", "initContainerStatuses": [exited(4, 11)]}), "0/1 Init:Signal:11 0"),
        (
            init(),
            json!({
                "phase": "Pending", "initContainerStatuses": [exited(0, 0), exited(0, 0)],
                "containerStatuses": [waiting("PodInitializing")],
            }),
            "0/1 PodInitializing 0",
        ),
        // Once a pod was initialized, a failing init container no longer counts.
        (
            init(),
            json!({
                "phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}],
                "initContainerStatuses": [exited(4, 0)], "containerStatuses": [running],
            }),
            "1/1 Init:ExitCode:4 0",
        ),
        // Sidecars are counted among the containers.
        (
            sidecar(),
            json!({
                "phase": "Running", "containerStatuses": [running],
                "initContainerStatuses": [
                    {"name": "s", "started": true, "ready": true, "restartCount": 2, "state": {"running": {}}},
                    exited(0, 0),
                ],
            }),
            "2/2 Running 2",
        ),
        (
            sidecar(),
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "s", "state": {"running": {}}}]}),
            "0/2 Init:0/2 0",
        ),
        // Restarts, with the last one.
        (
            one(),
            json!({"phase": "Running", "containerStatuses": [restarted(4, "2026-11-15T11:55:00Z")]}),
            "1/1 Running 4 (5m ago)",
        ),
        (
            one(),
            json!({"phase": "Running", "containerStatuses": [restarted(0, "2026-11-15T11:55:00Z")]}),
            "1/1 Running 0",
        ),
        (one(), json!({"phase": "Running", "containerStatuses": [restarted(4, "never")]}), "1/1 Running 4"),
        (
            one(),
            json!({"phase": "Running", "containerStatuses": [restarted(i64::MAX, ""), restarted(i64::MAX, "")]}),
            "2/1 Running 9223372036854775807",
        ),
    ] {
        assert_eq!(pod(spec, status.clone(), false), shown, "{status}");
    }
    let unreachable = json!({"phase": "Running", "reason": "NodeLost"});
    assert_eq!(pod(one(), unreachable, true), "0/1 Unknown 0");
    assert_eq!(pod(one(), json!({"phase": "Running"}), true), "0/1 Terminating 0");
    assert_eq!(pod(one(), json!({"phase": "Succeeded"}), true), "0/1 Succeeded 0");
}

/// What a kube-apiserver v1.36.4 showed of objects.
#[test]
fn recorded_objects_have_the_recorded_cells() {
    let registry = Registry::new();
    let mut kinds = std::collections::BTreeSet::new();
    for line in include_str!("../../data/tables.jsonl").lines() {
        let recorded: Value = serde_json::from_str(line).expect("a line");
        let text = |field: &str| recorded[field].as_str().expect("a text");
        let kind = registry.find(text("group"), text("plural")).expect("a kind");
        let now = text("now").parse().expect("a time");
        assert_eq!(Value::Array(cells(&kind, &recorded["object"], now)), recorded["cells"], "{line}");
        kinds.insert((kind.group.clone(), kind.plural.clone()));
    }
    assert!(kinds.len() >= 55, "only {} kinds: {kinds:?}", kinds.len());
}

#[test]
fn what_is_not_sent_is_shown_as_a_kube_apiserver_fills_it_in() {
    let registry = Registry::new();
    let shown = |group: &str, plural: &str, object: Value| {
        let kind = registry.find(group, plural).expect("a kind");
        cells(&kind, &object, noon())
    };
    assert_eq!(shown("apps", "deployments", json!({"spec": {}}))[1], "0/1");
    let template = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(shown("", "replicationcontrollers", json!({"spec": {"template": template}}))[7], "a=b");
    assert_eq!(shown("apps", "deployments", json!({"spec": {"replicas": 0}}))[1], "0/0");
    assert_eq!(shown("apps", "deployments", json!({}))[1], "0/0");
    assert_eq!(shown("batch", "jobs", json!({"spec": {}}))[2], "0/1");
    assert_eq!(shown("batch", "jobs", json!({"spec": {"parallelism": 3}}))[2], "0/1 of 3");
    let job = shown("batch", "jobs", json!({"metadata": {"uid": "u1"}, "spec": {}}));
    assert_eq!(job[7], "batch.kubernetes.io/controller-uid=u1");
    let old = json!({"spec": {"targetCPUUtilizationPercentage": 50}, "status": {"currentCPUUtilizationPercentage": 7}});
    assert_eq!(shown("autoscaling", "horizontalpodautoscalers", old)[2], "cpu: 7%/50%");
    let none = json!({"spec": {}});
    assert_eq!(shown("autoscaling", "horizontalpodautoscalers", none)[2..4], ["cpu: <unknown>/80%", "1"]);
    let gated = json!({"spec": {"schedulingGates": [{"name": "wait"}]}, "status": {"phase": "Pending"}});
    assert_eq!(shown("", "pods", gated)[2], "SchedulingGated");
    assert_eq!(shown("", "pods", json!({"status": {"podIPs": [{"ip": "::1"}]}}))[5], "::1");
}

/// Any JSON, with the fields that cells look at more often than chance would have it.
fn any_json() -> impl Strategy<Value = Value> {
    let fields = prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "name",
        "creationTimestamp",
        "deletionTimestamp",
        "labels",
        "annotations",
        "containers",
        "initContainers",
        "containerStatuses",
        "initContainerStatuses",
        "state",
        "terminated",
        "waiting",
        "running",
        "reason",
        "conditions",
        "type",
        "template",
        "selector",
        "matchLabels",
        "matchExpressions",
        "key",
        "operator",
        "values",
        "ports",
        "port",
        "addresses",
        "subsets",
        "endpoints",
        "rules",
        "host",
        "metrics",
        "resource",
        "target",
        "averageValue",
        "hard",
        "used",
        "capacity",
        "storage",
        "data",
        "ownerReferences",
        "controller",
        "completions",
        "startTime",
        "restartCount",
        "lastState",
        "finishedAt",
        "exitCode",
        "series",
        "count",
        "firstTimestamp",
        "subjects",
        "kind",
        "limited",
        "replicas",
        "loadBalancer",
        "ingress",
        "ip",
        "currentMetrics",
        "expirationSeconds",
        "paramRef",
        "accessModes",
        "volumeName",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "True",
            "Ready",
            "In",
            "Resource",
            "External",
            "LoadBalancer",
            "Healthy",
            "1e999999999",
            "-9e-9",
            "99999Ei",
            "0.",
            "-",
            "9999-12-31T23:59:59Z",
            "-009999-01-02T01:59:59Z",
            "0001-01-01T00:00:00Z",
            "",
            "ServiceAccount",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 96, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((fields.clone(), inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn anything_has_a_cell_for_each_column(object in any_json()) {
        let registry = Registry::new();
        for kind in registry.all() {
            let shown = cells(&kind, &object, noon());
            prop_assert_eq!(shown.len(), layout::cells(&kind).len());
            prop_assert!(shown.iter().all(|cell| !cell.is_object() && !cell.is_array()));
            let row = Row::new(&kind, kind.storage_version(), &object, noon());
            let members = format!("{{{}}}", row.members());
            prop_assert!(serde_json::from_str::<Value>(&members).is_ok(), "{}", members);
        }
    }
}
