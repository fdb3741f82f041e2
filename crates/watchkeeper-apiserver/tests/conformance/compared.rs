//! Answers that once differed from those of a kube-apiserver: found by sending both the same requests.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::Controllers;

use crate::support::*;

const APPLY: &str = "application/apply-patch+yaml";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn pod(spec: Value) -> Value {
    json!({"metadata": {"name": "p"}, "spec": spec})
}

fn one_container() -> Value {
    json!({"containers": [{"name": "c", "image": "i:1"}]})
}

fn deployment(more: &Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": one_container()},
    });
    let (Value::Object(spec_map), Value::Object(more)) = (&mut spec, more.clone()) else { panic!("maps") };
    spec_map.extend(more);
    json!({"metadata": {"name": "d"}, "spec": spec})
}

/// The code and the end of the text of a refusal.
fn assert_refused(reply: &Reply, code: u16, text: &str) {
    let (status, _, message) = reply.failure();
    assert_eq!(status, code, "{message}");
    assert!(message.ends_with(text), "{message}\ndoes not end with\n{text}");
}

#[tokio::test(start_paused = true)]
async fn of_a_pod_hardly_anything_may_change() {
    let server = server();
    server.post(PODS, pod(one_container())).await.ok();
    let path = format!("{PODS}/p");
    let changed = server.merge(&path, json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}})).await.ok();
    assert_eq!(changed["spec"]["containers"][0]["image"], "i:2");
    server.merge(&path, json!({"spec": {"activeDeadlineSeconds": 100}})).await.ok();
    for (patch, text) in [
        (json!({"nodeName": "n"}), "(allow it to be set to 1 if it was previously negative)"),
        (json!({"restartPolicy": "Never"}), "(allow it to be set to 1 if it was previously negative)"),
        (
            json!({"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}),
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (json!({"activeDeadlineSeconds": 200}), "Invalid value: 200: must be less than or equal to previous value"),
    ] {
        assert_refused(&server.merge(&path, json!({"spec": patch})).await, 422, text);
    }
    // What the server puts into the list comes back by itself.
    let tolerant =
        server.merge(&path, json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}})).await.ok();
    assert_eq!(tolerant["spec"]["tolerations"].as_array().expect("a list").len(), 3);
    assert_eq!(tolerant["spec"]["priority"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_has_the_priority_of_its_class() {
    let server = server();
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    server.post("/apis/scheduling.k8s.io/v1/priorityclasses", class).await.ok();
    let with = |field: &str, value: Value| {
        let mut spec = one_container();
        spec[field] = value;
        pod(spec)
    };
    let refused = server.post(PODS, with("priorityClassName", "nope".into())).await;
    assert_refused(&refused, 403, "pods \"p\" is forbidden: no PriorityClass with name nope was found");
    let refused = server.post(PODS, with("priority", 5.into())).await;
    assert_refused(&refused, 403, "priority admission controller computed 0 from the given PriorityClass name");
    let high = server.post(PODS, with("priorityClassName", "high".into())).await.ok();
    assert_eq!(high["spec"]["priority"], 1000);
}

#[tokio::test(start_paused = true)]
async fn specs_of_pods_and_what_makes_them_are_looked_at() {
    let server = server();
    let container = |more: Value| {
        let mut spec = one_container();
        let (Some(container), Value::Object(more)) = (spec["containers"][0].as_object_mut(), more) else {
            panic!("maps")
        };
        container.extend(more);
        spec
    };
    let with = |field: &str, value: Value| {
        let mut spec = one_container();
        spec[field] = value;
        spec
    };
    for (spec, text) in [
        (
            container(json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}})),
            "resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
        ),
        (container(json!({"livenessProbe": {}})), "livenessProbe: Required value: must specify a handler type"),
        (
            with("nodeName", "A_B".into()),
            "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        (
            with("nodeSelector", json!({"a b": "c"})),
            "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
    ] {
        assert_refused(&server.post(PODS, pod(spec)).await, 422, text);
    }
    let negative = server.post(PODS, pod(with("terminationGracePeriodSeconds", (-1).into()))).await.ok();
    assert_eq!(negative["spec"]["terminationGracePeriodSeconds"], 1);
    for (more, text) in [
        (
            json!({"strategy": {"type": "Nope"}}),
            "spec.strategy: Unsupported value: {\"Type\":\"Nope\",\"RollingUpdate\":null}: supported values: \"Recreate\", \"RollingUpdate\"",
        ),
        (
            json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}),
            "maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Nope"}]}}),
            "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Nope\"}]}: invalid label selector]",
        ),
    ] {
        assert_refused(&server.post(DEPLOYMENTS, deployment(&more)).await, 422, text);
    }
    server.post(DEPLOYMENTS, deployment(&json!({}))).await.ok();
    let refused = server.merge(&format!("{DEPLOYMENTS}/d/status"), json!({"status": {"replicas": -2}})).await;
    assert_refused(
        &refused,
        422,
        "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas]",
    );
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}});
    let cron = json!({"metadata": {"name": "c"}, "spec": {"schedule": "now", "jobTemplate": {"spec": job}}});
    let refused = server.post("/apis/batch/v1/namespaces/default/cronjobs", cron).await;
    assert_refused(&refused, 422, "spec.schedule: Invalid value: \"now\": expected exactly 5 fields, found 1: [now]");
}

