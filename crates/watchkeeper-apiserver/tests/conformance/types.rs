//! What the types of built-in kinds decide, beyond what was recorded of a kube-apiserver.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::support::{DEPLOYMENTS, Http, MAPS, PODS, Reply, server};

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn warnings(reply: &Reply) -> Vec<&str> {
    reply.headers.get_all("warning").iter().map(|value| value.to_str().expect("text")).collect()
}

fn container() -> Value {
    json!({"name": "c", "image": "i"})
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_is_warned_as_well() {
    let server = server();
    let reply = server.post(PODS, json!({"metadata": {"name": "p"}, "spec": {"colour": "red"}})).await;
    assert_eq!(reply.failure().2, "Pod \"p\" is invalid: spec.containers: Required value");
    assert_eq!(warnings(&reply), [r#"299 - "unknown field \"spec.colour\"""#]);
}

#[tokio::test(start_paused = true)]
async fn what_is_put_there_stays_as_it_is() {
    let server = server();
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "generation": 4},
                            "spec": {"colour": "red"}, "status": {"replicas": 7}});
    server.put(deployment).expect("put there");
    let path = format!("{DEPLOYMENTS}/d");
    let put = server.get(&path).await.ok();
    assert_eq!((&put["spec"], &put["status"]), (&json!({"colour": "red"}), &json!({"replicas": 7})));
    // A status is written without a look at the rest.
    let written = server.merge(&format!("{path}/status"), json!({"status": {"replicas": 8}})).await.ok();
    assert_eq!((&written["spec"], &written["status"]["replicas"]), (&json!({"colour": "red"}), &json!(8)));
    // Nor is a spec refused that nobody changes; what it gets by default is no change that counts.
    let labelled = server.merge(&path, json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert_eq!((&labelled["metadata"]["generation"], &labelled["spec"]["replicas"]), (&json!(4), &json!(1)));
    let changed = server.merge(&path, json!({"spec": {"replicas": 3}})).await;
    assert_eq!(changed.status, 422);
}

#[tokio::test(start_paused = true)]
async fn a_service_keeps_its_addresses_when_it_is_replaced() {
    let server = server();
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let made = server.post(SERVICES, service.clone()).await.ok();
    let other = json!({"metadata": {"name": "t"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let other = server.post(SERVICES, other).await.ok();
    assert_ne!(made["spec"]["clusterIP"], other["spec"]["clusterIP"]);
    assert_ne!(made["spec"]["ports"][0]["nodePort"], other["spec"]["ports"][0]["nodePort"]);
    let replaced = server.replace(&format!("{SERVICES}/s"), service).await.ok();
    assert_eq!(replaced, made);
    let external = json!({"spec": {"type": "ExternalName", "externalName": "x.y"}});
    let back = server.merge(&format!("{SERVICES}/s"), external).await.ok();
    assert_eq!(back["spec"]["clusterIP"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_loses_nothing_in_another_version() {
    let server = server();
    let path = |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let target = json!({"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"});
    let metrics = json!([{"type": "Resource",
                          "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    let spec = json!({"maxReplicas": 3, "scaleTargetRef": target, "metrics": metrics});
    server.post(&path("v2"), json!({"metadata": {"name": "a"}, "spec": spec})).await.ok();
    server.merge(&format!("{}/a", path("v1")), json!({"spec": {"maxReplicas": 4}})).await.ok();
    let read = server.get(&format!("{}/a", path("v2"))).await.ok();
    assert_eq!((&read["spec"]["maxReplicas"], &read["spec"]["metrics"]), (&json!(4), &metrics));
    assert_eq!(read["spec"]["targetCPUUtilizationPercentage"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_of_a_job_is_in_its_labels() {
    let server = server();
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [container()]}});
    let job = json!({"metadata": {"generateName": "j-"}, "spec": {"template": template}});
    let job = server.post("/apis/batch/v1/namespaces/default/jobs", job).await.ok();
    let name = &job["metadata"]["name"];
    assert_eq!(&job["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"], name);
    assert_eq!(&job["metadata"]["labels"]["job-name"], name);
    assert_eq!(job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"], job["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn strategic_patches_of_hostile_shapes_are_refused_or_harmless() {
    let server = server();
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    let pod = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let patches = [
        json!({"$patch": "delete"}),
        json!({"$patch": 7}),
        json!({"$retainKeys": []}),
        json!({"spec": {"$patch": ["replace"]}}),
        pod(json!({"containers": [null]})),
        pod(json!({"containers": [[]]})),
        pod(json!({"containers": [{"name": null}]})),
        pod(json!({"containers": [{"$patch": "delete"}]})),
        pod(json!({"$setElementOrder/containers": [null]})),
        pod(json!({"$setElementOrder/": []})),
        pod(json!({"$deleteFromPrimitiveList/": []})),
        pod(json!({"$deleteFromPrimitiveList/containers": [{"name": "c"}]})),
        pod(json!({"containers": {"$patch": "delete"}})),
        json!({"metadata": {"$patch": "delete"}}),
        json!({"metadata": "x"}),
    ];
    for (i, patch) in patches.into_iter().enumerate() {
        let path = format!("{DEPLOYMENTS}/d{i}");
        let deployment = json!({"metadata": {"name": format!("d{i}")}, "spec": spec});
        let made = server.post(DEPLOYMENTS, deployment).await.ok();
        let reply = server.patch(&path, STRATEGIC, patch.clone()).await;
        let after = server.get(&path).await.ok();
        match reply.status {
            200 => assert_eq!(after["spec"]["selector"], made["spec"]["selector"], "{patch}"),
            _ => {
                reply.failure();
                assert_eq!(after, made, "{patch}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fields_that_there_are_not_are_told_of_up_to_a_hundred_times() {
    let server = server();
    let fields: Vec<String> = (0..100_000).map(|i| format!("\"f{i}\":1")).collect();
    let body = format!(r#"{{"metadata":{{"name":"m"}},{}}}"#, fields.join(","));
    let began = Instant::now();
    let strict = format!("{MAPS}?fieldValidation=Strict");
    let reply = server.call(Method::POST, &strict, &[("content-type", "application/json")], body.clone().into()).await;
    let (code, _, message) = reply.failure();
    assert_eq!((code, message.matches("unknown field").count()), (400, 100));
    let reply = server.call(Method::POST, MAPS, &[("content-type", "application/json")], body.into()).await;
    assert_eq!((reply.status, warnings(&reply).len()), (201, 100));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