#[tokio::test(start_paused = true)]
async fn secrets_have_what_their_type_says() {
    let server = server();
    let secret = |kind: &str, data: Value| json!({"metadata": {"name": "s"}, "type": kind, "data": data});
    for (kind, data, text) in [
        ("kubernetes.io/tls", json!({"tls.crt": "eA=="}), "data[tls.key]: Required value"),
        ("kubernetes.io/dockerconfigjson", json!({}), "data[.dockerconfigjson]: Required value"),
        ("kubernetes.io/ssh-auth", json!({}), "data[ssh-privatekey]: Required value"),
        ("kubernetes.io/basic-auth", json!({}), "[data[username]: Required value, data[password]: Required value]"),
    ] {
        assert_refused(&server.post(SECRETS, secret(kind, data)).await, 422, text);
    }
    let map = json!({"metadata": {"name": "m"}, "data": {"..": "x"}});
    assert_refused(&server.post(MAPS, map).await, 422, "data[..]: Invalid value: \"..\": must not be '..'");
    let both = json!({"metadata": {"name": "m", "labels": {"a b": "c"}}, "data": {"not a key": "x"}});
    assert_eq!(server.post(MAPS, both).await.json()["details"]["causes"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(start_paused = true)]
async fn nodes_volumes_and_events_are_looked_at() {
    let server = server();
    server.post("/api/v1/nodes", json!({"metadata": {"name": "n"}, "spec": {"podCIDR": "10.0.0.0/24"}})).await.ok();
    let refused = server.merge("/api/v1/nodes/n", json!({"spec": {"podCIDR": "10.0.1.0/24"}})).await;
    assert_refused(&refused, 422, "node updates may not change podCIDR except from \"\" to valid");
    let volume =
        json!({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}});
    let refused = server.post("/api/v1/persistentvolumes", volume).await;
    assert_refused(&refused, 422, "spec: Required value: must specify a volume type");
    let event =
        |namespace: &str| json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": namespace}});
    let refused = server.post("/api/v1/namespaces/default/events", event("other")).await;
    assert_refused(&refused, 422, "involvedObject.namespace: Invalid value: \"other\": does not match event.namespace");
    server.post("/api/v1/namespaces/default/events", event("default")).await.ok();
    let other = server.get("/apis/events.k8s.io/v1/namespaces/default/events/e").await.ok();
    assert!(other.get("reportingController").is_none() && other.get("reportingInstance").is_none(), "{other}");
    // What is in no namespace loses one that it names.
    let placed = server.post("/api/v1/nodes", json!({"metadata": {"name": "m", "namespace": "default"}})).await.ok();
    assert!(placed["metadata"].get("namespace").is_none() && placed["metadata"].get("managedFields").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_service_gives_its_node_ports_back() {
    let server = server();
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    server.post(SERVICES, service).await.ok();
    let plain = server.merge(&format!("{SERVICES}/s"), json!({"spec": {"type": "ClusterIP"}})).await.ok();
    assert!(plain["spec"]["ports"][0].get("nodePort").is_none(), "{plain}");
    assert!(plain["spec"].get("externalTrafficPolicy").is_none(), "{plain}");
}

#[tokio::test(start_paused = true)]
async fn jobs_leave_their_pods_behind_and_say_so() {
    let server = builder().controllers(Controllers::Elsewhere).build();
    let spec = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}});
    for name in ["a", "b"] {
        server.post(JOBS, json!({"metadata": {"name": name}, "spec": spec})).await.ok();
    }
    let reply = server.delete(&format!("{JOBS}/a")).await;
    assert_eq!(reply.ok()["metadata"]["finalizers"], json!(["orphan"]));
    let warning = reply.headers["warning"].to_str().expect("text");
    assert!(warning.starts_with("299 - \"child pods are preserved by default when jobs are deleted"), "{warning}");
    let reply = server.delete(&format!("{JOBS}/b?propagationPolicy=Background")).await;
    assert!(reply.headers.get("warning").is_none());
    assert_eq!(server.get(&format!("{JOBS}/b")).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn whoever_sends_a_body_with_a_deletion_says_everything_there() {
    let server = server();
    server.map("a").await;
    let headers = [("content-type", "application/json")];
    for (body, text) in [
        (
            r#"{"gracePeriodSeconds": "x"}"#,
            "string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
        (r#"{"preconditions": 5}"#, "number into Go struct field DeleteOptions.preconditions of type v1.Preconditions"),
        (r#"{"dryRun": "All"}"#, "string into Go struct field DeleteOptions.dryRun of type []string"),
    ] {
        let reply = server.call(Method::DELETE, &format!("{MAPS}/a"), &headers, Bytes::from(body)).await;
        assert_refused(&reply, 400, &format!("json: cannot unmarshal {text}"));
    }
    // The query's dry run is not looked at.
    server.call(Method::DELETE, &format!("{MAPS}/a?dryRun=All"), &headers, Bytes::from("{}")).await.ok();
    assert_eq!(server.get(&format!("{MAPS}/a")).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_taken_until_its_object_is_gone() {
    let server = server();
    server.post(MAPS, json!({"metadata": {"name": "a", "finalizers": ["x.io/a"]}})).await.ok();
    server.delete(&format!("{MAPS}/a")).await.ok();
    let refused = server.post(MAPS, config_map("a")).await;
    assert_refused(&refused, 409, "object is being deleted: configmaps \"a\" already exists");
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_comes_twice_counts_once() {
    let server = builder().controllers(Controllers::Elsewhere).build();
    let owner = json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"});
    let map = json!({"metadata": {"name": "a", "ownerReferences": [owner, owner]}});
    let reply = server.post(MAPS, map).await;
    assert_eq!(reply.ok()["metadata"]["ownerReferences"], json!([owner]));
    let warning = reply.headers["warning"].to_str().expect("text");
    assert!(warning.ends_with("duplicate UID(s) observed: 1\""), "{warning}");
}

#[tokio::test(start_paused = true)]
async fn finalizing_a_namespace_takes_its_metadata_along() {
    let server = builder().controllers(Controllers::Elsewhere).build();
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "n", "labels": {"a": "b"}}})).await.ok();
    // What holds it changes in no other way.
    let changed = server.merge("/api/v1/namespaces/n", json!({"spec": {"finalizers": []}})).await.ok();
    assert_eq!(changed["spec"]["finalizers"], json!(["kubernetes"]));
    let finalized = server
        .replace("/api/v1/namespaces/n/finalize", json!({"metadata": {"name": "n"}, "spec": {"finalizers": []}}))
        .await
        .ok();
    assert_eq!(finalized["spec"], json!({}));
    assert_eq!(finalized["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "n"}));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_by_its_uid() {
    let server = server();
    server.post(PODS, pod(one_container())).await.ok();
    let binding = json!({"metadata": {"name": "p", "uid": "other"}, "target": {"kind": "Node", "name": "n"}});
    let reply = server.post(&format!("{PODS}/p/binding"), binding).await;
    assert_eq!(reply.status, 409);
    assert!(reply.failure().2.contains("Precondition failed: UID in precondition: other"), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn paths_are_read_as_by_a_kube_apiserver() {
    let server = server();
    server.map("a").await;
    assert_refused(
        &server.get(&format!("{MAPS}/%2e%2e")).await,
        400,
        "Name parameter invalid: \"..\": may not be '..'",
    );
    assert_refused(
        &server.get(&format!("{MAPS}/a%2Fb")).await,
        404,
        "the server could not find the requested resource",
    );
    assert_eq!(server.get("/version/").await.status, 200);
    assert_eq!(server.get("/api/v1/namespaces//configmaps").await.names(), ["a"]);
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x";
    assert_refused(&server.delete(review).await, 404, "the server could not find the requested resource");
    let reply = server.get("/api/v1/componentstatuses?watch=1").await;
    assert_refused(&reply, 405, "watch is not supported on resources of kind \"componentstatuses\"");
    assert_eq!(reply.headers["warning"], "299 - \"v1 ComponentStatus is deprecated in v1.19+\"");
}

#[tokio::test(start_paused = true)]
async fn who_scales_owns_the_number_if_somebody_did() {
    let server = server();
    server.post(DEPLOYMENTS, deployment(&json!({}))).await.ok();
    let path = format!("{DEPLOYMENTS}/d?fieldManager=one&force=true");
    let config =
        |spec: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec});
    let managers = |object: &Value| {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.iter().filter(|entry| entry["fieldsV1"]["f:spec"].get("f:replicas").is_some()).count()
    };
    // Who created it owns the default, until somebody takes it and gives it up.
    server.patch(&path, APPLY, config(json!({"replicas": 2}))).await.ok();
    let given_up = server.patch(&path, APPLY, config(json!({}))).await.ok();
    assert_eq!(managers(&given_up), 0, "{given_up}");
    server.merge(&format!("{DEPLOYMENTS}/d/scale"), json!({"spec": {"replicas": 4}})).await.ok();
    let scaled = server.get(&format!("{DEPLOYMENTS}/d")).await.ok();
    assert_eq!((scaled["spec"]["replicas"].as_i64(), managers(&scaled)), (Some(4), 0), "{scaled}");
}

#[tokio::test(start_paused = true)]
async fn questions_show_who_asked_them() {
    let server = server();
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let answered = server.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).await.ok();
    assert_eq!(answered["metadata"]["managedFields"][0]["operation"], "Update");
}

#[tokio::test(start_paused = true)]
async fn where_a_pod_may_go_can_be_told_more_of_while_it_waits_at_its_gates() {
    let server = server();
    let mut spec = one_container();
    spec["schedulingGates"] = json!([{"name": "a"}]);
    spec["nodeSelector"] = json!({"x": "y"});
    server.post(PODS, pod(spec)).await.ok();
    let path = format!("{PODS}/p");
    let text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
    assert_refused(&server.merge(&path, json!({"spec": {"nodeSelector": {"x": "z"}}})).await, 422, text);
    // With the last gate, too.
    let patch = json!({"spec": {"schedulingGates": null, "nodeSelector": {"n": "1"}}});
    assert_eq!(server.merge(&path, patch).await.ok()["spec"]["nodeSelector"], json!({"x": "y", "n": "1"}));
    let text = "(allow it to be set to 1 if it was previously negative)";
    assert_refused(&server.merge(&path, json!({"spec": {"nodeSelector": {"m": "1"}}})).await, 422, text);
}

#[tokio::test(start_paused = true)]
async fn what_changes_in_a_pod_is_looked_at_as_in_a_new_one() {
    let server = server();
    server.post(PODS, pod(one_container())).await.ok();
    let patch = json!({"spec": {"containers": [{"name": "c", "image": " i:2 "}]}});
    let text = "Invalid value: \" i:2 \": must not have leading or trailing whitespace";
    assert_refused(&server.merge(&format!("{PODS}/p"), patch).await, 422, text);
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_very_many_gates_and_tolerations_changes_in_no_time() {
    let server = server();
    let mut spec = one_container();
    spec["schedulingGates"] = (0..4000).map(|i| json!({"name": format!("g{i}")})).collect();
    spec["tolerations"] = (0..4000).map(|i| json!({"key": format!("k{i}"), "operator": "Exists"})).collect();
    server.post(PODS, pod(spec)).await.ok();
    let began = std::time::Instant::now();
    server.merge(&format!("{PODS}/p"), json!({"spec": {"activeDeadlineSeconds": 5}})).await.ok();
    assert!(began.elapsed() < seconds(20), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn ports_may_go_together_with_the_type_of_a_service() {
    let server = server();
    let ports = json!([{"name": "a", "port": 1}, {"name": "b", "port": 2}]);
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}});
    let mut service = server.post(SERVICES, service).await.ok();
    service["spec"]["type"] = json!("ClusterIP");
    service["spec"]["ports"].as_array_mut().expect("ports").remove(1);
    let changed = server.replace(&format!("{SERVICES}/s"), service).await.ok();
    assert_eq!(changed["spec"]["ports"], json!([{"name": "a", "port": 1, "protocol": "TCP", "targetPort": 1}]));
    // What is reached by addresses from outside keeps a policy for that.
    let spec = json!({"type": "NodePort", "externalIPs": ["1.2.3.4"], "ports": [{"port": 1}]});
    server.post(SERVICES, json!({"metadata": {"name": "t"}, "spec": spec})).await.ok();
    let changed = server.merge(&format!("{SERVICES}/t"), json!({"spec": {"type": "ClusterIP"}})).await.ok();
    assert_eq!(changed["spec"]["externalTrafficPolicy"], "Cluster");
}
